"""Rows of tab-separated, CSV, JSON, JSON lines and Parquet files, recognized by the ends of their names.

Some rows can't be used, and some remarks on a file are made once.
"""

import collections.abc
import contextlib
import contextvars
import csv
import functools
import json
import os
import sys
import typing

from albert_tf.base.console import DETAILS, tell
from albert_tf.base.errors import InputError, first_line, listed, quote, shorten
from albert_tf.base.files import not_utf8, reading, write_text
from albert_tf.reading.blocks import read_blocks, split_at_line_ends
from albert_tf.reading.tables import TABLE_ENDINGS, label_names, open_table
from albert_tf.reading.values import load_json

# Lines of files of any length, in bounded memory.

MAX_BYTES_PER_LINE = 1 << 26

_EMPTY_LINES = b"\n" * (1 << 16)


class Line(typing.NamedTuple):
    number: int  # its number, from 1
    content: bytes  # its bytes, without the line feed
    position: int  # how many bytes of the file, as it is stored, were read by then


def read_lines(path: str) -> collections.abc.Iterator[Line]:
    """Yields the lines of a file, decompressed if its name ends in .gz, without a byte order mark.

    Raises InputError if it can't be read, a line is longer than `MAX_BYTES_PER_LINE`, or empty lines have no end.
    """
    with reading(path) as file:
        number = 1
        for content, begins_line, ends_line in split_at_line_ends(read_blocks(file, path), MAX_BYTES_PER_LINE):
            if not (begins_line and ends_line):
                raise InputError(
                    f"{path}, line {number}: longer than {MAX_BYTES_PER_LINE >> 20} MB; is each input on a line of its "
                    "own?"
                )
            if b"\n\n\n" in content and _EMPTY_LINES in content:
                number += content.count(b"\n", 0, content.find(_EMPTY_LINES))
                raise InputError(f"{path}, line {number}: {len(_EMPTY_LINES):,} empty lines in a row; take them out")
            for line in bytes(content).split(b"\n"):
                yield Line(number, line, file.tell())
                number += 1


def decode(path: str, line: Line) -> str:
    """Returns the text of a line; raises InputError if it is not UTF-8."""
    try:
        return line.content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(f"{path}, line {line.number}", line.content, "the file") from error


JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
# Files that say the names of their columns before the first row; others may.
COLUMN_ENDINGS = (".csv", *TABLE_ENDINGS)

_SPACES = str.maketrans("\t\n\r", "   ")


class Row(typing.NamedTuple):
    number: int  # its line, or in lists of JSON and Parquet files its number, from 1
    # By column, text or whatever a JSON or Parquet file holds; of JSON lines the line's value, which need not be an
    # object; of lines of text the text.
    values: typing.Any
    error: str | None = None  # what is wrong with it, a sentence that begins with the place
    content: bytes = b""  # what it is in the file, as bytes that tell it from others
    position: int = 0  # about how many bytes of the file, as it is stored, were read by then


class Place(typing.NamedTuple):
    """Where a row stands, as sentences name it."""

    path: str
    unit: str
    number: int

    def __str__(self) -> str:
        return f"{self.path}, {self.unit} {self.number}"


def refuse(message: str) -> typing.NoReturn:
    raise InputError(message)


