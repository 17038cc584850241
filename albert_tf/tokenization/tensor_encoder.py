"""Strings to words and ids with TensorFlow ops alone, eagerly or as part of a graph."""

import tensorflow as tf

from albert_tf.tokenization import bert_normalization, bert_unicode, emoji, normalization, words
from albert_tf.tokenization.normalization import NormalizationOptions
from albert_tf.tokenization.op_runner import OpRunner
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.tokenization.wordpiece import SPLIT_DIFFERENTLY, WordPiece


class TensorEncoder:
    """Normalises texts, strings or a string tensor [N], splits them into words, and cuts words into pieces.

    The settings are those of `KoreanWordPieceTokenizer`. Raises InputError if a piece of the vocabulary is too long.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        options: NormalizationOptions,
        wordpiece_scheme: str,
        split_punctuation: bool,
        split_digits: bool,
        split_emoji: bool,
        max_characters_per_word: int | None = None,
    ):
        self._options = options
        self._wordpiece_scheme = wordpiece_scheme
        self._split_punctuation, self._split_digits = split_punctuation, split_digits
        self._split_emoji = split_emoji
        special = bert_normalization.SPECIAL_CHARACTERS if options.special_tokens_in_text else {}
        self._wordpiece = WordPiece(vocabulary, wordpiece_scheme, max_characters_per_word, special)
        self._max_characters = max_characters_per_word
        is_korean = options.form == "korean"
        self._split_differently = SPLIT_DIFFERENTLY if is_korean else bert_unicode.SPLIT_DIFFERENTLY
        if split_emoji:
            self._split_differently = f"(?:{self._split_differently}|[{emoji.PICTURES}])"
        self._run = OpRunner()

    def encode_ids(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        """Returns ids, int32 [N, (pieces)]."""
        splits_as_usual = (
            self._wordpiece_scheme == "continuation" and self._split_punctuation and not self._split_digits
        )
        if not (splits_as_usual and self._wordpiece.can_split):
            return self._run(self._encode_in_two_steps, texts)
        # Splitting words and cutting them in one op is twice as fast. What goes before is a graph of its own, so that
        # nothing is built for texts that are seldom there.
        normalized, apart = self._run(self._normalize_and_find_apart, texts)
        return tf.cond(
            tf.size(apart) > 0,
            lambda: self._encode_apart(normalized, apart),
            lambda: self._wordpiece.split_and_tokenize(normalized),
        )

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

    def _encode_in_two_steps(self, texts):
        return self._encode_normalized(normalization.normalize(texts, self._options))

    def _normalize_and_find_apart(self, texts):
        """Returns normalised texts, and the rows, int64 [M, 1], of those whose words are to be split first."""
        normalized, unusual = normalization.normalize_and_find_unusual(texts, self._options)
        splits_differently = tf.strings.regex_full_match(
            tf.gather_nd(normalized, unusual), f".*{self._split_differently}.*"
        )
        apart = tf.boolean_mask(unusual, splits_differently)
        return normalized, apart if self._max_characters is None else self._with_long_words(normalized, apart)

    def _with_long_words(self, texts, rows):
        """Adds to rows, int64 [M, 1], those of texts with words that may be too long."""
        longer = tf.where(tf.strings.length(texts) > self._max_characters)
        longer = tf.boolean_mask(longer, self._wordpiece.may_hold_long_word(tf.gather_nd(texts, longer)))
        is_apart = tf.tensor_scatter_nd_update(
            tf.zeros_like(texts, tf.bool),
            tf.concat([rows, longer], axis=0),
            tf.ones([tf.shape(rows)[0] + tf.shape(longer)[0]], tf.bool),
        )
        return tf.where(is_apart)

    def _encode_normalized(self, texts):
        return self._wordpiece.tokenize(self._split_normalized(texts)).merge_dims(1, 2)

    def _encode_apart(self, texts, rows):
        """Encodes texts, those of `rows`, int64 [M, 1], in two steps."""
        ids = self._encode_normalized(tf.gather_nd(texts, rows))
        rows_of_ids = tf.gather(rows[:, 0], ids.value_rowids())
        apart = tf.RaggedTensor.from_value_rowids(ids.values, rows_of_ids, tf.size(texts, tf.int64), validate=False)
        others = tf.tensor_scatter_nd_update(texts, rows, tf.zeros_like(rows[:, 0], tf.string))
        return tf.concat([apart, self._wordpiece.split_and_tokenize(others)], axis=1)

    def _encode_words(self, texts):
        return self._wordpiece.tokenize(self._split_words(texts))

    def _cut_words(self, texts):
        text_words = self._split_words(texts)
        return text_words, *self._wordpiece.tokenize_with_byte_offsets(text_words.flat_values)

    def _split_words(self, texts):
        return self._split_normalized(normalization.normalize(texts, self._options))

    def _split_normalized(self, normalized):
        if self._options.form != "korean":
            return bert_normalization.split_words(normalized)
        return words.split_words(
            normalized,
            self._wordpiece_scheme,
            self._split_punctuation,
            self._split_digits,
            self._options.keep_emoji,
            self._split_emoji,
        )
