"""A WordPiece vocabulary: one piece a line, the line number is the id."""

import copy
import hashlib
import os
import re

import numpy as np

from albert_tf.base.errors import InputError, shorten
from albert_tf.base.files import read_text, write_text
from albert_tf.base.texts import MASK, ODD_TO_SECOND, check_truncation

PAD, UNK, CLS, SEP = "[PAD]", "[UNK]", "[CLS]", "[SEP]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)

# Of a file of UTF-8; a carriage return at the end of a line is part of the break.
_NOT_IN_A_LINE = re.compile("[\n\ud800-\udfff]|\r$")

UNUSED = re.compile(r"\[unused\d+\]")


class Vocabulary:
    """Pieces and their ids.

    Attributes:
        num_separators: How many [SEP] stand between the two texts of a pair.
        truncation: Which of them keeps the odd piece where both are cut, one of `base.texts.TRUNCATIONS`.

    Args:
        pieces: The pieces in the order of their ids.
        source: Where they come from; named in errors.

    Raises:
        InputError: A piece is empty, occurs twice or can't be a line of a file, or [UNK] is missing.
    """

    num_separators = 1
    truncation = ODD_TO_SECOND

    def __init__(self, pieces: list[str], source: str = "the vocabulary"):
        self.pieces = list(pieces)
        self.source = source
        self._ids: dict[str, int] = {}
        for piece_id, piece in enumerate(self.pieces):
            if not piece:
                raise InputError(f"{source}, line {piece_id + 1}: an empty line; every line must hold one piece")
            if _NOT_IN_A_LINE.search(piece):
                raise InputError(
                    f"{source}, line {piece_id + 1}: {piece[:40]!a} can't be a line of a file, because it "
                    "contains a line break or half a character; put an [unused] slot in its place"
                )
            if piece in self._ids:
                raise InputError(
                    f"{source}, line {piece_id + 1}: {shorten(piece)} is on line {self._ids[piece] + 1} too; remove "
                    "one, or if a model was trained with this file, write [unused0] in place of the first one"
                )
            self._ids[piece] = piece_id
        self.require(UNK)

    @classmethod
    def from_file(cls, path: str | os.PathLike) -> "Vocabulary":
        """Reads a vocabulary file.

        Raises:
            InputError: The file is missing, is not UTF-8, or breaks a rule of this class.
        """
        return cls(split_lines(read_text(path, "the vocabulary")), os.fspath(path))

    def to_file(self, path: str | os.PathLike) -> None:
        """Writes one piece a line."""
        write_text(path, "".join(f"{piece}\n" for piece in self.pieces))

    def __len__(self) -> int:
        return len(self.pieces)

    def __contains__(self, piece: str) -> bool:
        return piece in self._ids

    def id_of(self, piece: str) -> int:
        """Returns the id of a piece that is in the vocabulary."""
        return self._ids[piece]

    def require(self, *pieces: str) -> None:
        """Raises InputError if a piece is missing."""
        for piece in pieces:
            if piece not in self._ids:
                raise InputError(f"{self.source} has no {piece}; add it on a separate line")

    def with_truncation(self, truncation: str) -> "Vocabulary":
        """Returns the same vocabulary with another rule; raises InputError if there is no such rule."""
        same = copy.copy(self)
        same.truncation = check_truncation(truncation)
        return same

    def num_special(self, num_texts: int) -> int:
        """Returns how many [CLS] and [SEP] an input of one text, or of two, has."""
        return 2 if num_texts == 1 else 2 + self.num_separators

    @property
    def sha256(self) -> str:
        """Hash of the pieces in order, in hexadecimal."""
        return hashlib.sha256("\n".join(self.pieces).encode()).hexdigest()

    @property
    def real_piece_ids(self) -> np.ndarray:
        """Ids of the pieces that stand for text, not special tokens or [unused] slots: int32, ascending."""
        return np.array([i for i, piece in enumerate(self.pieces) if not self.is_reserved(piece)], np.int32)

    def is_reserved(self, piece: str) -> bool:
        """Whether a piece stands for no text: a special token or an [unused] slot."""
        return is_reserved(piece)


def split_lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def is_reserved(piece: str) -> bool:
    """Whether a piece is a special token or an [unused] slot, which no text may turn into."""
    return piece in SPECIAL_TOKENS or UNUSED.fullmatch(piece) is not None
