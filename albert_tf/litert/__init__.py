"""Asking a model without TensorFlow: it takes a tenth of a second to start. Nothing here imports TensorFlow."""

from albert_tf.litert.backend import LiteRTBackend

__all__ = ["LiteRTBackend"]
