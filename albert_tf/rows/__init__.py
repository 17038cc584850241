"""Rows of files, read the same way for every task, in training and in prediction; without TensorFlow."""
