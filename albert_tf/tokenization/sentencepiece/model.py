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

import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory
from tensorflow_text.python.ops import sentencepiece_tokenizer

from albert_tf.base.errors import InputError, first_line, quote
from albert_tf.base.files import read_bytes, write_bytes
from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK, Vocabulary, is_reserved

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


# The vocabulary of a SentencePiece model.

# What special tokens are called besides their names here.
_OTHER_NAMES = {PAD: ("<pad>",), CLS: ("<cls>", "<s>"), SEP: ("<sep>", "</s>"), MASK: ("<mask>",)}


class SentencePieceVocabulary(Vocabulary):
    """A model's pieces, and [unused] slots; special tokens are also known by the names that they have elsewhere."""

    def __init__(self, model: SentencePieceModel, num_unused: int = 0, num_separators: int = 1):
        self.num_separators = num_separators
        texts = [piece.text for piece in model.pieces]
        known = set(texts)
        names = {UNK: next(piece.text for piece in model.pieces if piece.type == UNKNOWN)}
        for token, others in _OTHER_NAMES.items():
            found = next((name for name in (token, *others) if name in known), None)
            if found is None:
                raise InputError(
                    f"{model.source} has no piece {' or '.join((token, *others))}, which ALBERT needs; train one with "
                    "spm_train --control_symbols=[CLS],[SEP],[MASK] --pad_id=0 --unk_id=1"
                )
            names[token] = found
        self._reserved = {*names.values(), *(piece.text for piece in model.pieces if piece.type == CONTROL)}
        candidates = (f"[unused{number}]" for number in range(num_unused + len(texts)))
        unused = [name for name, _ in zip((name for name in candidates if name not in known), range(num_unused))]
        self._names = names
        super().__init__([*texts, *unused], model.source)
        self._ids.update({token: self._ids[name] for token, name in names.items()})

    def require(self, *pieces: str) -> None:
        super().require(*(self._names.get(piece, piece) for piece in pieces))

    def is_reserved(self, piece: str) -> bool:
        return piece in self._reserved or is_reserved(piece)

    @property
    def special_pieces(self) -> list[str]:
        """The model's names of the special tokens, in the order of `SPECIAL_TOKENS`."""
        return [self._names[token] for token in (PAD, UNK, CLS, SEP, MASK)]


# A SentencePiece model in memory, and the ops of tensorflow_text that encode with it.
#
# `tensorflow_text.SentencepieceTokenizer` is not used itself, because its model is gone as soon as TensorFlow
# forgets its kernels, which `tf.random.set_seed` and Keras's `clear_session` make it do. A model with a name of its
# own stays.

_OPS = sentencepiece_tokenizer.gen_sentencepiece_tokenizer


class _SharedModel(tf.saved_model.experimental.TrackableResource):
    """A model that stays in memory; tokenizers of the same model share it."""

    def __init__(self, content):
        super().__init__()
        self._content, self._name = content, hashlib.sha256(content).hexdigest()

    def _create_resource(self):
        return _OPS.sentencepiece_op(model=self._content, shared_name=self._name)

    def _initialize(self):
        """Leaves nothing to be done."""

    def _destroy_resource(self):
        """Leaves the model where it is, because others may use it."""


class Engine(tf.Module):
    """Encodes texts; whoever saves a graph that uses it must keep it as an attribute. InputError for a bad model."""

    def __init__(self, content: bytes, source: str):
        super().__init__()
        self._model = _SharedModel(content)
        try:
            self.tokenize(tf.constant(["a"]))
        except tf.errors.OpError as error:
            raise InputError(f"{source}: SentencePiece can't use this model: {first_line(error)}") from error

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns ids of texts string [N], int32 [N, (pieces)]."""
        values, splits = self._run(_OPS.sentencepiece_tokenize_op, texts)
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

    def tokenize_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Returns ids of texts string [N], and where their pieces begin and end in bytes, int [N, (pieces)] each."""
        values, splits, *offsets = self._run(_OPS.sentencepiece_tokenize_with_offsets_op, texts)
        return tuple(tf.RaggedTensor.from_row_splits(column, splits, validate=False) for column in (values, *offsets))

    def _run(self, op, texts):
        best_way = {"nbest_size": 0, "alpha": 1.0}
        plain = {"add_bos": False, "add_eos": False, "reverse": False}
        return op(self._model.resource_handle, texts, **best_way, **plain, out_type=tf.int32)
