"""Asking a trained model."""

from albert_tf.serving.loading import holds_finetuned
from albert_tf.serving.predictor import Predictor
from albert_tf.serving.pretrained_model import PretrainedModel

__all__ = ["Predictor", "PretrainedModel", "holds_finetuned"]
