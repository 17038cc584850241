"""Asking a trained model."""

import albert_tf.quiet_tensorflow  # noqa: F401  (first)
from albert_tf.serving.exported import find_export
from albert_tf.serving.exported_predictor import ExportedPredictor
from albert_tf.serving.loading import holds_finetuned
from albert_tf.serving.predictor import Predictor
from albert_tf.serving.pretrained_model import PretrainedModel

__all__ = ["ExportedPredictor", "Predictor", "PretrainedModel", "find_export", "holds_finetuned"]
