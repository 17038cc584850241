"""The interface of all tokenizers: text to pieces, ids and offsets, and back; saved and loaded as a folder."""

import abc
import collections.abc
import copy
import dataclasses
import hashlib
import inspect
import itertools
import json
import operator
import os
import re
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError, listed, quote
from albert_tf.base.files import read_json, write_json
from albert_tf.base.texts import ODD_TO_SECOND
from albert_tf.tokenization.model_inputs import pack_segments
from albert_tf.tokenization.vocabulary import CLS, SEP, UNK, Vocabulary


@dataclasses.dataclass(frozen=True)
class Encoding:
    """One encoded text or pair, [CLS] and [SEP] included.

    Attributes:
        tokens: The pieces.
        ids: Their ids.
        offsets: For each piece the half-open span (begin, end) of characters in the text it came from, as given,
            before normalisation; (0, 0) for [CLS] and [SEP], and an empty span for a space or mark by itself.
        segment_ids: 0 for the first text with its [CLS] and [SEP], 1 for the second with its [SEP].
    """

    tokens: list[str]
    ids: list[int]
    offsets: list[tuple[int, int]]
    segment_ids: list[int]

    def pieces_of_span(self, begin: int, end: int, segment_id: int = 0) -> tuple[int, int] | None:
        """Returns the first and the last piece (both inclusive) that hold a character of a span of the text.

        Args:
            begin: Where the span begins in the text as given.
            end: Where it ends; this character is not part of it.
            segment_id: Which text of a pair is meant.

        Returns:
            Positions in `tokens`; None where the span is empty or holds nothing but spaces and removed characters.
        """
        positions = np.flatnonzero(np.array(self.segment_ids) == segment_id)
        offsets = np.array(self.offsets).reshape([-1, 2])[positions]
        (first,), (last,) = pieces_of_spans(np.array([[begin, end]]), offsets)
        return None if first < 0 else (int(positions[first]), int(positions[last]))

    def span_of_pieces(self, first: int, last: int) -> tuple[int, int]:
        """Returns the half-open span of the text as given from the begin of one piece to the end of another.

        `pieces_of_span` of it gives the pieces back, and all that share characters with them: the marks over a letter
        may be pieces of their own.

        Args:
            first: Position of the first piece in `tokens`.
            last: Position of the last piece, itself part of the range.

        Raises:
            InputError: The pieces are out of order or range, [CLS] or [SEP], or of two texts.
        """
        if not 0 <= first <= last < len(self.tokens):
            raise InputError(
                f"first and last must be positions of pieces in order, from 0 to {len(self.tokens) - 1}. "
                f"Received: {first}, {last}"
            )
        if any(map(self._is_special, range(first, last + 1))):
            raise InputError(f"pieces {first} to {last} hold [CLS] or [SEP], which stand for no part of a text")
        return self.offsets[first][0], self.offsets[last][1]

    def _is_special(self, position):
        """Whether a piece is [CLS] or [SEP], as the first one and the last one are, and of no part of a text."""
        return self.tokens[position] in (self.tokens[0], self.tokens[-1]) and self.offsets[position] == (0, 0)


