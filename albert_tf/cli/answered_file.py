"""What commands share that answer every row of a file."""

import collections.abc
import time
import typing

from absl import flags

from albert_tf.batch_prediction import BatchOptions, hold_output, predict_file
from albert_tf.cli import command
from albert_tf.errors import ON_BAD_ROW, InputError
from albert_tf.files import gfile_for, match_files

_OTHER_ENDINGS = (".csv", ".tsv", ".parquet", ".gz")


def define_flags(
    input_file: str,
    output_file: str,
    input_fields: str,
    batch_size: str,
    default_batch_size: int = 64,
    answers_hold_inputs: bool = False,
):
    """Defines the flags that such commands have in common, given what four of them are."""
    flags.DEFINE_string("input_file", None, input_file)
    flags.DEFINE_string("output_file", None, output_file)
    flags.DEFINE_list("input_fields", None, input_fields)
    flags.DEFINE_integer("predict_batch_size", default_batch_size, batch_size, lower_bound=1)
    flags.DEFINE_enum(
        "on_bad_row",
        "fail",
        ON_BAD_ROW,
        "What to do with a line that can't be read: stop, or write the reason and continue.",
    )
    if not answers_hold_inputs:
        flags.DEFINE_bool("with_inputs", False, "Write the input next to each answer.")
    flags.DEFINE_bool("overwrite", False, "Replace the --output_file.")


def find_input(given: typing.Any, writes_tables: bool = False) -> str:
    """Returns the path of the file to read, after checking what can be checked without a model.

    Args:
        given: The flags.
        writes_tables: Whether the file to write may be a .tsv.

    Raises:
        InputError: It names several files or none, or the file to write can't be that.
    """
    files = match_files([given.input_file], "input_file")
    if len(files) > 1:
        raise InputError(f"--input_file={given.input_file} names {len(files)} files; predict one at a time")
    table = writes_tables and given.output_file.lower().endswith(".tsv")
    if given.output_file.lower().endswith(_OTHER_ENDINGS) and not table:
        what, names = ("lines of JSON are", "something.jsonl")
        if writes_tables:
            what, names = ("lines of JSON or tab-separated ones are", "something.jsonl or something.tsv")
        raise InputError(f"--output_file={given.output_file}: {what} the output format; use a name such as {names}")
    if given.output_file.endswith("/") or gfile_for(given.output_file).isdir(given.output_file):
        raise InputError(f"--output_file={given.output_file} is a folder; name a file in it")
    return files[0]


def answer(
    given: typing.Any,
    input_file: str,
    make_predictor: collections.abc.Callable[[], typing.Any],
    summarize: collections.abc.Callable[..., None] | None = None,
    **options: typing.Any,
) -> None:
    """Writes the answers, and prints how many there are and how fast they came.

    Args:
        given: The flags.
        input_file: The file to read.
        make_predictor: Loads what answers, as for `predict_file`.
        summarize: As for `predict_file`.
        **options: Of `BatchOptions`, besides those that are flags.
    """
    with hold_output(given.output_file):
        command.refuse_to_overwrite([given.output_file], given.overwrite)
        predictor = make_predictor()
        batch_options = BatchOptions(
            given.predict_batch_size,
            given.input_fields,
            given.on_bad_row == "skip",
            getattr(given, "with_inputs", False),
            **options,
        )
        began_at = time.monotonic()
        num_lines, num_bad_lines = predict_file(predictor, input_file, given.output_file, batch_options, summarize)
    seconds = max(time.monotonic() - began_at, 1e-9)
    bad = f", {num_bad_lines:,} of them an error in place of an answer" if num_bad_lines else ""
    print(f"wrote {given.output_file}: {num_lines:,} lines{bad}; {num_lines / seconds:,.0f} texts/s")
