"""Rows of files: one way to read them for every task, in training and in prediction; without TensorFlow."""

from albert_tf.rows.bad_rows import BadRows, counted, shorten, tell_once
from albert_tf.rows.row_file import Row, RowFile, write_rows
from albert_tf.rows.values import load_json

__all__ = ["BadRows", "Row", "RowFile", "counted", "load_json", "shorten", "tell_once", "write_rows"]
