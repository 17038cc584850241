"""Files of SentencePiece models: their pieces, and the special ones among them.

A model is a protocol buffer (sentencepiece_model.proto). Field 1 is a piece, with its text, score and type as fields 1,
2 and 3; field 2 is how the model was trained, with its kind as field 3; field 3 is the normaliser, with its name and
its table as fields 1 and 2. Reading these few here spares a library; tensorflow_text, which encodes with the model,
tells neither types nor scores.
"""

import collections.abc
import dataclasses
import hashlib
import os
import struct
import typing

from albert_tf.errors import InputError
from albert_tf.files import read_bytes, write_bytes

# What stands for a space, and so at the begin of a piece that begins a word.
SPACE_MARK = "▁"

# Types of pieces.
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6

_PIECE, _TRAINER, _NORMALIZER = 1, 2, 3
_UNIGRAM = 1

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_MOST_VARINT_BYTES = 10


class Piece(typing.NamedTuple):
    """One piece of a model.

    Attributes:
        text: What it matches, spaces as `SPACE_MARK`.
        score: Its logarithmic probability.
        type: `NORMAL`, `UNKNOWN`, `CONTROL` or another.
    """

    text: str
    score: float
    type: int


@dataclasses.dataclass(frozen=True)
class SentencePieceModel:
    """A model as its file holds it.

    Attributes:
        content: The bytes of the file.
        pieces: The pieces in the order of their ids.
        normalizer: The precompiled table of its normaliser; empty if it changes nothing.
        composes: Whether its normaliser puts characters together (NFKC).
        is_unigram: Whether it is of unigrams, each with a probability, as ALBERT's are.
        source: Where it comes from; named in errors.
    """

    content: bytes
    pieces: tuple[Piece, ...]
    normalizer: bytes
    composes: bool
    is_unigram: bool
    source: str

    @classmethod
    def from_file(cls, path: str | os.PathLike) -> "SentencePieceModel":
        """Reads a file.

        Raises:
            InputError: The file is missing or holds no such model.
        """
        return cls.from_bytes(read_bytes(path, "the SentencePiece model"), os.fspath(path))

    @classmethod
    def from_bytes(cls, content: bytes, source: str = "the SentencePiece model") -> "SentencePieceModel":
        """Reads what a file holds.

        Raises:
            InputError: It is no such model.
        """
        try:
            fields = list(_fields(content))
            pieces = tuple(_read_piece(value) for number, value, _ in fields if number == _PIECE)
            trainer, normalizer = (
                {number: value for part, spec, _ in fields if part == kind for number, value, _ in _fields(spec)}
                for kind in (_TRAINER, _NORMALIZER)
            )
            composes = b"nfkc" in normalizer.get(1, b"")
            table, is_unigram = normalizer.get(2, b""), trainer.get(3, _UNIGRAM) == _UNIGRAM
        except (ValueError, TypeError, IndexError, struct.error) as error:
            raise _no_model(source) from error
        if sum(piece.type == UNKNOWN for piece in pieces) != 1:
            raise _no_model(source)
        return cls(content, pieces, table, composes, is_unigram, source)

    def to_file(self, path: str | os.PathLike) -> None:
        """Writes the file as it was read."""
        write_bytes(path, self.content)

    @property
    def sha256(self) -> str:
        """Hash of the file, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def with_control_pieces(self, is_control: collections.abc.Callable[[str], bool]) -> bytes:
        """Returns the bytes of a model in which some pieces are control pieces, which no text turns into.

        Args:
            is_control: Given the text of a piece, says whether it is to be one; the unknown piece stays what it is.
        """
        parts, pieces = [], iter(self.pieces)
        for number, value, raw in _fields(self.content):
            if number == _PIECE:
                piece = next(pieces)
                if piece.type not in (UNKNOWN, CONTROL) and is_control(piece.text):
                    kept = b"".join(field for name, _, field in _fields(value) if name != 3)
                    raw = _message(_PIECE, kept + bytes([3 << 3 | _VARINT, CONTROL]))
            parts.append(raw)
        return b"".join(parts)


def _no_model(source):
    return InputError(f"{source} is no SentencePiece model; name the .model file that SentencePiece has written")


def _read_piece(message):
    text, score, kind = "", 0.0, NORMAL
    for number, value, _ in _fields(message):
        if number == 1:
            text = value.decode("utf-8")
        elif number == 2:
            [score] = struct.unpack("<f", value)
        elif number == 3:
            kind = value
    if not text:
        raise ValueError("a piece without text")
    return Piece(text, score, kind)


def _fields(message: bytes) -> collections.abc.Iterator[tuple[int, int | bytes, bytes]]:
    """Yields number, value and bytes of each field of a protocol buffer.

    Raises:
        ValueError: It is none.
    """
    begin, end = 0, len(message)
    while begin < end:
        key, place = _read_varint(message, begin)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, place = _read_varint(message, place)
        elif wire_type in (_FIXED_64, _FIXED_32, _BYTES):
            if wire_type == _BYTES:
                length, place = _read_varint(message, place)
            else:
                length = 8 if wire_type == _FIXED_64 else 4
            value, place = message[place : place + length], place + length
        else:
            raise ValueError(f"wire type {wire_type}")
        if place > end or not number:
            raise ValueError("the message ends within a field")
        yield number, value, message[begin:place]
        begin = place


def _read_varint(message, place):
    """Returns a number of base 128, the lowest digits first, and where what follows it begins."""
    value = 0
    for digit in range(_MOST_VARINT_BYTES):
        byte = message[place + digit]
        value |= (byte & 0x7F) << (7 * digit)
        if byte < 0x80:
            return value, place + digit + 1
    raise ValueError("a number of more than 64 bits")


def _message(number, content):
    """Returns a field that holds a message."""
    length, digits = len(content), []
    while length >= 0x80:
        digits.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([number << 3 | _BYTES, *digits, length]) + content
