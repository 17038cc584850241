"""Predicts the lines of a file of any length: an answer a line, in the file's order.

albert-tf predict --model_dir=run/nsmc --input_file=reviews.txt.gz --output_file=predictions.jsonl

Needs no TensorFlow where the model is a LiteRT export.
"""

import dataclasses

import albert_tf
from albert_tf.base.settings import changed, setting
from albert_tf.cli import answered_file, command
from albert_tf.cli.answered_file import AnsweredFileSettings
from albert_tf.serving.formats import find_export


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictSettings(AnsweredFileSettings):
    """Which model is to predict which file."""

    model_dir: str | None = setting(
        None, "Folder of a fine-tuned model, or what export_model.py --format=litert has written."
    )
    input_file: str | None = changed(
        help="What to predict, an input a row: lines of text, or .jsonl, .csv, .tsv or .parquet with the columns of "
        "the training file; .gz too.",
    )
    input_fields: tuple[str, ...] | None = changed(
        help="Columns to read; by default the training file's, or else the task's.",
    )


SETTINGS = PredictSettings


def main(settings):
    command.require_folder(settings, "model_dir")
    settings.require("input_file", "output_file")
    paths = (settings.model_dir, settings.input_file, settings.output_file)
    found = None if any("://" in path for path in paths) else find_export(settings.model_dir)
    if found is None or found.format.needs_tensorflow:
        from albert_tf.cli import app  # noqa: F401  (it keeps TensorFlow quiet at its start)
    input_file = answered_file.find_input(settings)
    answered_file.answer(settings, input_file, lambda: albert_tf.load(settings.model_dir))


def run():
    command.run(main, SETTINGS)
