"""The tokenizer that users meet: text to pieces, ids and offsets, and back; saved and loaded as a folder."""

import dataclasses
import hashlib
import inspect
import itertools
import json
import operator
import os
import re

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.files import read_json, write_json
from albert_tf.tokenization import normalization, words
from albert_tf.tokenization.encoding import Encoding
from albert_tf.tokenization.normalization import NormalizationOptions
from albert_tf.tokenization.offsets import OriginalPositions
from albert_tf.tokenization.vocabulary import CLS, SEP, UNK, Vocabulary, is_reserved
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX, SPLIT_DIFFERENTLY, WordPiece, check_scheme

TOKENIZER_FILE = "tokenizer.json"
VOCABULARY_FILE = "vocab.txt"

# They have no UTF-8 form, and stand for no character.
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


# Settings that tokenizer.json did not hold at first, and what a file without them means.
_LATER_SETTINGS = {"squeeze_repeats": False, "full_width_to_ascii": False, "keep_emoji": True, "split_digits": False}

_TEXTS_PER_BATCH = 1024
_TEXTS_FOR_A_GRAPH = 256


class KoreanWordPieceTokenizer:
    """WordPiece that keeps Hangul composed.

    Args:
        vocabulary: The pieces.
        wordpiece_scheme: "continuation" (##, as public Korean models have it) or "end_of_word" (_ before a space).
        lower_case: Map letters to lower case.
        strip_accents: Drop accents (é to e); Hangul stays composed.
        split_punctuation: Make each punctuation mark a word of its own.
        squeeze_repeats: Leave two of a Hangul character, mark or symbol repeated more often (ㅋㅋㅋㅋ to ㅋㅋ).
        full_width_to_ascii: Map full-width letters, digits and punctuation to ASCII.
        keep_emoji: Keep emoji sequences whole, with their joiners and variation selectors.
        split_digits: Make each number a word of its own (2020년에 to 2020 and 년에).

    Raises:
        InputError: A setting has a value that it can't have.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        wordpiece_scheme: str = "continuation",
        lower_case: bool = True,
        strip_accents: bool = False,
        split_punctuation: bool = True,
        squeeze_repeats: bool = False,
        full_width_to_ascii: bool = False,
        keep_emoji: bool = True,
        split_digits: bool = False,
    ):
        if wordpiece_scheme not in words.WORDPIECE_SCHEMES:
            raise InputError(
                f"wordpiece_scheme must be one of {', '.join(words.WORDPIECE_SCHEMES)}. Received: {wordpiece_scheme}"
            )
        self.vocabulary = vocabulary
        self.wordpiece_scheme = wordpiece_scheme
        self.normalization = NormalizationOptions(
            lower_case, strip_accents, squeeze_repeats, full_width_to_ascii, keep_emoji
        )
        self.split_punctuation = split_punctuation
        self.split_digits = split_digits
        for name, value in self._switches().items():
            if not isinstance(value, bool):
                raise InputError(f"{name} must be true or false. Received: {value!r}")
        self._graphs = {}
        self._positions = OriginalPositions(self.normalization, wordpiece_scheme)
        self._wordpiece = WordPiece(vocabulary, wordpiece_scheme)
        self._pieces = np.array(vocabulary.pieces, object)
        self._starts_word = np.array([not piece.startswith(CONTINUATION_PREFIX) for piece in vocabulary.pieces])

    @classmethod
    def from_vocab_file(cls, vocab_file: str | os.PathLike, **options) -> "KoreanWordPieceTokenizer":
        """Builds a tokenizer from one piece a line; options as for the class.

        Raises:
            InputError: The file is missing, breaks a rule of `Vocabulary`, or looks like one of another scheme.
        """
        tokenizer = cls(Vocabulary.from_file(vocab_file), **options)
        check_scheme(tokenizer.vocabulary, tokenizer.wordpiece_scheme)
        return tokenizer

    def encode(self, text: str, text_pair: str | None = None) -> Encoding:
        """Encodes one text, or two as a pair.

        Raises:
            InputError: The vocabulary lacks [CLS] or [SEP].
        """
        return self.encode_batch([text], None if text_pair is None else [text_pair])[0]

    def encode_batch(self, texts: list[str], text_pairs: list[str] | None = None) -> list[Encoding]:
        """Encodes many texts, or pairs of them, much faster than one by one.

        Args:
            texts: Strings.
            text_pairs: The second text of each pair, as many as there are texts.

        Raises:
            InputError: The vocabulary lacks [CLS] or [SEP], or the numbers of texts differ.
        """
        self.vocabulary.require(CLS, SEP)
        segments = [texts] if text_pairs is None else [texts, text_pairs]
        if len(texts) != len(segments[-1]):
            raise InputError(f"there are {len(texts)} texts, but {len(text_pairs)} text_pairs; every text needs one")
        encodings = []
        for begin in range(0, len(texts), _TEXTS_PER_BATCH):
            batch = slice(begin, begin + _TEXTS_PER_BATCH)
            columns = [self._encode_with_offsets(segment[batch], i) for i, segment in enumerate(segments)]
            for rows in zip(*columns):
                encodings.append(Encoding(*rows[0] if len(rows) == 1 else map(operator.add, *rows)))
        return encodings

    def tokenize(self, text: str) -> list[str]:
        """Returns the pieces of one text, no special tokens added."""
        return [self.vocabulary.pieces[i] for i in self.encode_ids([text])[0].numpy()]

    def encode_ids(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        """Encodes many texts at once, no special tokens added: the fast path.

        Args:
            texts: Strings, or a string tensor [N].

        Returns:
            Ragged int32 tensor [N, (pieces)].
        """
        return self._run(self._encode_ids, texts)

    def encode_words(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        """Encodes many texts at once and keeps the pieces of each word together.

        Args:
            texts: Strings, or a string tensor [N].

        Returns:
            Ragged int32 tensor [N, (words), (pieces)].
        """
        return self._run(self._encode_words, texts)

    def encode_with_word_starts(self, texts: list[str] | tf.Tensor) -> tuple[tf.RaggedTensor, np.ndarray]:
        """Encodes many texts at once and tells where words start.

        Args:
            texts: Strings, or a string tensor [N].

        Returns:
            Ragged int32 tensor [N, (pieces)], and for all its pieces, one text after the other, bool [pieces].
        """
        if self.wordpiece_scheme == "continuation":
            ids = self.encode_ids(texts)
            return ids, self._starts_word[ids.flat_values.numpy()]
        word_ids = self.encode_words(texts)
        starts = np.zeros(len(word_ids.flat_values) + 1, bool)
        starts[word_ids.values.row_splits.numpy()] = True
        return word_ids.merge_dims(1, 2), starts[:-1]

    def split_words(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        """Normalises texts and splits them into words.

        Args:
            texts: Strings, or a string tensor [N].

        Returns:
            Ragged string tensor [N, (words)].
        """
        return self._run(self._split_words, texts)

    def _run(self, function, texts):
        """Runs a function of ops on texts; on many, as a graph, which takes a while to build and then saves time."""
        if not tf.is_tensor(texts):
            texts = _to_tensor(texts)
        if not tf.executing_eagerly() or len(texts) < _TEXTS_FOR_A_GRAPH:
            return function(texts)
        if function not in self._graphs:
            signature = [tf.TensorSpec([None], tf.string)]
            self._graphs[function] = tf.function(function, input_signature=signature, autograph=False)
        return self._graphs[function](texts)

    def _encode_ids(self, texts):
        normalized = normalization.normalize(texts, self.normalization)

        def encode_words():
            return self._wordpiece.tokenize(self._split_normalized(normalized)).merge_dims(1, 2)

        splits_as_usual = self.wordpiece_scheme == "continuation" and self.split_punctuation and not self.split_digits
        if not (splits_as_usual and self._wordpiece.can_split):
            return encode_words()
        # Twice as fast: words are split and cut up in one go.
        is_plain = ~tf.reduce_any(tf.strings.regex_full_match(normalized, f".*{SPLIT_DIFFERENTLY}.*"))
        return tf.cond(is_plain, lambda: self._wordpiece.split_and_tokenize(normalized), encode_words)

    def _encode_words(self, texts):
        return self._wordpiece.tokenize(self._split_words(texts))

    def _cut_words(self, texts):
        """Returns words, and for each word the ids of its pieces and their begins and ends in bytes."""
        text_words = self._split_words(texts)
        return text_words, *self._wordpiece.tokenize_with_byte_offsets(text_words.flat_values)

    def _split_words(self, texts):
        return self._split_normalized(normalization.normalize(texts, self.normalization))

    def _split_normalized(self, normalized):
        return words.split_words(
            normalized, self.wordpiece_scheme, self.split_punctuation, self.split_digits, self.normalization.keep_emoji
        )

    def decode(self, ids: list[int]) -> str:
        """Returns the text of ids, special tokens and [unused] slots left out.

        In the end-of-word scheme this is the normalised text exactly, as long as nothing in it is unknown. In the
        continuation scheme words are set apart by spaces, because the pieces don't tell what stood between them.
        """
        texts = []
        for piece in (self.vocabulary.pieces[i] for i in ids):
            if is_reserved(piece) and piece != UNK:
                continue
            if self.wordpiece_scheme == "continuation" and piece.startswith(CONTINUATION_PREFIX) and texts:
                texts[-1].append(piece.removeprefix(CONTINUATION_PREFIX))
            else:
                texts.append([piece])
        return words.join_words(texts, self.wordpiece_scheme)

    def save(self, folder: str | os.PathLike) -> None:
        """Writes vocab.txt and tokenizer.json into a folder."""
        self.vocabulary.to_file(os.path.join(folder, VOCABULARY_FILE))
        write_json(os.path.join(folder, TOKENIZER_FILE), self.to_dict())

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "KoreanWordPieceTokenizer":
        """Reads what `save` wrote.

        Raises:
            InputError: A file is missing, a setting or its value is unknown, or vocab.txt is not the vocabulary that
                the settings were saved with, or looks like one of another scheme.
        """
        path = os.path.join(folder, TOKENIZER_FILE)
        settings = read_json(path, "the tokenizer settings")
        vocabulary = Vocabulary.from_file(os.path.join(folder, VOCABULARY_FILE))
        if "vocab_sha256" not in settings:
            raise InputError(f"{path} has no vocab_sha256, so it can't be told which vocabulary it goes with")
        if settings.pop("vocab_sha256") != vocabulary.sha256:
            raise InputError(f"{vocabulary.source} is not the vocabulary that {path} was written for")
        unknown = settings.keys() - (inspect.signature(cls).parameters.keys() - {"vocabulary"})
        if unknown:
            raise InputError(f"{path}: there is no setting {', '.join(sorted(unknown))}; remove the unknown setting")
        try:
            tokenizer = cls(vocabulary, **settings)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        check_scheme(vocabulary, tokenizer.wordpiece_scheme)
        return tokenizer

    def to_dict(self) -> dict:
        """Returns every setting and the vocabulary's hash: what makes two tokenizers the same."""
        return {
            "wordpiece_scheme": self.wordpiece_scheme,
            **self._switches(),
            "vocab_sha256": self.vocabulary.sha256,
        }

    def is_saved_as(self, path: str | os.PathLike) -> bool:
        """Whether a tokenizer.json says the same as this tokenizer.

        Raises:
            InputError: The file can't be read.
        """
        return {**_LATER_SETTINGS, **read_json(path, "the tokenizer settings")} == self.to_dict()

    @property
    def identity(self) -> str:
        """Hash that travels with data and checkpoints; two tokenizers with equal identity give equal ids."""
        # Left out at their defaults, settings of later versions keep the identity of data made before them.
        defaults = _LATER_SETTINGS.items()
        settings = {name: value for name, value in self.to_dict().items() if (name, value) not in defaults}
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()

    def _switches(self):
        return {
            **dataclasses.asdict(self.normalization),
            "split_punctuation": self.split_punctuation,
            "split_digits": self.split_digits,
        }

    def _encode_with_offsets(self, texts, segment_id):
        """Returns for each text of a segment its pieces, ids, spans and segment ids, special tokens included."""
        text_words, ids, byte_begins, byte_ends = self._run(self._cut_words, texts)
        begins, ends = self._positions.of_pieces(texts, text_words, byte_begins, byte_ends)
        splits = ids.row_splits.numpy()[text_words.row_splits.numpy()]
        return self._add_special_tokens(ids.flat_values.numpy(), begins, ends, splits, segment_id)

    def _add_special_tokens(self, ids, begins, ends, splits, segment_id):
        """Adds [SEP] to each text, and [CLS] to those of the first segment; cuts the columns into lists a text."""
        num_texts = len(splits) - 1
        where, added = splits[1:], np.full(num_texts, self.vocabulary.id_of(SEP))
        if segment_id == 0:
            # Of two insertions at the same place the earlier in the list comes first: the [SEP] of the text before.
            where = np.stack([splits[:-1], where], axis=1).ravel()
            added = np.stack([np.full(num_texts, self.vocabulary.id_of(CLS)), added], axis=1).ravel()
        ids, begins, ends = (np.insert(column, where, new) for column, new in ((ids, added), (begins, 0), (ends, 0)))
        borders = (splits + np.arange(num_texts + 1) * (len(added) // max(num_texts, 1))).tolist()
        tokens, ids, offsets = self._pieces[ids].tolist(), ids.tolist(), list(zip(begins.tolist(), ends.tolist()))
        for begin, end in itertools.pairwise(borders):
            yield tokens[begin:end], ids[begin:end], offsets[begin:end], [segment_id] * (end - begin)


def _to_tensor(texts):
    try:
        return tf.constant(texts, tf.string, shape=[len(texts)])
    except ValueError:  # rare; looking for surrogates in every text would take as long as all the rest of this
        return tf.constant([_LONE_SURROGATES.sub("", text) for text in texts], tf.string, shape=[len(texts)])
