"""Models that come in and go out: what others need of a run."""

import albert_tf.quiet_tensorflow  # noqa: F401  (first)
