"""The formats that a corpus may have, each read as batches of lines.

Text: one sentence a line, a blank line between documents. JSON lines and tables: one document a line or row, in a field
or column of text whose lines are its sentences, or in several, one after the other. Text and JSON lines may be
gzip files. A bad line is skipped or mended on request, but a file whose lines are mostly bad is refused: it is not
what its name says.
"""

import collections
import collections.abc
import contextlib
import json
import re

from albert_tf.base.files import guess_encoding, reading
from albert_tf.reading import tables
from albert_tf.reading.blocks import (
    BYTES_PER_BLOCK,
    MAX_CHARACTERS_PER_LINE,
    BadCorpusError,
    HashedFile,
    LongLine,
    cut_line,
    read_blocks,
    split_at_line_ends,
)
from albert_tf.reading.values import columns_of

# The files of a folder that belong to a corpus.
CORPUS_ENDINGS = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", *tables.TABLE_ENDINGS)

_JSON_LINES_ENDINGS = (".jsonl", ".ndjson", ".json")

# A line of JSON, or a row of a table.
MAX_BYTES_PER_DOCUMENT = 1 << 26

# A file whose lines are mostly bad is refused if it has at least this many bad ones: at its end, and before that.
_BAD_LINES_OF_FILE = 10
_BAD_LINES_SO_FAR = 1000

_NOT_BLANK = re.compile(rb"[^\n]+")
_BLANK_LINES = re.compile(r"\n{3,}")

# JSON can express lone surrogates, but UTF-8 can't.
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


class BadLineError(ValueError):
    """A line or row can't be read; the message says why and what to do."""


