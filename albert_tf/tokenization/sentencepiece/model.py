"""Files of SentencePiece models: their pieces, and the special ones among them.

A model is a protocol buffer (sentencepiece_model.proto), of which the few fields that are needed are declared here.
tensorflow_text, which encodes with the model, tells neither types nor scores.
"""

import collections.abc
import dataclasses
import functools
import hashlib
import os
import typing

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from albert_tf.errors import InputError, quote
from albert_tf.files import read_bytes, write_bytes

# What stands for a space, and so at the begin of a piece that begins a word.
SPACE_MARK = "▁"

# Types of pieces.
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6

_UNIGRAM = 1

# What tells a table that composes Hangul, and so of NFKC, from those that don't: a syllable that it makes.
_COMPOSED = "가".encode()
_NFKC = b"nmt_nfkc"

# Messages with the name, type and number of each field; others are kept when a model is written again.
_PACKAGE = "albert_tf.sentencepiece"
_BYTES, _FLOAT, _INT32, _MESSAGE = 12, 2, 5, 11
_MESSAGES = {
    "SentencePiece": {"piece": (_BYTES, 1), "score": (_FLOAT, 2), "type": (_INT32, 3)},
    "TrainerSpec": {"model_type": (_INT32, 3)},
    "NormalizerSpec": {"name": (_BYTES, 1), "precompiled_charsmap": (_BYTES, 2)},
    "ModelProto": {"pieces": (_MESSAGE, 1), "trainer_spec": (_MESSAGE, 2), "normalizer_spec": (_MESSAGE, 3)},
}


class Piece(typing.NamedTuple):
    text: str  # what it matches, spaces as `SPACE_MARK`
    score: float  # its logarithmic probability
    type: int  # `NORMAL`, `UNKNOWN`, `CONTROL` or another


@dataclasses.dataclass(frozen=True)
class SentencePieceModel:
    """A SentencePiece model, read from its file.

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
        """Reads the bytes of a file.

        Raises:
            InputError: It is no such model.
        """
        try:
            model = _model_class().FromString(content)
            pieces = tuple(map(_read_piece, model.pieces))
        except (ValueError, message.DecodeError) as error:
            raise _no_model(source) from error
        if sum(piece.type == UNKNOWN for piece in pieces) != 1:
            raise _no_model(source)
        normalizer, trainer = model.normalizer_spec, model.trainer_spec
        is_composing, is_unigram = b"nfkc" in normalizer.name, trainer.model_type == _UNIGRAM
        return cls(content, pieces, normalizer.precompiled_charsmap, is_composing, is_unigram, source)

    @classmethod
    def of_unigrams(
        cls, pieces: collections.abc.Iterable[Piece], normalizer: bytes, source: str
    ) -> "SentencePieceModel":
        """Makes a model of unigrams from pieces.

        Args:
            pieces: The pieces in the order of their ids.
            normalizer: The precompiled table of its normaliser; empty if it changes nothing.
            source: Where they come from; named in errors.

        Raises:
            InputError: There is not one unknown piece, or a piece can't be one.
        """
        model = _model_class()()
        for text, score, kind in pieces:
            model.pieces.add(piece=text.encode(), score=score, type=kind)
        model.normalizer_spec.precompiled_charsmap = normalizer
        model.normalizer_spec.name = _NFKC if _COMPOSED in normalizer else b""
        return cls.from_bytes(model.SerializeToString(deterministic=True), source)

    def arranged(self, texts: collections.abc.Sequence[str], unknown: str) -> "SentencePieceModel":
        """Returns the model with its pieces in another order, and so with other ids.

        Args:
            texts: The pieces in that order. One that the model lacks becomes a control piece, which no text turns into.
            unknown: Which of them is the unknown piece.

        Raises:
            InputError: A piece that text turns into is not among them.
        """
        given, model = _model_class().FromString(self.content), _model_class().FromString(self.content)
        names = [unknown if piece.type == UNKNOWN else piece.text for piece in self.pieces]
        pieces = dict(zip(names, given.pieces))
        of_text = {read.text for read in self.pieces if read.type not in (UNKNOWN, CONTROL)}
        missing = of_text - set(texts)
        if missing:
            raise InputError(
                f"{self.source}: its piece {quote(min(missing))} is not in the vocabulary that goes with it; name the "
                "model that the vocabulary was made from"
            )
        del model.pieces[:]
        for text in texts:
            added = model.pieces.add(type=CONTROL)
            if text in pieces:
                added.CopyFrom(pieces[text])
            added.piece = text.encode()
        return self.from_bytes(model.SerializeToString(deterministic=True), self.source)

    def to_file(self, path: str | os.PathLike) -> None:
        """Writes the file as it was read."""
        write_bytes(path, self.content)

    @property
    def sha256(self) -> str:
        """Hash of the file, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def with_control_pieces(self, is_control: collections.abc.Callable[[str], bool]) -> bytes:
        """Returns the bytes of a model with control pieces, which no text turns into, where `is_control` says so.

        The unknown piece stays what it is.
        """
        model = _model_class().FromString(self.content)
        for piece, read in zip(model.pieces, self.pieces):
            if read.type not in (UNKNOWN, CONTROL) and is_control(read.text):
                piece.type = CONTROL
        return model.SerializeToString(deterministic=True)


def _no_model(source):
    return InputError(f"{source} is not a SentencePiece model; name the .model file that SentencePiece has written")


def _read_piece(piece):
    if not piece.piece or b"\0" in piece.piece:  # of which SentencePiece crashes
        raise ValueError("a piece without text")
    return Piece(piece.piece.decode("utf-8"), piece.score, piece.type)


@functools.cache
def _model_class():
    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in _MESSAGES.items():
        declared = file.message_type.add(name=name)
        for field, (kind, number) in fields.items():
            added = declared.field.add(name=field, type=kind, number=number)
            added.label = added.LABEL_REPEATED if field == "pieces" else added.LABEL_OPTIONAL
            if kind == _INT32:  # a normal piece, a model of unigrams
                added.default_value = "1"
    for field, name in zip(file.message_type[-1].field, _MESSAGES):
        field.type_name = f".{_PACKAGE}.{name}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.ModelProto"))
