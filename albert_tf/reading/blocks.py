"""Files of text, read in blocks and cut into lines, so that a line of any length is read in bounded memory."""

import codecs
import collections.abc
import gzip
import hashlib
import typing
import unicodedata
import zlib

from albert_tf.base.errors import InputError

# Cutting lines that are too long for the memory, or for a sentence.

MAX_CHARACTERS_PER_LINE = 1 << 16

# How far back from the longest possible piece to look for a good place to cut.
_CHARACTERS_TO_LOOK_BACK = 1 << 10

_ZERO_WIDTH_JOINER = "\u200d"


def cut_line(line: str) -> list[str]:
    """Returns a line in pieces of at most `MAX_CHARACTERS_PER_LINE` characters.

    Pieces end at the last space in reach, or else between two characters as readers see them. Spaces at the beginning
    of the line and between pieces are left out. All pieces but the last hold text.
    """
    line = line.lstrip()
    pieces, begin = [], 0
    while len(line) - begin > MAX_CHARACTERS_PER_LINE:
        end = _place_to_cut(line, begin + MAX_CHARACTERS_PER_LINE)
        pieces.append(line[begin:end].rstrip())
        begin = end
        while begin < len(line) and line[begin].isspace():
            begin += 1
    return [*pieces, line[begin:]]


class LongLine:
    """Cuts a line that arrives in parts into the pieces that `cut_line` gives for the whole line."""

    def __init__(self):
        self._rest, self._is_blank = "", True

    def add(self, text: str, is_last: bool) -> list[str]:
        """Returns the pieces that are complete; for a blank line, at its end, an empty one."""
        *pieces, self._rest = cut_line(self._rest + text)
        self._is_blank = self._is_blank and not pieces
        rest = self._rest.rstrip()
        if is_last and (rest or self._is_blank):
            pieces.append(rest)
        return pieces


def _place_to_cut(line, last):
    places = range(last, last - _CHARACTERS_TO_LOOK_BACK, -1)
    at_spaces = (place for place in places if line[place].isspace())
    between_characters = (place for place in places if not _belong_together(line[place - 1], line[place]))
    return next(at_spaces, None) or next(between_characters, last)


def _belong_together(left, right):
    """Returns whether `right` is a mark, joiner, modifier or conjoining jamo, which continues what `left` began."""
    return (
        unicodedata.category(right) in {"Mn", "Mc", "Me", "Cf"}
        or left == _ZERO_WIDTH_JOINER
        or "\U0001f3fb" <= right <= "\U0001f3ff"
        or "\u1160" <= right <= "\u11ff"
        or "\ud7b0" <= right <= "\ud7ff"
    )


class BadCorpusError(InputError):
    """The content of the corpus can't be used; reading it again gives the same error, unlike other `InputError`s."""


BYTES_PER_BLOCK = 1 << 18

_ZEROS = bytes(1 << 16)


class FileStart(typing.NamedTuple):
    """The beginning of a file, or all of it: the number and SHA-256 of its bytes as they are stored."""

    num_bytes: int
    sha256: str


class HashedFile:
    """A file that is hashed, as it is stored, while it is read from beginning to end."""

    def __init__(self, file: typing.BinaryIO):
        self._file, self._digest, self._num_bytes = file, hashlib.sha256(), 0

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)
        self._digest.update(content)
        self._num_bytes += len(content)
        return content

    def tell(self) -> int:
        return self._num_bytes

    @property
    def start(self) -> FileStart:
        return FileStart(self._num_bytes, self._digest.hexdigest())


def read_blocks(file: typing.BinaryIO, path: str) -> collections.abc.Iterator[bytes]:
    """Yields a file in blocks, decompressed if its name ends in .gz; raises BadCorpusError if it can't be text."""
    # GFile.readline drops carriage returns inside lines, so read blocks.
    num_bytes, stream = 0, gzip.GzipFile(fileobj=file, mode="rb") if path.endswith(".gz") else file
    try:
        while block := stream.read(BYTES_PER_BLOCK):
            if b"\0" in block and _ZEROS in block:
                raise BadCorpusError(
                    f"{path}: {len(_ZEROS):,} zero bytes in a row, from byte {num_bytes + block.find(_ZEROS):,} on, "
                    "which is not text; copy the file again, or leave it out"
                )
            num_bytes += len(block)
            yield block
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadCorpusError(f"can't read {path}: not a whole gzip file ({error})") from error


def split_at_line_ends(
    blocks: collections.abc.Iterable[bytes], max_bytes: int
) -> collections.abc.Iterator[tuple[bytes, bool, bool]]:
    """Yields (content, begins_line, ends_line): whole lines, or one part of a line that is longer than `max_bytes`.

    The content leaves out a byte order mark and the line feed at its end. A part never ends inside a character.
    """
    rest, begins_line = bytearray(), True
    for number, block in enumerate(blocks):
        if number == 0:
            block = block.removeprefix(codecs.BOM_UTF8)
        if not begins_line and (end := block.find(b"\n")) >= 0:
            yield rest + block[:end], False, True
            rest, block, begins_line = bytearray(), block[end + 1 :], True
        if (end := block.rfind(b"\n")) >= 0:
            yield rest + block[:end], True, True
            rest = bytearray(block[end + 1 :])
        else:
            rest += block
        if not begins_line or len(rest) > max_bytes:
            end = _last_character(rest)
            yield rest[:end], begins_line, False
            rest, begins_line = rest[end:], False
    if rest or not begins_line:
        yield rest, begins_line, True


def _last_character(content):
    """Returns where the last UTF-8 character begins, or the end if the last four bytes begin none."""
    places = range(len(content) - 1, max(len(content) - 5, -1), -1)
    return next((place for place in places if content[place] & 0b1100_0000 != 0b1000_0000), len(content))
