"""Answers to every row of a file, whatever model gives them; nothing here imports TensorFlow."""

from albert_tf.batch_prediction.asked_texts import AskedTexts
from albert_tf.batch_prediction.input_rows import InputRows
from albert_tf.batch_prediction.prediction import BatchOptions, hold_output, predict_file

__all__ = ["AskedTexts", "BatchOptions", "InputRows", "hold_output", "predict_file"]
