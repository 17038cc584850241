"""The real TPU compiler, without a TPU: the demands of a step before anything is rented."""

import albert_tf.base.quiet_tensorflow  # noqa: F401  (first)
