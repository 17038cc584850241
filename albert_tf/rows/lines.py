"""Lines of files of any length, in bounded memory."""

import collections.abc
import gzip
import typing
import zlib

from albert_tf.corpus.blocks import split_at_line_ends
from albert_tf.errors import InputError
from albert_tf.file_errors import file_errors, reason_of
from albert_tf.files import gfile_for
from albert_tf.text_encoding import not_utf8

MAX_BYTES_PER_LINE = 1 << 26

_BYTES_PER_BLOCK = 1 << 18


class Line(typing.NamedTuple):
    """A line of a file.

    Attributes:
        number: Its number, from 1.
        content: Its bytes, without the line feed.
        position: How many bytes of the file, as it is stored, were read by then.
    """

    number: int
    content: bytes
    position: int


def read_lines(path: str) -> collections.abc.Iterator[Line]:
    """Yields the lines of a file, a gzip file if its name ends in .gz; a byte order mark is left out.

    Raises:
        InputError: It can't be read, or a line is longer than `MAX_BYTES_PER_LINE`.
    """
    try:
        with gfile_for(path).GFile(path, "rb") as file:
            stream = gzip.GzipFile(fileobj=file, mode="rb") if path.endswith(".gz") else file
            number = 1
            for content, begins_line, ends_line in split_at_line_ends(_blocks(stream), MAX_BYTES_PER_LINE):
                if not (begins_line and ends_line):
                    raise InputError(
                        f"{path}, line {number}: longer than {MAX_BYTES_PER_LINE >> 20} MB; is each input on a line "
                        "of its own?"
                    )
                for line in bytes(content).split(b"\n"):
                    yield Line(number, line, file.tell())
                    number += 1
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:  # the first is an OSError, too
        raise InputError(f"can't read {path}: not a whole gzip file ({error})") from error
    except file_errors() as error:
        raise InputError(f"can't read {path}: {reason_of(error)}") from error


def decode(path: str, line: Line) -> str:
    """Returns the text of a line.

    Raises:
        InputError: It is not UTF-8.
    """
    try:
        return line.content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(f"{path}, line {line.number}", line.content, "the file") from error


def _blocks(stream):
    is_first = True
    while block := stream.read(_BYTES_PER_BLOCK):
        yield block.removeprefix(b"\xef\xbb\xbf") if is_first else block
        is_first = False
