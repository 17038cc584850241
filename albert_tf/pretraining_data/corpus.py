"""Streams of documents from text files: one sentence a line, a blank line between documents."""

import codecs
import collections.abc
import dataclasses
import gzip
import io
import itertools
import zlib

import tensorflow as tf

from albert_tf.errors import InputError

ON_BAD_TEXT_CHOICES = ("fail", "skip", "replace")

_BUFFER_SIZE = 1 << 20


@dataclasses.dataclass
class CorpusReader:
    """Reads sentences and documents from plain or gzip files and counts what it skips.

    Attributes:
        paths: Text files; a name that ends in ".gz" is decompressed.
        on_bad_text: What to do with a line that is not UTF-8: "fail", "skip" it, or "replace" the bad bytes by U+FFFD
            (which the tokenizer's normalisation removes).
        num_bad_lines: How many such lines were skipped or mended so far.
    """

    paths: list[str]
    on_bad_text: str = "fail"
    num_bad_lines: int = 0

    def lines(self) -> collections.abc.Iterator[str]:
        """Yields every line of every file without the spaces at its ends; an empty one after each file.

        Raises:
            InputError: A file can't be read, or a line is not UTF-8 and `on_bad_text` is "fail".
        """
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
            for number, line in enumerate(stream, start=1):
                line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                try:
                    yield line.decode("utf-8").strip()
                except UnicodeDecodeError as error:
                    self.num_bad_lines += 1
                    if self.on_bad_text == "fail":
                        raise InputError(
                            f"{path}, line {number}: not valid UTF-8; convert the file, or pass "
                            "--on_bad_text=skip to leave such lines out or --on_bad_text=replace to mend them"
                        ) from error
                    if self.on_bad_text == "replace":
                        yield line.decode("utf-8", "replace").strip()


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
