"""Predictions for files of any length, in bounded memory; a run that was killed goes on where it stood.

The file is read in parts of a few batches. The answers of each go into a file of their own below `OUTPUT.parts/`, which
is put together at the end. `progress.json` there says how far that is, for which model, and the SHA-256 of the rows
that were read: a run goes on only where all of it is the same.

The answers are put together there too, and renamed to the output. `progress.json` goes before that: without it nothing
there counts, and the next run clears it away.
"""

import collections.abc
import contextlib
import dataclasses
import hashlib
import os
import time
import typing
import warnings

from albert_tf.batch_prediction.answer_files import TABLE_ENDING, Answer, read_answers, write_answers, write_part
from albert_tf.batch_prediction.input_rows import InputRows
from albert_tf.errors import InputError
from albert_tf.files import empty, gfile_for, read_json, remove, write_json
from albert_tf.folder_lock import hold
from albert_tf.json_types import check_types
from albert_tf.loaded_model import LoadedModel
from albert_tf.progress_line import ProgressLine, format_seconds
from albert_tf.rows.bad_rows import counted
from albert_tf.rows.row_file import Row

PARTS_ENDING = ".parts"
PROGRESS_FILE = "progress.json"
_ANSWERS_FILE = "answers"

_BYTES_PER_PART = 1 << 22

_OF_PREDICTOR = ("num_cut", "num_unknown")
_REQUIRED = {"num_parts": int, "num_lines": int, "num_bad_lines": int, "sha256": str}
_PROGRESS_TYPES = {**_REQUIRED, **dict.fromkeys(_OF_PREDICTOR, int)}


@dataclasses.dataclass(frozen=True)
class BatchOptions:
    """How a file is predicted.

    Attributes:
        batch_size: Texts that are computed at once.
        input_fields: As the `fields` of `InputRows`.
        skips_bad_lines: Whether a line that can't be read gets an {"error": ...} in place of an answer; else it is the
            end.
        keeps_inputs: Whether what was asked stands beside each answer.
        kept_columns: As for `InputRows`.
        further_settings: What else the answers depend on, JSON values by name: a run goes on with the same alone.
        batches_per_part: After so many batches the answers are written and the progress is told.
    """

    batch_size: int = 64
    input_fields: list[str] | None = None
    skips_bad_lines: bool = False
    keeps_inputs: bool = False
    kept_columns: dict[str, str] = dataclasses.field(default_factory=dict)
    further_settings: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    # Texts of one length are computed together, so that little is padding; more of them would take more memory.
    batches_per_part: int = 16


@dataclasses.dataclass
class _Progress:
    """How far a run is: of so many parts and lines the answers are written; the digest is of the lines.

    The predictor's `num_cut` and `num_unknown` are counted too, for they are told at the end of the last run.
    """

    num_parts: int = 0
    num_lines: int = 0
    num_bad_lines: int = 0
    num_cut: int = 0
    num_unknown: int = 0
    digest: "hashlib._Hash" = dataclasses.field(default_factory=hashlib.sha256)

    def read(self, line):
        """Counts a line whose answer is written."""
        self.num_lines += 1
        self.digest.update(line.content)
        self.digest.update(b"\n")

    def add(self, part, answers):
        """Counts a part whose answers are written."""
        for line in part:
            self.read(line)
        self.num_parts += 1
        self.num_bad_lines += sum("error" in answer for answer in answers)

    def to_dict(self):
        """Returns it as JSON values."""
        counts = {name: getattr(self, name) for name in ("num_parts", "num_lines", "num_bad_lines", *_OF_PREDICTOR)}
        return {**counts, "sha256": self.digest.hexdigest()}


@contextlib.contextmanager
def hold_output(output_file: str) -> collections.abc.Iterator[None]:
    """Keeps other predictions from being written to a file, and clears away what finished ones left when killed.

    Raises:
        InputError: Another command is writing it, or it can't be written.
    """
    folder = f"{output_file}{PARTS_ENDING}"
    with hold(folder, "output_file", output_file):
        if not gfile_for(folder).exists(os.path.join(folder, PROGRESS_FILE)):
            empty(folder)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # something is in it, or it is elsewhere, where no folder is empty
                os.rmdir(folder)


