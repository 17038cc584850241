"""Streams of documents from files.

Text files: one sentence a line, a blank line between documents. JSON lines: one document a line, in a field of text
whose lines are its sentences. Either may be gzip files.
"""

import codecs
import collections.abc
import contextlib
import dataclasses
import gzip
import io
import itertools
import json
import re
import zlib

import tensorflow as tf

from albert_tf.errors import InputError

ON_BAD_TEXT_CHOICES = ("fail", "skip", "replace")

_BUFFER_SIZE = 1 << 20

# JSON can spell them, but they have no UTF-8 form.
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclasses.dataclass
class CorpusReader:
    """Reads sentences and documents from plain or gzip files and counts what it skips.

    Attributes:
        paths: Files; a name that ends in ".gz" is decompressed; ".jsonl" and ".jsonl.gz" are JSON lines, all else text.
        on_bad_text: What to do with a line that is not UTF-8: "fail", "skip" it, or "replace" the bad bytes by U+FFFD
            (which the tokenizer's normalisation removes). A line of JSON that holds no document can't be mended:
            "replace" skips it.
        json_field: The field of a JSON object that holds the text.
        num_bad_lines: How many such lines were skipped or mended since `lines` last began.
    """

    paths: list[str]
    on_bad_text: str = "fail"
    json_field: str = "text"
    num_bad_lines: int = 0

    def lines(self) -> collections.abc.Iterator[str]:
        """Yields every line of every file without the spaces at its ends; an empty one after each file or JSON object.

        Raises:
            InputError: A file can't be read, or a line is not UTF-8 or holds no document in JSON, and `on_bad_text` is
                "fail".
        """
        self.num_bad_lines = 0
        for path in self.paths:
            try:
                yield from self._lines_of(path)
            except tf.errors.OpError as error:
                raise InputError(f"can't read {path}: {error.message}") from error
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise InputError(f"can't read {path}: not a whole gzip file ({error})") from error
            yield ""

    def sentences(self) -> collections.abc.Iterator[str]:
        """Yields every line that is not blank."""
        return (line for line in self.lines() if line)

    def documents(self) -> collections.abc.Iterator[list[str]]:
        """Yields each document as its list of sentences; a document never spans two files."""
        for is_sentence, lines in itertools.groupby(self.lines(), key=bool):
            if is_sentence:
                yield list(lines)

    def _lines_of(self, path):
        with tf.io.gfile.GFile(path, "rb") as file:
            stream = io.BufferedReader(_Bytes(file), _BUFFER_SIZE)
            if path.endswith(".gz"):
                stream = gzip.GzipFile(fileobj=stream)
            is_json = path.removesuffix(".gz").endswith(".jsonl")
            read = self._read_json if is_json else _read_text
            for number, line in enumerate(stream, start=1):
                line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                try:
                    yield from read(line, "strict")
                except _BadLine as error:
                    self.num_bad_lines += 1
                    if self.on_bad_text == "fail":
                        raise InputError(
                            f"{path}, line {number}: {error}, or pass --on_bad_text=skip to leave such lines out or "
                            "--on_bad_text=replace to mend them where that is possible"
                        ) from error
                    if self.on_bad_text == "replace":
                        with contextlib.suppress(_BadLine):
                            yield from read(line, "replace")

    def _read_json(self, line, errors):
        """Returns the sentences of the document that a line of JSON holds, and an empty line to end it."""
        [line] = _read_text(line, errors)
        if not line:
            return []
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _BadLine(f"not valid JSON ({error}); mend the line") from error
        text = values.get(self.json_field) if isinstance(values, dict) else None
        if not isinstance(text, str):
            raise _BadLine(f'no JSON object with text in "{self.json_field}"; name the field by --json_field')
        if errors == "strict" and _LONE_SURROGATES.search(text):
            raise _BadLine("half a surrogate pair, which is no character; mend the line")
        sentences = (sentence.strip() for sentence in _LONE_SURROGATES.sub("\ufffd", text).split("\n"))
        return [*filter(None, sentences), ""]


class _BadLine(ValueError):
    """A line can't be read; the message says why and what to do."""


def _read_text(line, errors):
    """Returns a line, decoded, as a list of one."""
    try:
        return [line.decode("utf-8", errors).strip()]
    except UnicodeDecodeError as error:
        raise _BadLine("not valid UTF-8; convert the file") from error


class _Bytes(io.RawIOBase):
    """A GFile as a stream of bytes; the lines that it reads itself lack every carriage return, also inside them."""

    def __init__(self, file):
        self._file = file

    def readable(self):
        return True

    def readinto(self, buffer):
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)