def pieces_of_spans(spans: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the first and the last piece that hold a character of each span of a text, int [U] each; -1 for none.

    A character that the tokenizer removes may be in no piece, also at either end of a span. Spans are half-open, int
    [U, 2]; the offsets int [P, 2] of the text's pieces are in order, and empty where a piece has no characters.
    """
    (pieces,) = np.nonzero(offsets[:, 0] < offsets[:, 1])
    begins, ends = offsets[pieces].T
    firsts = np.searchsorted(ends, spans[:, 0], side="right")
    lasts = np.searchsorted(begins, spans[:, 1], side="left") - 1
    is_held = (firsts <= lasts) & (spans[:, 0] < spans[:, 1])
    found = np.full([2, len(spans)], -1)
    found[:, is_held] = pieces[firsts[is_held]], pieces[lasts[is_held]]
    return found[0], found[1]


def check_pairs(texts: list[str], text_pairs: list[str] | None) -> None:
    if text_pairs is not None and len(texts) != len(text_pairs):
        raise InputError(f"there are {len(texts)} texts, but {len(text_pairs)} text_pairs; every text needs one")


_TEXTS_PER_BATCH = 1024

TOKENIZER_FILE = "tokenizer.json"

# What tokenizer.json calls the kind of a tokenizer; files of WordPiece hold none.
KIND = "kind"
# Changes no ids of texts, but what is left of pairs; written where it is not the default.
TRUNCATION = "truncation"


class Tokenizer(abc.ABC):
    """The interface of all tokenizers.

    Args:
        vocabulary: The pieces.
        truncation: Which text of a pair keeps the odd piece where a model's inputs are cut, as of `Vocabulary`.

    Attributes:
        vocabulary_file: The name of the file with the pieces in a tokenizer's folder.
        resources: What a `tf.Module` whose graph encodes texts must keep as an attribute, so that it is saved too.
    """

    vocabulary_file: str
    # Settings that tokenizer.json did not hold at first, and what a file without them means.
    _later_settings: typing.ClassVar[dict] = {}

    def __init__(self, vocabulary: Vocabulary, truncation: str = ODD_TO_SECOND):
        self.vocabulary = vocabulary = vocabulary.with_truncation(truncation)
        self.resources: list[tf.Module] = []
        self._pieces = np.array(vocabulary.pieces, object)

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str, text_pair: str | None = None) -> Encoding:
        """Encodes one text, or two as a pair; errors as of `encode_batch`."""
        return self.encode_batch([text], None if text_pair is None else [text_pair])[0]

    def encode_batch(self, texts: list[str], text_pairs: list[str] | None = None) -> list[Encoding]:
        """Encodes many texts, or as many pairs of them, much faster than one by one.

        Raises:
            InputError: The vocabulary lacks [CLS] or [SEP], or the numbers of texts differ.
        """
        self.vocabulary.require(CLS, SEP)
        segments = [texts] if text_pairs is None else [texts, text_pairs]
        check_pairs(texts, text_pairs)
        encodings = []
        for begin in range(0, len(texts), _TEXTS_PER_BATCH):
            batch = slice(begin, begin + _TEXTS_PER_BATCH)
            located = [self._locate(segment[batch]) for segment in segments]
            columns = [self._add_special_tokens(*each, segment_id) for segment_id, each in enumerate(located)]
            if text_pairs is not None:
                columns[0] = map(self._with_further_separators, columns[0])
            for rows in zip(*columns):
                encodings.append(Encoding(*rows[0] if len(rows) == 1 else map(operator.add, *rows)))
        return encodings

    def __call__(self, text: list[str], text_pair: list[str] | None = None, **options) -> dict[str, tf.Tensor]:
        """Encodes texts or pairs as a model's inputs, padded up to the longest; `TokenizerLayer` can also cut.

        ```python
        tokenizer(["나는 밥을 먹었다.", "ㅋㅋ"], padding=True, return_tensors="tf")
        ```

        Args:
            text: N texts.
            text_pair: The second texts of N pairs.
            **options: `padding=True, return_tensors="tf"`, as of Hugging Face's tokenizers; no others.

        Returns:
            int32 [N, S] `input_ids`, `input_mask` (1 for pieces, 0 for padding) and `segment_ids` (1 for the second
            text and its [SEP]).

        Raises:
            InputError: There are other options, these are no lists of texts of one length, or the vocabulary lacks a
                special token.
        """
        if options != {"padding": True, "return_tensors": "tf"}:
            raise InputError(
                "a tokenizer is called with padding=True and return_tensors='tf' alone; use TokenizerLayer for inputs "
                f"of another length, and encode_batch for lists. Received: {options}"
            )
        segments = [text] if text_pair is None else [text, text_pair]
        for segment in segments:
            if not isinstance(segment, (list, tuple)) or not all(isinstance(each, str) for each in segment):
                raise InputError(f"text and text_pair must be lists of strings. Received: {quote(segment)}")
        check_pairs(text, text_pair)
        ids = [self.encode_ids(list(segment)) for segment in segments]
        return pack_segments(ids, self.vocabulary, np.iinfo(np.int32).max, pads_to_longest=True)

    def decode(self, ids: collections.abc.Iterable[int]) -> str:
        """Returns the text of ids, without special tokens and [unused] slots; [UNK] stays, for it stands for text.

        In the end-of-word scheme and of SentencePiece this is the normalised text exactly, as long as nothing in it is
        unknown. In the continuation scheme words are set apart by spaces, because the pieces don't tell what stood
        between them.

        Raises:
            InputError: The vocabulary has no such id.
        """
        ids = [int(each) for each in ids]
        if not all(0 <= each < len(self) for each in ids):
            raise InputError(f"ids must be from 0 to {len(self) - 1}. Received: {ids}")
        unknown = self.vocabulary.id_of(UNK)
        pieces = self.vocabulary.pieces
        return self._join(
            [pieces[each] for each in ids if each == unknown or not self.vocabulary.is_reserved(pieces[each])]
        )

    def tokenize(self, text: str) -> list[str]:
        """Returns the pieces of one text, no special tokens added."""
        return [self.vocabulary.pieces[i] for i in self.encode_ids([text])[0].numpy()]

    @abc.abstractmethod
    def encode_ids(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        """Encodes many texts at once, no special tokens added: the fast path.

        Args:
            texts: Strings, or a string tensor [N].

        Returns:
            Ragged int32 tensor [N, (pieces)].
        """

    @abc.abstractmethod
    def encode_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Encodes many texts at once, no special tokens added, and tells where pieces stand, with TensorFlow ops alone.

        Args:
            texts: string tensor [N].

        Returns:
            Ids, and the begins and ends of `encode_batch`'s offsets, each a ragged int32 tensor [N, (pieces)].
        """

    @abc.abstractmethod
    def encode_with_word_starts(self, texts: list[str] | tf.Tensor) -> tuple[tf.RaggedTensor, np.ndarray]:
        """Encodes many texts at once, no special tokens added, and tells where words start.

        Args:
            texts: Strings, or a string tensor [N].

        Returns:
            Ragged int32 tensor [N, (pieces)], and for all its pieces, one text after the other, bool [pieces].
        """

    @property
    @abc.abstractmethod
    def starts_word(self) -> np.ndarray:
        """Whether a word starts with a piece, as far as the piece alone tells: bool [vocab_size]."""

    @abc.abstractmethod
    def to_dict(self) -> dict:
        """Returns every setting and the hash of what holds the pieces: what makes two tokenizers the same."""

    @abc.abstractmethod
    def is_vocabulary_file(self, path: str | os.PathLike) -> bool:
        """Whether a file like `vocabulary_file` holds this tokenizer's pieces.

        Raises:
            InputError: The file can't be read.
        """

    @abc.abstractmethod
    def _join(self, pieces):
        """Returns the text of pieces, special tokens not among them."""

    @abc.abstractmethod
    def _save_vocabulary(self, path):
        """Writes a file like `vocabulary_file`."""

    @abc.abstractmethod
    def _locate(self, texts):
        """Returns the ids of all pieces, where each begins and ends in its text, and the texts' splits, int [N + 1]."""

    def save(self, folder: str | os.PathLike, settings_file: str = TOKENIZER_FILE) -> None:
        """Writes `vocabulary_file`, and the settings as `settings_file`, into a folder."""
        # The settings first: a vocabulary alone, left by a process that was killed here, would be read with others.
        write_json(os.path.join(folder, settings_file), self.to_dict())
        self._save_vocabulary(os.path.join(folder, self.vocabulary_file))

    def is_saved_as(self, path: str | os.PathLike) -> bool:
        """Whether a tokenizer.json holds the settings of this tokenizer, however pairs are cut.

        Raises:
            InputError: The file can't be read.
        """
        saved = {**self._later_settings, **read_json(path, "the tokenizer settings")}
        return _without_truncation(saved) == _without_truncation(self.to_dict())

    def _check_settings_beside(self, path, hash_name):
        """Checks that a tokenizer.json beside a file with this tokenizer's pieces has no other settings for them."""
        settings_file = os.path.join(os.path.dirname(path), TOKENIZER_FILE)
        if not tf.io.gfile.exists(settings_file):
            return
        saved, mine = read_json(settings_file, "the tokenizer settings"), self.to_dict()
        if saved.get(hash_name) != mine[hash_name]:
            return
        different = [name for name, value in {**self._later_settings, **saved}.items() if mine.get(name) != value]
        if different:
            raise InputError(
                f"{settings_file}, beside the vocabulary, has other values of {listed(different)}; use "
                f"{type(self).__name__}.load with the folder's name, which reads them"
            )

    def with_truncation(self, truncation: str) -> "Tokenizer":
        """Returns the same tokenizer with another rule of cutting pairs; raises InputError if there is no such rule."""
        same = copy.copy(self)
        same.vocabulary = self.vocabulary.with_truncation(truncation)
        return same

    @property
    def identity(self) -> str:
        """Hash that travels with data and checkpoints; two tokenizers with equal identity give equal ids."""
        # Left out at their defaults, settings of later versions keep the identity of data made before them.
        defaults = self._later_settings.items()
        settings = _without_truncation(self.to_dict())
        settings = {name: value for name, value in settings.items() if (name, value) not in defaults}
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()

    def _with_further_separators(self, row):
        """Returns the columns of a pair's first text with the [SEP] that it has besides its own."""
        sep_id, count = self.vocabulary.id_of(SEP), self.vocabulary.num_separators - 1
        added = self.vocabulary.pieces[sep_id], sep_id, (0, 0), 0
        return [column + [value] * count for column, value in zip(row, added)]

    def _add_special_tokens(self, ids, begins, ends, splits, segment_id):
        """Adds [SEP] to each text, and [CLS] to those of the first segment; yields the columns of each text."""
        num_texts = len(splits) - 1
        where, added = splits[1:], np.full(num_texts, self.vocabulary.id_of(SEP))
        if segment_id == 0:
            # Of two insertions at one place, the earlier in the list comes first: the [SEP] of the text before.
            where = np.stack([splits[:-1], where], axis=1).ravel()
            added = np.stack([np.full(num_texts, self.vocabulary.id_of(CLS)), added], axis=1).ravel()
        ids, begins, ends = (np.insert(column, where, new) for column, new in ((ids, added), (begins, 0), (ends, 0)))
        borders = (splits + np.arange(num_texts + 1) * (len(added) // max(num_texts, 1))).tolist()
        tokens, ids, offsets = self._pieces[ids].tolist(), ids.tolist(), list(zip(begins.tolist(), ends.tolist()))
        for begin, end in itertools.pairwise(borders):
            yield tokens[begin:end], ids[begin:end], offsets[begin:end], [segment_id] * (end - begin)

    @classmethod
    def _from_settings(cls, first_argument, settings, path):
        """Returns a tokenizer with the settings of a file, whose path errors name."""
        _, *names = inspect.signature(cls).parameters
        unknown = settings.keys() - set(names)
        if unknown:
            raise InputError(f"{path}: there is no setting {listed(sorted(unknown))}; remove the unknown setting")
        try:
            return cls(first_argument, **settings)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


def _without_truncation(settings):
    return {name: value for name, value in settings.items() if name != TRUNCATION}


def check_switches(switches: dict) -> None:
    """Raises InputError if a setting is neither true nor false."""
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise InputError(f"{name} must be true or false. Received: {quote(value)}")


# Running functions of TensorFlow ops on strings of Python, or as part of a graph.

# Lone surrogates have no UTF-8 form and stand for no character.
LONE_SURROGATES = re.compile("[\ud800-\udfff]")

_TEXTS_FOR_A_GRAPH = 256


class OpRunner:
    """Runs functions of ops on texts; many run as a graph, which takes a while to build and then saves time."""

    def __init__(self):
        self._graphs = {}

    def __call__(self, function: collections.abc.Callable[[tf.Tensor], typing.Any], texts: list[str] | tf.Tensor):
        if not tf.is_tensor(texts):
            texts = to_tensor(texts)
        if not tf.executing_eagerly() or len(texts) < _TEXTS_FOR_A_GRAPH:
            return function(texts)
        if function not in self._graphs:
            signature = [tf.TensorSpec([None], tf.string)]
            self._graphs[function] = tf.function(function, input_signature=signature, autograph=False)
        return self._graphs[function](texts)


def to_tensor(texts: list[str]) -> tf.Tensor:
    """Returns strings as a tensor [N], without lone surrogates."""
    try:
        return tf.constant(texts, tf.string, shape=[len(texts)])
    except ValueError:  # rare; searching every text for surrogates would take as long as everything else
        return tf.constant([LONE_SURROGATES.sub("", text) for text in texts], tf.string, shape=[len(texts)])
