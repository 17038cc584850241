"""Predicts the lines of a file of any length: an answer a line, in the file's order.

albert-tf predict --model_dir=run/nsmc --input_file=reviews.txt.gz --output_file=predictions.jsonl

Needs no TensorFlow where the model is a LiteRT export.
"""

from absl import flags

import albert_tf
from albert_tf.cli import answered_file, command
from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.litert import find_litert

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string(
        "model_dir", None, "Folder of a fine-tuned model, or what export_model.py --format=litert has written."
    )
    answered_file.define_flags(
        "What to predict, an input a row: lines of text, or .jsonl, .csv, .tsv or .parquet with the columns "
        "of the training file; .gz too.",
        "JSON lines to write, one for each line of the input, in its order.",
        "Columns to read; by default the training file's, or else the task's.",
        "Number of texts in a batch.",
    )


def main():
    given = resolved_flags()
    command.require_folder(model_dir=given.model_dir)
    command.require(input_file=given.input_file, output_file=given.output_file)
    if find_litert(given.model_dir) is None or any("://" in path for path in (given.input_file, given.output_file)):
        from albert_tf.cli import app  # noqa: F401  (it keeps TensorFlow quiet at its start)
    input_file = answered_file.find_input(given)
    answered_file.answer(given, input_file, lambda: albert_tf.load(given.model_dir))


def run():
    """Runs the command."""
    command.run(main, define_flags)
