"""Answers to every line of a file, whatever model gives them; nothing here imports TensorFlow."""

from albert_tf.batch_prediction.input_lines import Line, LineParser, read_lines
from albert_tf.batch_prediction.prediction import BatchOptions, predict_file

__all__ = ["BatchOptions", "Line", "LineParser", "predict_file", "read_lines"]
