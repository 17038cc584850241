"""The real TPU compiler, without a TPU: what a step takes before anything is rented."""

import albert_tf.quiet_tensorflow  # noqa: F401  (first)
