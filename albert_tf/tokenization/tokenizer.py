"""The tokenizer that users meet: text to pieces, ids and offsets, and back; saved and loaded as a folder."""

import dataclasses
import hashlib
import json
import os
import re

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.files import read_json, write_json
from albert_tf.tokenization import normalization, words
from albert_tf.tokenization.normalization import NormalizationOptions
from albert_tf.tokenization.vocabulary import CLS, SEP, UNK, Vocabulary, is_reserved
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX, WordPiece

TOKENIZER_FILE = "tokenizer.json"
VOCABULARY_FILE = "vocab.txt"

# They have no UTF-8 form, and stand for no character.
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclasses.dataclass(frozen=True)
class Encoding:
    """One encoded text or pair, [CLS] and [SEP] included.

    Attributes:
        tokens: The pieces.
        ids: Their ids.
        offsets: For each piece the half-open span (begin, end) of characters in the text it came from, as given,
            before normalisation; (0, 0) for [CLS] and [SEP].
        segment_ids: 0 for the first text with its [CLS] and [SEP], 1 for the second with its [SEP].
    """

    tokens: list[str]
    ids: list[int]
    offsets: list[tuple[int, int]]
    segment_ids: list[int]


class KoreanWordPieceTokenizer:
    """WordPiece that keeps Hangul composed.

    Args:
        vocabulary: The pieces.
        wordpiece_scheme: "continuation" (##, as public Korean models have it) or "end_of_word" (_ before a space).
        lower_case: Map letters to lower case.
        strip_accents: Drop accents (é to e); Hangul stays composed.
        split_punctuation: Make each punctuation mark a word of its own.

    Raises:
        InputError: The scheme is unknown.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        wordpiece_scheme: str = "continuation",
        lower_case: bool = True,
        strip_accents: bool = False,
        split_punctuation: bool = True,
    ):
        if wordpiece_scheme not in words.WORDPIECE_SCHEMES:
            raise InputError(
                f"wordpiece_scheme must be one of {', '.join(words.WORDPIECE_SCHEMES)}. Received: {wordpiece_scheme}"
            )
        self.vocabulary = vocabulary
        self.wordpiece_scheme = wordpiece_scheme
        self.normalization = NormalizationOptions(lower_case, strip_accents)
        self.split_punctuation = split_punctuation
        self._wordpiece = WordPiece(vocabulary, wordpiece_scheme)

    @classmethod
    def from_vocab_file(cls, vocab_file: str | os.PathLike, **options) -> "KoreanWordPieceTokenizer":
        """Builds a tokenizer from one piece a line; options as for the class.

        Raises:
            InputError: The file is missing or breaks a rule of `Vocabulary`.
        """
        return cls(Vocabulary.from_file(vocab_file), **options)

    def encode(self, text: str, text_pair: str | None = None) -> Encoding:
        """Encodes one text, or two as a pair.

        Raises:
            InputError: The vocabulary lacks [CLS] or [SEP].
        """
        self.vocabulary.require(CLS, SEP)
        special = {token: (token, self.vocabulary.id_of(token), (0, 0)) for token in (CLS, SEP)}
        rows = [(*special[CLS], 0)]
        for segment_id, segment in enumerate([text] if text_pair is None else [text, text_pair]):
            rows += [(*piece, segment_id) for piece in [*self._encode_with_offsets(segment), special[SEP]]]
        return Encoding(*(list(column) for column in zip(*rows)))

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
        return self.encode_words(texts).merge_dims(1, 2)

    def encode_words(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        """Encodes many texts at once and keeps the pieces of each word together.

        Args:
            texts: Strings, or a string tensor [N].

        Returns:
            Ragged int32 tensor [N, (words), (pieces)].
        """
        return self._wordpiece.tokenize(self.split_words(texts))

    def split_words(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        """Normalises texts and splits them into words.

        Args:
            texts: Strings, or a string tensor [N].

        Returns:
            Ragged string tensor [N, (words)].
        """
        if not tf.is_tensor(texts):
            texts = tf.constant([_LONE_SURROGATES.sub("", text) for text in texts], tf.string, shape=[len(texts)])
        normalized = normalization.normalize(texts, self.normalization)
        return words.split_words(normalized, self.wordpiece_scheme, self.split_punctuation)

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
            InputError: A file is missing, a setting is unknown, or vocab.txt is not the vocabulary it was saved with.
        """
        path = os.path.join(folder, TOKENIZER_FILE)
        settings = read_json(path, "the tokenizer settings")
        vocabulary = Vocabulary.from_file(os.path.join(folder, VOCABULARY_FILE))
        if settings.pop("vocab_sha256", None) != vocabulary.sha256:
            raise InputError(f"{vocabulary.source} is not the vocabulary that {path} was written for")
        try:
            return cls(vocabulary, **settings)
        except TypeError as error:
            raise InputError(f"{path}: {error}; remove the unknown setting") from error

    def to_dict(self) -> dict:
        """Returns every setting and the vocabulary's hash: what makes two tokenizers the same."""
        return {
            "wordpiece_scheme": self.wordpiece_scheme,
            "lower_case": self.normalization.lower_case,
            "strip_accents": self.normalization.strip_accents,
            "split_punctuation": self.split_punctuation,
            "vocab_sha256": self.vocabulary.sha256,
        }

    @property
    def identity(self) -> str:
        """Hash that travels with data and checkpoints; two tokenizers with equal identity give equal ids."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def _encode_with_offsets(self, text):
        """Returns (piece, id, span) for each piece of a text."""
        normalized, spans = normalization.normalize_with_offsets(text, self.normalization)
        text_words = [word.decode() for word in self.split_words([text])[0].numpy()]
        if not text_words:
            return []
        ids, begins, ends = self._wordpiece.tokenize_with_byte_offsets(tf.constant(text_words))
        rows, position = [], 0
        for word, word_ids, word_begins, word_ends in zip(text_words, ids.numpy(), begins.numpy(), ends.numpy()):
            # A mark that stands for the space behind the word covers no character of its own.
            while normalized[position] == " ":
                position += 1
            encoded = word.encode()
            is_marked = self.wordpiece_scheme == "end_of_word" and word.endswith(words.END_OF_WORD)
            length = len(word) - is_marked
            for piece_id, begin, end in zip(word_ids, word_begins, word_ends):
                first = position + len(encoded[:begin].decode())
                last = position + min(len(encoded[:end].decode()), length) - 1
                span = (spans[first][0], spans[last][1]) if first <= last else (spans[last][1], spans[last][1])
                rows.append((self.vocabulary.pieces[piece_id], int(piece_id), span))
            position += length
        return rows
