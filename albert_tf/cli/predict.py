"""The command that predicts the rows of a file, and what all commands share that answer one."""

import collections.abc
import dataclasses
import time
import typing

import albert_tf
from albert_tf.asking.batch_prediction import BatchOptions, hold_output, predict_file
from albert_tf.base.errors import ON_BAD_ROW, InputError
from albert_tf.base.files import gfile_for, match_files, refuse_to_overwrite
from albert_tf.base.settings import Settings, setting
from albert_tf.cli.command import command, require_folder
from albert_tf.serving.formats import find_export

_OTHER_ENDINGS = (".csv", ".tsv", ".parquet", ".gz")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnsweredFileSettings(Settings):
    """The file to answer, and how; each command has its own help of them."""

    input_file: str | None = setting(None)
    output_file: str | None = setting(None, "JSON lines to write, one for each line of the input, in its order.")
    input_fields: tuple[str, ...] | None = setting(
        None, 'The column to read, or several that are joined; by default "text".'
    )
    predict_batch_size: int = setting(64, "Number of texts in a batch.", least=1)
    on_bad_row: str = setting(
        "fail", "What to do with a line that can't be read: stop, or write the reason and continue.", choices=ON_BAD_ROW
    )
    with_inputs: bool = setting(False, "Write the input next to each answer.")
    overwrite: bool = setting(False, "Replace the --output_file.")


def find_input(settings: AnsweredFileSettings, writes_tables: bool = False) -> str:
    """Returns the path of the file to read, after checking what can be checked without a model."""
    files = match_files([settings.input_file], "input_file")
    if len(files) > 1:
        raise InputError(f"`input_file={settings.input_file}` names {len(files)} files; predict one at a time")
    table = writes_tables and settings.output_file.lower().endswith(".tsv")
    if settings.output_file.lower().endswith(_OTHER_ENDINGS) and not table:
        what, names = ("lines of JSON are", "something.jsonl")
        if writes_tables:
            what, names = ("lines of JSON or tab-separated ones are", "something.jsonl or something.tsv")
        raise InputError(f"`output_file={settings.output_file}`: {what} the output format; use a name such as {names}")
    if settings.output_file.endswith("/") or gfile_for(settings.output_file).isdir(settings.output_file):
        raise InputError(f"`output_file={settings.output_file}` is a folder; name a file in it")
    return files[0]


def answer_file(
    settings: AnsweredFileSettings,
    input_file: str,
    make_predictor: collections.abc.Callable[[], typing.Any],
    summarize: collections.abc.Callable[..., None] | None = None,
    **options: typing.Any,
) -> None:
    """Writes the answers, and prints how many there are and how fast they came."""
    # Predictor and summary as for `predict_file`; options are those of `BatchOptions` that are no settings.
    with hold_output(settings.output_file):
        refuse_to_overwrite([settings.output_file], settings.overwrite)
        predictor = make_predictor()
        batch_options = BatchOptions(
            settings.predict_batch_size,
            settings.input_fields,
            settings.on_bad_row == "skip",
            settings.with_inputs,
            **options,
        )
        began_at = time.monotonic()
        num_lines, num_bad_lines = predict_file(predictor, input_file, settings.output_file, batch_options, summarize)
    seconds = max(time.monotonic() - began_at, 1e-9)
    bad = f", {num_bad_lines:,} of them an error in place of an answer" if num_bad_lines else ""
    print(f"wrote {settings.output_file}: {num_lines:,} lines{bad}; {num_lines / seconds:,.0f} texts/s")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictSettings(AnsweredFileSettings):
    """Which model is to predict which file."""

    model_dir: str | None = setting(
        None, "Folder of a fine-tuned model, or what export_model.py --format=litert has written."
    )
    input_file: str | None = setting(
        None,
        "What to predict, an input a row: lines of text, or .jsonl, .csv, .tsv or .parquet with the columns of the "
        "training file; .gz too.",
    )
    input_fields: tuple[str, ...] | None = setting(
        None, "Columns to read; by default the training file's, or else the task's."
    )


@command(PredictSettings)
def predict(settings):
    """Predicts the lines of a file of any length: an answer a line, in the file's order.

    albert-tf predict --model_dir=run/nsmc --input_file=reviews.txt.gz --output_file=predictions.jsonl

    Needs no TensorFlow where the model is a LiteRT export.
    """
    require_folder(settings, "model_dir")
    settings.require("input_file", "output_file")
    paths = (settings.model_dir, settings.input_file, settings.output_file)
    found = None if any("://" in path for path in paths) else find_export(settings.model_dir)
    if found is None or found.format.needs_tensorflow:
        from albert_tf.cli import app  # noqa: F401  (it keeps TensorFlow quiet at its start)
    input_file = find_input(settings)
    answer_file(settings, input_file, lambda: albert_tf.load(settings.model_dir))
