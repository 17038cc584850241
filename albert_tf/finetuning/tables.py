"""Rows of labelled data: tab-separated, CSV, JSON, JSON lines and Parquet files, told by the ends of their names."""

import collections.abc
import contextlib
import csv
import functools
import io
import json
import os
import re
import sys
import typing

from albert_tf.errors import InputError
from albert_tf.files import read_text, write_text
from albert_tf.text_encoding import replace_halves

# How JSON spells the halves of what UTF-16 writes as two.
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")


class Row(typing.NamedTuple):
    """One row of a file.

    Attributes:
        number: Its line, or in JSON and Parquet files its number, from 1.
        values: By column; text, or whatever a JSON or Parquet file holds.
    """

    number: int
    values: dict[str, typing.Any]


class BadRows:
    """What to do with rows that can't be used: stop at the first, or leave all of them out and tell how many.

    Args:
        policy: One of `errors.ON_BAD_ROW`.
        units: What is left out is called, one of them and several.
    """

    def __init__(self, policy: str = "fail", units: tuple[str, str] = ("row", "rows")):
        self._skips, self._units = policy == "skip", units
        self._count, self._first = 0, None

    def refuse(self, message: str) -> None:
        """Tells of a row.

        Raises:
            InputError: Such a row is not to be left out.
        """
        if not self._skips:
            raise InputError(f"{message}; correct the row, or pass --on_bad_row=skip to leave such rows out")
        self._leave_out(message)

    @contextlib.contextmanager
    def leaving_out(self) -> collections.abc.Iterator[None]:
        """Takes the InputErrors of a block, which say by themselves what to correct, as `refuse` takes messages."""
        try:
            yield
        except InputError as error:
            if not self._skips:
                raise InputError(f"{error}; or pass --on_bad_row=skip to leave such {self._units[1]} out") from error
            self._leave_out(str(error))

    def _leave_out(self, message):
        self._count += 1
        self._first = self._first or message

    def warn(self) -> None:
        """Prints how many rows were left out, if any."""
        if self._count:
            counted = f"{self._count:,} {self._units[self._count > 1]}"
            tell_once(f"warning: {counted} left out; the first: {self._first}")


@functools.cache
def tell_once(message: str) -> None:
    """Prints what there is to know of a file, once in a process: a run reads some files for several purposes."""
    print(message, flush=True)


def read_rows(path: str, columns: tuple[str, ...] | None, bad_rows: BadRows) -> list[Row]:
    """Returns the rows of a file.

    Tab-separated files (every name that doesn't end otherwise) know no quotation marks: as many public files, they may
    hold single ones. CSV files are quoted as RFC 4180 says. JSON files hold a list of objects, JSON lines an object
    each; a column `a.b` is the value b of the object a.

    Args:
        path: The file.
        columns: The names of the columns of a file without header; None where the first line names them.
        bad_rows: Told of rows that have too few or too many values.

    Raises:
        InputError: The file can't be read, or holds no row.
    """
    extension = os.path.splitext(path)[1].lower()
    if extension == ".parquet":
        rows = _parquet_rows(path)
    elif extension in (".json", ".jsonl", ".ndjson"):
        rows = _json_rows(path, read_text(path, "the labelled data"), bad_rows)
    elif extension == ".csv":
        rows = _csv_rows(path, columns, bad_rows)
    else:
        rows = _tsv_rows(path, columns, bad_rows)
    if not rows:
        raise InputError(f"{path} has no lines below its header" if columns is None else f"{path} has no lines")
    return rows


def load_json(text: str) -> typing.Any:
    """Returns a JSON value; half a surrogate pair, which JSON can spell and no UTF-8 file hold, becomes U+FFFD.

    Raises:
        json.JSONDecodeError: It is none, or one that Python does not read.
    """
    try:
        value = json.loads(text)
        if _HALF_CHARACTER.search(text):
            value = json.loads(replace_halves(json.dumps(value, ensure_ascii=False)))
        return value
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of brackets
        raise json.JSONDecodeError("too many digits or brackets", text, 0) from error


