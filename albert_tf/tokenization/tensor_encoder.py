"""Strings to words and ids with TensorFlow ops alone, eagerly or as part of a graph."""

import tensorflow as tf

from albert_tf.tokenization import normalization, words
from albert_tf.tokenization.normalization import NormalizationOptions
from albert_tf.tokenization.op_runner import OpRunner
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.tokenization.wordpiece import SPLIT_DIFFERENTLY, WordPiece


class TensorEncoder:
    """Normalises texts, splits them into words, and cuts words into pieces.

    Every method takes strings or a string tensor [N].

    Args:
        vocabulary: The pieces.
        options: How to normalise.
        wordpiece_scheme: "continuation" or "end_of_word".
        split_punctuation: Whether each punctuation mark is a word of its own.
        split_digits: Whether each number is a word of its own.

    Raises:
        InputError: A piece of the vocabulary is too long.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        options: NormalizationOptions,
        wordpiece_scheme: str,
        split_punctuation: bool,
        split_digits: bool,
    ):
        self._options = options
        self._wordpiece_scheme = wordpiece_scheme
        self._split_punctuation, self._split_digits = split_punctuation, split_digits
        self._wordpiece = WordPiece(vocabulary, wordpiece_scheme)
        self._run = OpRunner()

    def encode_ids(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        """Returns ids, int32 [N, (pieces)]."""
        return self._run(self._encode_ids, texts)

    def encode_words(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        """Returns ids, int32 [N, (words), (pieces)]."""
        return self._run(self._encode_words, texts)

    def split_words(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        """Returns words, string [N, (words)]."""
        return self._run(self._split_words, texts)

    def cut_words(
        self, texts: list[str] | tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Returns words, string [N, (words)], and ids, begins and ends in bytes of their pieces, [words, (pieces)]."""
        return self._run(self._cut_words, texts)

    def _encode_ids(self, texts):
        normalized = normalization.normalize(texts, self._options)

        def encode_words():
            return self._wordpiece.tokenize(self._split_normalized(normalized)).merge_dims(1, 2)

        splits_as_usual = (
            self._wordpiece_scheme == "continuation" and self._split_punctuation and not self._split_digits
        )
        if not (splits_as_usual and self._wordpiece.can_split):
            return encode_words()
        # Splitting words and cutting them in one op is twice as fast.
        is_plain = ~tf.reduce_any(tf.strings.regex_full_match(normalized, f".*{SPLIT_DIFFERENTLY}.*"))
        return tf.cond(is_plain, lambda: self._wordpiece.split_and_tokenize(normalized), encode_words)

    def _encode_words(self, texts):
        return self._wordpiece.tokenize(self._split_words(texts))

    def _cut_words(self, texts):
        text_words = self._split_words(texts)
        return text_words, *self._wordpiece.tokenize_with_byte_offsets(text_words.flat_values)

    def _split_words(self, texts):
        return self._split_normalized(normalization.normalize(texts, self._options))

    def _split_normalized(self, normalized):
        return words.split_words(
            normalized, self._wordpiece_scheme, self._split_punctuation, self._split_digits, self._options.keep_emoji
        )
