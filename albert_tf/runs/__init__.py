"""Runs that a user starts, from settings to results in a folder: the same for commands and for Python."""

import albert_tf.base.quiet_tensorflow  # noqa: F401  (first)
