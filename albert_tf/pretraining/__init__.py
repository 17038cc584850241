"""Pre-training on shards: from sets of shards to the phases of a run."""

import albert_tf.quiet_tensorflow  # noqa: F401  (first)
