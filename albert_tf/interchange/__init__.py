"""Models that come in and go out: what others need of a run."""

import albert_tf.base.quiet_tensorflow  # noqa: F401  (first)
