"""ALBERT for Korean, in TensorFlow 2, aimed at Cloud TPU."""

__version__ = "0.2.0"
