"""Predictions for files of any length, in bounded memory; the file appears when all is done.

The file is read in parts of a few batches. Until the last one is answered, the answers lie in a folder beside the
output, into which no other command writes meanwhile.
"""

import collections.abc
import contextlib
import dataclasses
import json
import os
import time
import typing
import warnings

from albert_tf.asking.input_rows import AskedTexts, InputRows
from albert_tf.asking.model import Model
from albert_tf.base.console import ProgressLine, format_seconds
from albert_tf.base.errors import InputError
from albert_tf.base.files import empty, gfile_for, replacing, to_json, unfinished_path
from albert_tf.base.folders import hold
from albert_tf.reading.rows import Row, counted, tab_separated

Answer = dict[str, typing.Any]

TABLE_ENDING = ".tsv"


def read_answers(path: str) -> collections.abc.Iterator[Answer]:
    """Yields the answers of a file of JSON lines."""
    with gfile_for(path).GFile(path, "rb") as file:
        yield from map(json.loads, file)


def write_table(path: str, answers_file: str) -> None:
    """Writes answers, lines of JSON in `answers_file`, as a table with a header.

    There is a column for each name that an answer has, in the order in which they come, `a.b` for b of the object a;
    it is empty where an answer has none.
    """
    with replacing(path) as output:
        columns = list(dict.fromkeys(name for answer in read_answers(answers_file) for name in _flat(answer)))
        output.write(tab_separated(columns).encode())
        for answer in read_answers(answers_file):
            values = _flat(answer)
            output.write(tab_separated([values.get(name, "") for name in columns]).encode())


def _flat(answer, prefix=""):
    """Returns an answer's values by column, as text; what is neither text nor a number is written as in JSON."""
    values = {}
    for name, value in answer.items():
        if isinstance(value, dict):
            values |= _flat(value, f"{prefix}{name}.")
        else:
            values[prefix + name] = value if isinstance(value, str) else to_json(value)
    return values


_ANSWERS_FILE = "answers"
_BYTES_PER_PART = 1 << 22


@dataclasses.dataclass(frozen=True)
class BatchOptions:
    """How a file is predicted.

    Attributes:
        batch_size: Texts that are computed at once.
        input_fields: As the `fields` of `InputRows`; `kept_columns` likewise.
        skips_bad_lines: Whether a line that can't be read gets an {"error": ...} in place of an answer; else it is the
            end.
        keeps_inputs: Whether the input stands beside each answer.
        batches_per_part: Batches after which the answers are written and the progress is told.
    """

    batch_size: int = 64
    input_fields: list[str] | None = None
    skips_bad_lines: bool = False
    keeps_inputs: bool = False
    kept_columns: dict[str, str] = dataclasses.field(default_factory=dict)
    # Texts of one length are computed together, so that little is padding; more of them would take more memory.
    batches_per_part: int = 16


@contextlib.contextmanager
def hold_output(output_file: str) -> collections.abc.Iterator[None]:
    """Keeps other predictions out of a file, and clears away what killed ones left; InputError if another has it."""
    folder = unfinished_path(output_file)
    with hold(folder, "output_file", output_file):
        empty(folder)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # it is elsewhere, where no folder is empty
                os.rmdir(folder)


def predict_file(
    predictor: Model | AskedTexts,
    input_file: str,
    output_file: str,
    options: BatchOptions,
    summarize: collections.abc.Callable[[collections.abc.Iterator[Answer]], None] | None = None,
) -> tuple[int, int]:
    """Writes a model's answer to each line of a file, in its order.

    These are lines of JSON, or, where the name of the file to write ends in .tsv, a table as of `write_table`.

    Args:
        predictor: Has `predict`.
        input_file: As for `InputRows`.
        output_file: Appears when all is done, and replaces the former one.
        options: How.
        summarize: Is given all answers before the file appears.

    Returns:
        How many lines there are, and how many of them could not be read.

    Raises:
        InputError: A line can't be read.
    """
    with hold_output(output_file):
        answers_file = os.path.join(unfinished_path(output_file), _ANSWERS_FILE)
        try:
            counts = _predict(predictor, input_file, answers_file, options)
            if summarize is not None:
                summarize(read_answers(answers_file))
            if output_file.lower().endswith(TABLE_ENDING):
                write_table(answers_file, answers_file)
            gfile_for(answers_file).rename(answers_file, output_file, overwrite=True)
        finally:
            empty(os.path.dirname(answers_file))
    return counts