def write_rows(path: str, rows: list[list[str]]) -> None:
    """Writes a tab-separated file, by way of a temporary name; tabs and line ends inside a value become spaces."""
    spaces = str.maketrans("\t\n\r", "   ")
    write_text(path, "".join("\t".join(value.translate(spaces) for value in row) + "\n" for row in rows))


def _tsv_rows(path, columns, bad_rows):
    lines = read_text(path, "the labelled data").removesuffix("\n").split("\n")
    lines = [(number, line.rstrip("\r").split("\t")) for number, line in enumerate(lines, start=1)]
    return _named(path, lines, columns, bad_rows)


def _csv_rows(path, columns, bad_rows):
    csv.field_size_limit(sys.maxsize)  # else a text of more than 131,072 characters is refused
    reader = csv.reader(io.StringIO(read_text(path, "the labelled data"), newline=""), strict=True)
    lines = []
    try:
        for values in reader:
            lines.append((reader.line_num, values))
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not CSV ({error}); correct it") from error
    if columns is None and lines:
        _check_separator(path, lines[0][1])
    return _named(path, [(number, values or [""]) for number, values in lines], columns, bad_rows)


def _check_separator(path, header):
    """Refuses a CSV file whose columns are separated as other programs do, before its rows look like bad ones."""
    if len(header) == 1 and "\t" in header[0]:
        raise InputError(
            f"{path}, line 1: tabs between the columns, not commas; let its name end in .tsv, and pass --task_name=tsv"
        )
    if len(header) == 1 and ";" in header[0]:
        raise InputError(f"{path}, line 1: semicolons between the columns, not commas; write the file with commas")


def _named(path, lines, columns, bad_rows):
    """Returns rows by the names of their columns, from (line number, values)."""
    if columns is None and lines:
        (_, columns), *lines = lines
    if columns and len(columns) > 1:  # where the text is all there is, an empty line may be one
        while lines and lines[-1][1] == [""]:
            lines.pop()
    rows = []
    for number, values in lines:
        if len(values) == len(columns):
            rows.append(Row(number, dict(zip(columns, values))))
        else:
            bad_rows.refuse(f"{path}, line {number}: {len(values)} columns, but the header has {len(columns)}")
    return rows


def _json_rows(path, text, bad_rows):
    """Returns the objects of a JSON list, or of JSON lines, whatever the file is called."""
    if text.lstrip().startswith("["):
        try:
            found = list(enumerate(load_json(text), start=1))
        except json.JSONDecodeError as error:
            raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg}); correct it") from error
    else:
        found = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    rows = []
    for number, value in found:
        if isinstance(value, str):
            try:
                value = load_json(value)
            except json.JSONDecodeError as error:
                bad_rows.refuse(f"{path}, line {number}: not JSON ({error.msg})")
                continue
        if isinstance(value, dict):
            rows.append(Row(number, _flatten(value)))
        else:
            bad_rows.refuse(f"{path}, row {number}: not a JSON object")
    return rows


def _flatten(value):
    """Returns an object with the values of the objects in it as columns of their own, `a.b`."""
    flat = dict(value)
    for name, inner in value.items():
        if isinstance(inner, dict):
            flat.update({f"{name}.{key}": item for key, item in _flatten(inner).items()})
    return flat


def _parquet_rows(path):
    try:
        import pyarrow.parquet  # optional
    except ImportError as error:
        raise InputError(f"{path}: Parquet files need pyarrow; pip install pyarrow") from error
    try:
        rows = pyarrow.parquet.read_table(path).to_pylist()
    except (OSError, pyarrow.lib.ArrowException) as error:
        raise InputError(f"can't read the labelled data {path}: {error}") from error
    return [Row(number, _flatten(row)) for number, row in enumerate(rows, start=1)]
