"""Rows of files: one way to read them for every task, in training and in prediction; without TensorFlow."""