def _predict(predictor, input_file, answers_file, options):
    """Writes the answers as lines of JSON; returns how many there are, and how many of them are errors."""
    rows = InputRows(predictor.task, input_file, options.input_fields, options.keeps_inputs, options.kept_columns)
    print(rows.description, flush=True)
    num_lines, num_bad_lines = 0, 0
    num_cut, num_unknown = predictor.num_cut, predictor.num_unknown
    report = _Report(input_file)
    with replacing(answers_file) as file:
        for part in _parts(iter(rows), options.batch_size * options.batches_per_part):
            answers = _answers(predictor, rows, part, options)
            file.write("".join(to_json(answer) + "\n" for answer in answers).encode("utf-8"))
            num_lines += len(answers)
            num_bad_lines += sum("error" in answer for answer in answers)
            report.update(num_lines, part[-1].position)
    report.finish()
    if num_cut := predictor.num_cut - num_cut:
        print(f"warning: {counted(num_cut, 'input')} longer than the model can read; their ends are left out")
    if num_unknown := predictor.num_unknown - num_unknown:
        with_unknown = counted(num_unknown, "input")
        print(f"warning: {with_unknown} with words that the vocabulary can't spell, which the model reads as [UNK]")
    return num_lines, num_bad_lines


def _parts(lines: collections.abc.Iterator[Row], max_lines: int) -> collections.abc.Iterator[list[Row]]:
    """Yields some lines at a time, fewer where they are long."""
    part, num_bytes = [], 0
    for line in lines:
        part.append(line)
        num_bytes += len(line.content)
        if len(part) == max_lines or num_bytes > _BYTES_PER_PART:
            yield part
            part, num_bytes = [], 0
    if part:
        yield part


def _answers(predictor, rows, part, options):
    """Returns an answer to each line, or why there is none."""
    answers, asked = [], []
    for line in part:
        try:
            question = rows.parse(line)
        except InputError as error:
            if not options.skips_bad_lines:
                raise InputError(f"{error}; or pass `on_bad_row=skip`") from error
            answers.append({"error": str(error)})
        else:
            asked.append(question)
            answers.append(None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # inputs that are cut are told of at the end, all at once
        predictions = predictor.predict([question.value for question in asked], options.batch_size)
    # Some tasks number what they are asked, which means nothing in a file that is read in parts.
    found = (
        {**question.more, **{name: value for name, value in prediction.items() if name != "id"}}
        for question, prediction in zip(asked, predictions)
    )
    return [answer or next(found) for answer in answers]


class _Report:
    """Tells how far the predictions are; the first part, with what is compiled for it, is left out of the rate."""

    def __init__(self, input_file):
        self._line, self._size = ProgressLine(), gfile_for(input_file).stat(input_file).length
        self._first = None

    def update(self, num_lines, position):
        """Tells it, if the last time is long enough ago."""
        now = time.monotonic()
        if self._first is None:
            self._first = now, num_lines, position
        seconds, lines, bytes_read = (value - first for value, first in zip((now, num_lines, position), self._first))
        if not self._line.is_due:
            return
        rate = f" | {lines / seconds:,.0f} texts/s" if lines else ""
        eta = f" ETA {format_seconds(seconds * (self._size - position) / bytes_read)}" if bytes_read else ""
        self._line.show(f"{num_lines:,} texts {position / self._size:.0%}{rate}{eta}")

    def finish(self):
        """Leaves the last line where it is."""
        self._line.finish()