class RowFile(collections.abc.Iterable[Row]):
    """The rows of a file, read anew whenever it is iterated over; a gzip file if its name ends in .gz.

    Tab-separated files (every name that doesn't end otherwise) know no quotation marks: as many public files, they may
    hold single ones. CSV files are quoted as RFC 4180 says. JSON files hold a list of objects, JSON lines an object
    each; a column `a.b` is the value b of the object a.

    Columns are given for a tab-separated or CSV file without header; they are None where they are the rows' own.
    `is_text` and `is_json` say how a file is written whatever it is called, `form` says it in words. `label_names` are
    those of each column that `datasets` calls a ClassLabel: rows have names for numbers, None for -1.

    Raises InputError if the file can't be read, its header can't be used, or pyarrow is missing; iterating raises it
    where the rest can't be read.
    """

    def __init__(self, path: str, columns: tuple[str, ...] | None = None, is_text=False, is_json=False):
        self.path, self.columns, self.unit = path, columns, "line"  # what `Row.number` counts: "line" or "row"
        self.label_names: dict[str, tuple[str, ...]] = {}
        ending = os.path.splitext(path.lower().removesuffix(".gz"))[1]
        # `_read` yields rows as the file has them, and `_parse` returns the values of one.
        if is_text:
            self.form, self._read, self._parse = "lines of text", self._texts, str
        elif ending in TABLE_ENDINGS and not is_json:
            self._read, self._parse, self.unit = self._typed_rows, self._with_label_names, "row"
            with open_table(path) as table:
                self.form, self.columns = table.form, tuple(table.schema.names)
                self.label_names = label_names(table, path)
        elif is_json or ending in JSON_ENDINGS:
            self.form, self._read, self._parse = "JSON lines", self._json_lines, _parse_json
            if next((line.content for line in read_lines(path) if line.content.strip()), b"").startswith(b"["):
                self.form, self._read, self._parse, self.unit = "a list of JSON", self._json_list, _flatten, "row"
        else:
            is_csv = ending == ".csv"
            self.form = "comma-separated" if is_csv else "tab-separated"
            self._read, self._parse = self._table_rows, self._by_column
            self._split = self._csv_lines if is_csv else self._tsv_lines
            self._has_header = columns is None
            if self._has_header:
                self._read_header(is_csv)

    def __iter__(self) -> collections.abc.Iterator[Row]:
        for row in self._read():
            if row.error is None:
                try:
                    row = row._replace(values=self._parse(row.values))
                except InputError as error:
                    row = row._replace(values=None, error=f"{self.place(row.number)}: {error}")
            yield row

    def records(
        self, on_bad: collections.abc.Callable[[str], None] = refuse, skips_empty_lines: bool = False
    ) -> collections.abc.Iterator[tuple[Place, dict[str, typing.Any]]]:
        """Yields the place and the values, by column, of each row; `on_bad` is given a sentence on each without any.

        An empty line between JSON lines may be taken to say nothing.
        """
        for row in self:
            if row.error and skips_empty_lines and self.columns is None and not row.content.strip():
                continue
            if row.error or not isinstance(row.values, dict):
                on_bad(row.error or f"{self.place(row.number)}: not a JSON object")
            else:
                yield self.place(row.number), row.values

    def place(self, number: int) -> Place:
        return Place(self.path, self.unit, number)

    def check_columns(self, wanted: list[str], found: tuple[str, ...], how: str) -> None:
        """Raises InputError, which ends with `how` to name others, unless wanted columns are there, each once."""
        for name in wanted:
            if name not in found:
                raise InputError(f"{self.path}, line 1: no column named {name}; the header has {listed(found)}; {how}")
            if found.count(name) > 1:
                raise InputError(f"{self.path}, line 1: two columns are called {name}; give each a different name")

    def _texts(self):
        for line in read_lines(self.path):
            try:
                yield Row(line.number, decode(self.path, line).removesuffix("\r"), None, line.content, line.position)
            except InputError as error:
                yield Row(line.number, None, str(error), line.content, line.position)

    # Tables: lines of values, the first of them the names of the columns.

    def _read_header(self, is_csv):
        header = next(self._split(), None)
        if header is None:
            raise InputError(f"{self.path} is empty; its first line must name the columns")
        if header.error:
            raise InputError(header.error)
        self.columns = tuple(header.values)
        # Other separators than commas are named before the rows look like bad ones.
        if is_csv and len(self.columns) == 1 and "\t" in self.columns[0]:
            raise InputError(
                f"{self.path}, line 1: the columns are separated by tabs, not commas; give the file a name that "
                "ends in .tsv, and pass `task_name=tsv`"
            )
        if is_csv and len(self.columns) == 1 and ";" in self.columns[0]:
            raise InputError(
                f"{self.path}, line 1: the columns are separated by semicolons, not commas; write the file with commas"
            )

    def _table_rows(self):
        lines = self._split()
        if self._has_header:
            next(lines, None)
        # Where the text is all there is, an empty line may be one.
        return _without_empty_end(lines, lambda row: row.values == [""]) if len(self.columns) > 1 else lines

    def _by_column(self, values):
        if len(values) != len(self.columns):
            owner = "the header has" if self._has_header else "there should be"
            raise InputError(f"{len(values)} columns, but {owner} {len(self.columns)}")
        return dict(zip(self.columns, values))

    def _tsv_lines(self):
        for row in self._texts():
            yield row if row.error else row._replace(values=row.values.split("\t"))

    def _csv_lines(self):
        csv.field_size_limit(sys.maxsize)  # else a text of more than 131,072 characters is refused
        taken: list[Line] = []
        num_bytes = 0

        def texts():
            nonlocal num_bytes
            for line in read_lines(self.path):
                taken.append(line)
                num_bytes += sys.getsizeof(line.content)
                if num_bytes > MAX_BYTES_PER_LINE:
                    raise InputError(
                        f"{self.place(taken[0].number)}: a row of more than {MAX_BYTES_PER_LINE >> 20} MB begins here; "
                        "close its quotation marks"
                    )
                yield decode(self.path, line) + "\n"

        reader = csv.reader(texts(), strict=True)
        try:
            for values in reader:
                content = b"\n".join(line.content for line in taken)
                yield Row(reader.line_num, values or [""], None, content, taken[-1].position)
                taken.clear()
                num_bytes = 0
        except csv.Error as error:
            raise InputError(f"{self.path}, line {reader.line_num}: not CSV ({error}); correct it") from error

    # JSON.

    def _json_lines(self):
        for row in _without_empty_end(self._texts(), lambda row: row.error is None and not row.values.strip()):
            yield row if row.error or row.values.strip() else row._replace(content=b"")

    def _json_list(self):
        lines = list(read_lines(self.path))
        try:
            found = load_json("\n".join(decode(self.path, line) for line in lines))
        except json.JSONDecodeError as error:
            raise InputError(f"{self.path}, line {error.lineno}: not JSON ({error.msg}); correct it") from error
        for number, value in enumerate(found, start=1):
            content = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
            yield Row(number, value, None, content, lines[-1].position)

    # Parquet, and what datasets has saved.

    def _typed_rows(self):
        number = 0
        with open_table(self.path) as table:
            for batch, position in table.batches():
                try:
                    rows = batch.to_pylist()
                except ValueError as error:  # no UTF-8, or a time in nanoseconds
                    raise InputError(f"can't read {self.path}: {first_line(error)}") from error
                for values in rows:
                    number += 1
                    yield Row(number, values, None, repr(values).encode("utf-8", "surrogatepass"), position)

    def _with_label_names(self, values):
        names = {column: _label_name(column, values.get(column), names) for column, names in self.label_names.items()}
        return _flatten(values | names)


