"""The read side of pre-training data: records, masking, sets of shards, and the input pipeline."""

import albert_tf.base.quiet_tensorflow  # noqa: F401  (first)
