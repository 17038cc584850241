"""The tokenizer that users meet: text to pieces, ids and offsets, and back; saved and loaded as a folder."""

import dataclasses
import hashlib
import inspect
import json
import os

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.files import read_json, write_json
from albert_tf.tokenization import words
from albert_tf.tokenization.batch_encoding import BatchOptions, make_inputs
from albert_tf.tokenization.encoding import Encoding, OffsetEncoder, check_pairs
from albert_tf.tokenization.graph_offsets import GraphOffsets
from albert_tf.tokenization.normalization import NormalizationOptions
from albert_tf.tokenization.offsets import OriginalPositions
from albert_tf.tokenization.piece_lookup import PieceLookup
from albert_tf.tokenization.tensor_encoder import TensorEncoder
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX, check_scheme

TOKENIZER_FILE = "tokenizer.json"
VOCABULARY_FILE = "vocab.txt"

# Settings that tokenizer.json did not hold at first, and what a file without them means.
_LATER_SETTINGS = {"squeeze_repeats": False, "full_width_to_ascii": False, "keep_emoji": True, "split_digits": False}


class KoreanWordPieceTokenizer(PieceLookup):
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
        super().__init__(vocabulary, wordpiece_scheme)
        self.normalization = NormalizationOptions(
            lower_case, strip_accents, squeeze_repeats, full_width_to_ascii, keep_emoji
        )
        self.split_punctuation = split_punctuation
        self.split_digits = split_digits
        for name, value in self._switches().items():
            if not isinstance(value, bool):
                raise InputError(f"{name} must be true or false. Received: {value!r}")
        self._encoder = TensorEncoder(vocabulary, self.normalization, wordpiece_scheme, split_punctuation, split_digits)
        positions = OriginalPositions(self.normalization, wordpiece_scheme)
        self._graph_offsets = None  # made when it is asked for
        self._offset_encoder = OffsetEncoder(vocabulary, self._encoder, positions)
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
        return self._offset_encoder.encode_batch(texts, text_pairs)

    def __call__(
        self,
        text: str | list[str],
        text_pair: str | list[str] | None = None,
        padding: bool | str = False,
        truncation: bool | str = False,
        max_length: int | None = None,
        return_tensors: str | None = None,
    ) -> dict:
        """Encodes texts or pairs as a model's inputs; the arguments are those of Hugging Face's tokenizers.

        ```python
        tokenizer(["나는 밥을 먹었다.", "ㅋㅋ"], padding=True, truncation=True, max_length=128, return_tensors="tf")
        ```

        Args:
            text: One text, or a list of N.
            text_pair: The second text of a pair, or a list of N.
            padding: False; True or "longest": up to the longest of the list; "max_length": up to `max_length`.
            truncation: False; True or "longest_first": down to `max_length`, of a pair the longer text first.
            max_length: Number of pieces, special tokens included.
            return_tensors: None for lists, "np" for NumPy arrays, "tf" for tensors.

        Returns:
            `input_ids`, `input_mask` (1 for pieces, 0 for padding) and `segment_ids` (1 for the second text and its
            [SEP]): a list for one text, N lists for a list; with `return_tensors` int32 [N, S], N = 1 for one text.

        Raises:
            InputError: Arguments contradict each other, `max_length` has no room for the special tokens, rows of
                different lengths can't become an array, or the vocabulary lacks a special token.
        """
        options = BatchOptions(padding, truncation, max_length, return_tensors)
        is_single = isinstance(text, str)
        segments = [
            [segment] if is_single else segment for segment in ([text] if text_pair is None else [text, text_pair])
        ]
        for segment in segments:
            if not isinstance(segment, (list, tuple)) or not all(isinstance(each, str) for each in segment):
                raise InputError("text and text_pair must both be strings, or both be lists of strings")
        check_pairs(segments[0], segments[-1])
        inputs = make_inputs([self.encode_ids(texts).to_list() for texts in segments], self.vocabulary, options)
        if is_single and return_tensors is None:
            return {name: row for name, [row] in inputs.items()}
        return inputs

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
        return self._encoder.encode_ids(texts)

    def encode_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Encodes many texts at once, no special tokens added, and tells where pieces stand, with TensorFlow ops alone.

        Args:
            texts: string tensor [N].

        Returns:
            Ids, and the begins and ends of `encode_batch`'s offsets, each a ragged int32 tensor [N, (pieces)].
        """
        if self._graph_offsets is None:
            self._graph_offsets = GraphOffsets(self.normalization, self.wordpiece_scheme)
        text_words, ids, byte_begins, byte_ends = self._encoder.cut_words(texts)
        begins, ends = self._graph_offsets.of_pieces(texts, text_words, byte_begins, byte_ends)
        splits = tf.gather(ids.row_splits, text_words.row_splits)
        return tuple(tf.RaggedTensor.from_row_splits(values, splits) for values in (ids.flat_values, begins, ends))

    def encode_words(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        """Encodes many texts at once and keeps the pieces of each word together.

        Args:
            texts: Strings, or a string tensor [N].

        Returns:
            Ragged int32 tensor [N, (words), (pieces)].
        """
        return self._encoder.encode_words(texts)

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
        return self._encoder.split_words(texts)

    def save(self, folder: str | os.PathLike) -> None:
        """Writes vocab.txt and tokenizer.json into a folder."""
        self.vocabulary.to_file(os.path.join(folder, VOCABULARY_FILE))
        write_json(os.path.join(folder, TOKENIZER_FILE), self.to_dict())

    save_pretrained = save

    @classmethod
    def load(cls, folder: str | os.PathLike, settings_file: str = TOKENIZER_FILE) -> "KoreanWordPieceTokenizer":
        """Reads what `save` wrote.

        Args:
            folder: Where.
            settings_file: What tokenizer.json is called there.

        Raises:
            InputError: A file is missing, a setting or its value is unknown, or vocab.txt is not the vocabulary that
                the settings were saved with, or looks like one of another scheme.
        """
        path = os.path.join(folder, settings_file)
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

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike) -> "KoreanWordPieceTokenizer":
        """Reads what `save` wrote, as `load`; a folder without tokenizer.json is refused with advice.

        Raises:
            InputError: As `load`.
        """
        has_file = {name: tf.io.gfile.exists(os.path.join(folder, name)) for name in (TOKENIZER_FILE, VOCABULARY_FILE)}
        if has_file[VOCABULARY_FILE] and not has_file[TOKENIZER_FILE]:
            path = os.path.join(folder, VOCABULARY_FILE)
            raise InputError(
                f"there is no {TOKENIZER_FILE} beside {path} to say how text is normalised and split; pass these "
                "settings to KoreanWordPieceTokenizer.from_vocab_file"
            )
        return cls.load(folder)

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