class CorpusFile:
    """One file of a corpus, to be read once; of a text line that is longer than a block, each part is judged by itself.

    Attributes:
        counts: "bytes" (of text, decompressed), "bad_lines" and "long_lines" so far; a reader may remove entries.
        position: How many bytes of the file, as it is stored, were read so far.
        stored: The file as it is stored; its `start` covers the lines so far, and the whole file after the last one.
        is_text: Whether blank lines end documents.
    """

    # What else to do with a bad line or row than to correct it; how many bad ones make a file look hopeless before its
    # end, and how they are told.
    remedies = "`on_bad_text=skip` to leave such {}s out or `on_bad_text=replace` to mend them where that is possible"
    bad_so_far, are_bad = _BAD_LINES_SO_FAR, "are bad so far"

    def __init__(self, path: str, text_field: str, on_bad_text: str):
        self._path, self._text_field, self._on_bad_text = path, text_field, on_bad_text
        self._is_table = path.endswith(tables.TABLE_ENDINGS)
        self._is_json_lines = path.removesuffix(".gz").endswith(_JSON_LINES_ENDINGS)
        self.is_text = not self._is_table and not self._is_json_lines
        self.counts, self.position, self.stored = collections.Counter(), 0, None
        self._num_good = self._num_bad = 0
        self._first_bad = None
        self._fields_found = set()

    def batches(self) -> collections.abc.Iterator[list[str]]:
        """Yields lines without the spaces at their ends, many at a time; an empty line ends a document.

        Lines of more than `MAX_CHARACTERS_PER_LINE` characters come in pieces. Errors are those of
        `CorpusReader.lines`, and BadCorpusError where most lines are bad.
        """
        with reading(self._path) as file:
            self.stored = HashedFile(file)
            for lines in self.read():
                self._refuse_mostly_bad(self.bad_so_far)
                yield lines
        self._refuse_mostly_bad(_BAD_LINES_OF_FILE)

    def read(self) -> collections.abc.Iterator[list[str]]:
        """Yields what `batches` does, of the open file, and counts bad lines or refuses the first."""
        if self._is_table:
            return self._read_table()
        return (self._read_json_lines if self._is_json_lines else self._read_text)(self._blocks())

    def read_whole(self) -> None:
        """Reads all that is stored: in a table, any row may lie anywhere."""
        while self.stored.read(BYTES_PER_BLOCK):
            pass

    def _blocks(self):
        for block in read_blocks(self.stored, self._path):
            self.counts["bytes"] += len(block)
            self.position = self.stored.tell()
            yield block

    def _read_text(self, blocks):
        number, long_line = 1, None
        for content, begins_line, ends_line in split_at_line_ends(blocks, BYTES_PER_BLOCK):
            num_ends = content.count(b"\n")
            try:
                text = content.decode()
                if num_ends > len(text) // 4:  # blank lines without end would take long
                    text = _BLANK_LINES.sub("\n\n", text)
                lines = text.split("\n")
                self._num_good += num_ends + 1
            except UnicodeDecodeError:
                lines = self._decode_each_line(content, number)
            if begins_line and ends_line:
                yield self._cut_long_lines(list(map(str.strip, lines)))
            else:
                if begins_line:
                    self.counts["long_lines"] += 1
                    long_line = LongLine()
                yield long_line.add("".join(lines), ends_line)
            number += num_ends + ends_line

    def _decode_each_line(self, content, number):
        lines = []
        for line in content.split(b"\n"):
            lines += self.parsed(lambda line, errors: [_decode(line, errors)], line, "line", number)
            number += 1
        return lines

    def _read_json_lines(self, blocks):
        number = 1
        for content, begins_line, ends_line in split_at_line_ends(blocks, MAX_BYTES_PER_DOCUMENT):
            if begins_line and ends_line:
                end = 0
                for line in _NOT_BLANK.finditer(content):
                    number += content.count(b"\n", end, line.start())
                    yield self._cut_long_lines(self.parsed(self._parse_json, line[0], "line", number))
                    end = line.end()
                number += content.count(b"\n", end)
            elif begins_line:
                self._count_bad_line(_too_long(), "line", number)
            number += ends_line
        self._check_fields()

    def _parse_json(self, line, errors):
        line = _decode(line, errors).strip()
        if not line:
            return []
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadLineError(f"not valid JSON ({error}); correct the line: each must be one whole object") from error
        if isinstance(values, list):
            raise BadLineError("an array, not one object; write one object a line, for instance with jq -c '.[]'")
        text = self._text_of(values) if isinstance(values, dict) else None
        if not isinstance(text, str):
            raise BadLineError(f'not a JSON object with text in "{self._text_field}"; name the field with `text_field`')
        if errors == "strict" and _LONE_SURROGATES.search(text):
            raise BadLineError("half a surrogate pair, which is not a character; correct the line")
        return _lines_of_document(_LONE_SURROGATES.sub("\ufffd", text))

    def _text_of(self, values):
        """Returns the text of an object, each field on lines of its own; None if there is none, or anything else."""
        names = columns_of(self._text_field, values)
        self._fields_found.update(name for name in names if name in values)
        texts = [values[name] for name in names if values.get(name) is not None]
        return "\n".join(texts) if texts and all(isinstance(text, str) for text in texts) else None

    def _check_fields(self):
        """Refuses a file where no object has one of several fields: its name is misspelt."""
        for name in columns_of(self._text_field, self._fields_found) if self._fields_found else ():
            if name not in self._fields_found:
                raise BadCorpusError(f'{self._path}: no object has a "{name}"; name the fields with `text_field`')

    def _read_table(self):
        self.read_whole()
        for number, (text, position) in enumerate(tables.read_texts(self._path, self._text_field), start=1):
            self.counts["bytes"] += len(text or b"")
            self.position = position
            yield self._cut_long_lines(self.parsed(self._parse_row, text, "row", number))

    def _parse_row(self, text, errors):
        if text is None:
            raise BadLineError(f'null instead of text in column "{self._text_field}"; fill it in')
        if len(text) > MAX_BYTES_PER_DOCUMENT:
            raise _too_long()
        return _lines_of_document(_decode(text, errors))

    def parsed(self, parse, content, unit, number):
        """Returns `parse(content, errors)`, or an empty list for a line or row that is bad and can't be mended."""
        try:
            lines = parse(content, "strict")
            # Half of a UTF-16 line feed leaves a line with only a zero byte.
            self._num_good += any(line.strip("\0") for line in lines)
            return lines
        except BadLineError as error:
            self._count_bad_line(error, unit, number)
        if self._on_bad_text == "replace":
            with contextlib.suppress(BadLineError):
                return parse(content, "replace")
        return []

    def _count_bad_line(self, error, unit, number):
        self.counts["bad_lines"] += 1
        self._num_bad += 1
        self._first_bad = self._first_bad or f"{self._path}, {unit} {number}: {error}"
        if self._on_bad_text == "fail":
            raise BadCorpusError(f"{self._first_bad}, or pass {self.remedies.format(unit)}") from error

    def _refuse_mostly_bad(self, num_bad):
        if self._num_bad >= num_bad and self._num_bad > self._num_good:
            raise BadCorpusError(
                f"{self._first_bad} ({self._num_bad:,} of {self._num_bad + self._num_good:,} {self.are_bad}, which is "
                f"too much for `on_bad_text={self._on_bad_text}`)"
            )

    def _cut_long_lines(self, lines):
        if max(map(len, lines), default=0) <= MAX_CHARACTERS_PER_LINE:
            return lines
        self.counts["long_lines"] += sum(len(line) > MAX_CHARACTERS_PER_LINE for line in lines)
        return [piece for line in lines for piece in cut_line(line)]


def _decode(line, errors):
    try:
        return line.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        encoding = guess_encoding(line)
        what = f"not valid UTF-8 but, by its looks, {encoding}" if encoding else "not valid UTF-8"
        how = f" (iconv -f {encoding} -t UTF-8)" if encoding else ""
        raise BadLineError(f"{what}; convert the file{how}") from error


def _too_long():
    return BadLineError(f"longer than {MAX_BYTES_PER_DOCUMENT >> 20} MB; cut the document up")


def _lines_of_document(text):
    """Returns the lines that are not blank, and an empty one to end the document."""
    return [*filter(None, map(str.strip, text.split("\n"))), ""]
