"""Asking a model where TensorFlow is not wanted, or not there: it takes a tenth of a second to start.

Nothing here imports TensorFlow, or what does.
"""

from albert_tf.litert.backend import LiteRTBackend

__all__ = ["LiteRTBackend"]