def _parse_json(text):
    if not text.strip():
        raise InputError("an empty line, not JSON")
    try:
        return _flatten(load_json(text))
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON ({error.msg})") from error


def _without_empty_end(rows, is_empty):
    """Yields rows without the empty ones at the end."""
    empty = []
    for row in rows:
        empty.append(row)
        if not is_empty(row):
            yield from empty
            empty.clear()


def write_rows(path: str, rows: list[list[str]]) -> None:
    write_text(path, "".join(map(tab_separated, rows)))


def tab_separated(row: list[str]) -> str:
    """Returns a line of values; tabs and line ends inside a value become spaces."""
    return "\t".join(value.translate(_SPACES) for value in row) + "\n"


def _flatten(value):
    """Returns an object with values of inner objects as columns `a.b`; raises InputError if one is twice."""
    if not isinstance(value, dict):
        return value
    flat, objects = dict(value), [(name, inner) for name, inner in value.items() if isinstance(inner, dict)]
    for place, inner in objects:
        for key, item in inner.items():
            name = f"{place}.{key}"
            if name in flat:
                raise InputError(
                    f'"{shorten(name)}" is there twice, by itself and inside "{shorten(place)}"; rename one'
                )
            flat[name] = item
            if isinstance(item, dict):
                objects.append((name, item))
    return flat


def _label_name(column, value, names):
    """Returns the name of a numbered label, None for -1; raises InputError for others that have none."""
    if isinstance(value, list):
        return [_label_name(column, each, names) for each in value]
    if value is None or value == -1:
        return None
    if not isinstance(value, int) or not 0 <= value < len(names):
        raise InputError(
            f"{shorten(column)} holds {quote(value)}, but the file names {len(names)} labels, numbered from 0"
        )
    return names[value]


# Rows that can't be used, and remarks on a file.

_told: set[str] = set()


class BadRows:
    """Stops at the first row that can't be used, or leaves all out; units are the word for one, and for several."""

    def __init__(self, policy: str = "fail", units: tuple[str, str] = ("row", "rows")):
        self._skips, self._units = policy == "skip", units
        self._count, self._first = 0, None

    def refuse(self, message: str) -> None:
        """Leaves a row out; raises InputError where the policy is to fail."""
        if not self._skips:
            raise InputError(f"{message}; correct the row, or pass `on_bad_row=skip` to leave such rows out")
        self._leave_out(message)

    @contextlib.contextmanager
    def leaving_out(self) -> collections.abc.Iterator[None]:
        """Treats InputErrors of a block, which say by themselves what to correct, as `refuse` treats messages."""
        try:
            yield
        except InputError as error:
            if not self._skips:
                raise InputError(f"{error}; or pass `on_bad_row=skip` to leave such {self._units[1]} out") from error
            self._leave_out(str(error))

    def warn(self) -> None:
        if self._count:
            counted = f"{self._count:,} {self._units[self._count > 1]}"
            tell_once(f"warning: {counted} left out; the first: {self._first}")

    def _leave_out(self, message):
        self._count += 1
        self._first = self._first or message


def tell_once(message: str, level: int = DETAILS) -> None:
    """Prints a remark on a file once in a process: a run reads some files for several purposes."""
    if message not in _told and tell(message, level):
        _told.add(message)


def counted(number: int, what: str) -> str:
    """Returns a count in words, as "1 row" or "2,000 rows"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


# Files that are read once, though a run needs them for several purposes: labels, lengths, and to learn from.

_kept: contextvars.ContextVar[dict | None] = contextvars.ContextVar("kept", default=None)


@contextlib.contextmanager
def reading_once() -> collections.abc.Iterator[None]:
    """Keeps the results of functions that `read_once` decorates, until its end."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def read_once(read: collections.abc.Callable[..., list]) -> collections.abc.Callable[..., list]:
    """Decorates a function that reads a file; within `reading_once`, it reads once for the same arguments."""

    @functools.wraps(read)
    def wrapped(*arguments, **options):
        kept, key = _kept.get(), (read, arguments, tuple(options.items()))
        if kept is None:
            return read(*arguments, **options)
        if key not in kept:
            kept[key] = read(*arguments, **options)
        return list(kept[key])

    return wrapped
