"""Asking a fine-tuned model."""

from albert_tf.serving.predictor import Predictor

__all__ = ["Predictor"]