def predict_file(
    predictor: LoadedModel,
    input_file: str,
    output_file: str,
    options: BatchOptions,
    overwrite: bool = False,
    summarize: collections.abc.Callable[[collections.abc.Iterator[Answer]], None] | None = None,
) -> tuple[int, int, int]:
    """Writes what a model answers to each line of a file, as many lines as the file has, in its order.

    These are lines of JSON, or, where the name of the file to write ends in .tsv, a table with a header; see
    `write_answers`.

    Args:
        predictor: The model, which has `predict`.
        input_file: As for `InputRows`.
        output_file: Appears when all is done.
        options: How.
        overwrite: Whether to begin anew where parts of other predictions lie.
        summarize: Is given all answers before they are put together.

    Returns:
        How many lines there are, how many of them could not be read, and how many an earlier run had done.

    Raises:
        InputError: A line can't be read, or the parts there are of other predictions.
    """
    with hold_output(output_file):
        return _predict(predictor, input_file, output_file, options, overwrite, summarize)


def _predict(predictor, input_file, output_file, options, overwrite, summarize):
    rows = InputRows(predictor.task, input_file, options.input_fields, options.keeps_inputs, options.kept_columns)
    print(rows.description, flush=True)
    folder = f"{output_file}{PARTS_ENDING}"
    settings = {
        "model_dir": predictor.identity,
        "predict_batch_size": options.batch_size,
        "input_fields": options.input_fields,
        "on_bad_row": "skip" if options.skips_bad_lines else "fail",
        "with_inputs": options.keeps_inputs,
        **options.further_settings,
    }
    lines = iter(rows)
    progress = _take_up(folder, settings, lines, overwrite)
    if progress is None:
        empty(folder)
        lines, progress = iter(rows), _Progress()
    num_lines_before = progress.num_lines
    before = {name: getattr(progress, name) - getattr(predictor, name) for name in _OF_PREDICTOR}
    report = _Report(input_file)
    for part in _parts(lines, options.batch_size * options.batches_per_part):
        answers = _answers(predictor, rows, part, options)
        write_part(_part_file(folder, progress.num_parts), answers)
        progress.add(part, answers)
        for name in _OF_PREDICTOR:
            setattr(progress, name, before[name] + getattr(predictor, name))
        write_json(os.path.join(folder, PROGRESS_FILE), {**settings, **progress.to_dict()})
        report.update(progress.num_lines, part[-1].position)
    report.finish()
    if progress.num_cut:
        print(f"warning: {counted(progress.num_cut, 'input')} longer than the model can read; their ends are left out")
    if progress.num_unknown:
        with_unknown = counted(progress.num_unknown, "input")
        print(f"warning: {with_unknown} with words that the vocabulary can't spell, which the model reads as [UNK]")
    parts = [_part_file(folder, number) for number in range(progress.num_parts)]
    if summarize is not None:
        summarize(read_answers(parts))
    answers_file = os.path.join(folder, _ANSWERS_FILE)
    write_answers(answers_file, parts, as_table=output_file.lower().endswith(TABLE_ENDING))
    remove(os.path.join(folder, PROGRESS_FILE))
    gfile_for(folder).rename(answers_file, output_file, overwrite=True)
    empty(folder)
    return progress.num_lines, progress.num_bad_lines, num_lines_before


def _take_up(folder, settings, lines, overwrite):
    """Returns how far a run is and reads so many lines; None to begin anew, if something is there and `overwrite`."""
    path = os.path.join(folder, PROGRESS_FILE)
    if not gfile_for(path).exists(path):
        return _Progress()
    found = check_types(read_json(path, "the progress"), _PROGRESS_TYPES, path, _REQUIRED)
    differing = next((name for name, value in settings.items() if found.get(name) != value), None)
    progress = _Progress()
    if differing is None:
        while progress.num_lines < found["num_lines"] and (line := next(lines, None)):
            progress.read(line)
        if progress.digest.hexdigest() == found["sha256"]:
            for name in ("num_parts", "num_bad_lines", *_OF_PREDICTOR):
                setattr(progress, name, found.get(name, 0))  # earlier versions did not count all of them
            return progress
        differing = "input_file"
    if overwrite:
        return None
    raise InputError(
        f"{folder} holds the beginning of predictions with another `{differing}`; continue with the earlier value, or "
        "pass `overwrite` to begin anew"
    )


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
                raise InputError(f"{error}; or pass `on_bad_row=skip`; finished predictions are kept") from error
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


def _part_file(folder, number):
    return os.path.join(folder, f"{number:08}.jsonl")


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
