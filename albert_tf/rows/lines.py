"""Lines of files of any length, in bounded memory."""

import collections.abc
import typing

from albert_tf.corpus.blocks import read_blocks, split_at_line_ends
from albert_tf.errors import InputError
from albert_tf.files import reading
from albert_tf.text_encoding import not_utf8

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
