"""Asking a model where TensorFlow is not wanted, or not there: it takes a tenth of a second to start.

Nothing here imports TensorFlow, or what does.
"""

from albert_tf.litert.export import LiteRTExport
from albert_tf.litert.files import FAST_TOKENIZER_FILE, LITERT_FILE, find_litert
from albert_tf.litert.predictor import LiteRTPredictor

__all__ = ["FAST_TOKENIZER_FILE", "LITERT_FILE", "LiteRTExport", "LiteRTPredictor", "find_litert"]
