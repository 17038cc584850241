"""WordPiece for Korean: the tokenizer that build_vocab.py makes vocabularies for; and reading one of any kind."""

import dataclasses
import os
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError, quote
from albert_tf.base.files import read_json
from albert_tf.base.texts import ODD_TO_SECOND
from albert_tf.tokenization import bert_normalization, normalization, unicode_tables, wordpiece
from albert_tf.tokenization.base import KIND, TOKENIZER_FILE, TRUNCATION, OpRunner, Tokenizer, check_switches
from albert_tf.tokenization.normalization import FORMS, NormalizationOptions
from albert_tf.tokenization.offsets import Offsets
from albert_tf.tokenization.sentencepiece.tokenizer import SENTENCEPIECE, SentencePieceTokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from albert_tf.tokenization.wordpiece import (
    CONTINUATION_PREFIX,
    SPLIT_DIFFERENTLY,
    WordPiece,
    check_scheme,
    join_pieces,
)

VOCABULARY_FILE = "vocab.txt"

_OF_IMPORTS = ("form", "max_characters_per_word", "special_tokens_in_text", TRUNCATION)


class KoreanWordPieceTokenizer(Tokenizer):
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
        split_emoji: Make each emoji a word of its own, so that no word is unknown for one that the vocabulary lacks.
        form: "korean"; "bert" or "google" to normalise and split as the BERT tokenizer of Hugging Face or Google does,
            for vocabularies made with that.
        max_characters_per_word: A longer word is [UNK]; None for one of more than 600 bytes.
        special_tokens_in_text: Of form="bert": let "[MASK]" in a text be the special token, as Hugging Face does.
        truncation: Which text of a pair keeps the odd piece where a model's inputs are cut: "odd_to_second",
            "odd_to_longer" as in Hugging Face's tokenizers, or "odd_to_first" as in Google's code.

    Raises:
        InputError: A setting has a value that it can't have.
    """

    vocabulary_file = VOCABULARY_FILE
    _later_settings: typing.ClassVar = {
        "squeeze_repeats": False,
        "full_width_to_ascii": False,
        "keep_emoji": True,
        "split_digits": False,
        "split_emoji": False,
    }

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
        split_emoji: bool = False,
        form: str = "korean",
        max_characters_per_word: int | None = None,
        special_tokens_in_text: bool = False,
        truncation: str = ODD_TO_SECOND,
    ):
        if wordpiece_scheme not in wordpiece.WORDPIECE_SCHEMES:
            raise InputError(
                f"wordpiece_scheme must be one of {', '.join(wordpiece.WORDPIECE_SCHEMES)}. "
                f"Received: {wordpiece_scheme}"
            )
        super().__init__(vocabulary, truncation)
        self.wordpiece_scheme = wordpiece_scheme
        self.normalization = NormalizationOptions(
            lower_case, strip_accents, squeeze_repeats, full_width_to_ascii, keep_emoji, form, special_tokens_in_text
        )
        self.split_punctuation = split_punctuation
        self.split_digits = split_digits
        self.split_emoji = split_emoji
        self.max_characters_per_word = max_characters_per_word
        check_switches({**self._switches(), "special_tokens_in_text": special_tokens_in_text})
        self._check_form()
        special = bert_normalization.SPECIAL_CHARACTERS if special_tokens_in_text else {}
        self._wordpiece = WordPiece(vocabulary, wordpiece_scheme, max_characters_per_word, special)
        self._split_differently = SPLIT_DIFFERENTLY if form == "korean" else unicode_tables.SPLIT_DIFFERENTLY
        if split_emoji:
            self._split_differently = f"(?:{self._split_differently}|[{unicode_tables.PICTURES}])"
        self._run = OpRunner()
        self._offsets = Offsets(self.normalization, wordpiece_scheme)
        self._starts_word = np.array([not piece.startswith(CONTINUATION_PREFIX) for piece in vocabulary.pieces])

    @classmethod
    def from_vocab_file(cls, vocab_file: str | os.PathLike, **options) -> "KoreanWordPieceTokenizer":
        """Builds a tokenizer from one piece a line; options as for the class.

        Raises:
            InputError: The file is missing, breaks a rule of `Vocabulary`, looks like one of another scheme, or a
                tokenizer.json beside it has other settings for these pieces.
        """
        tokenizer = cls(Vocabulary.from_file(vocab_file), **options)
        check_scheme(tokenizer.vocabulary, tokenizer.wordpiece_scheme)
        tokenizer._check_settings_beside(vocab_file, "vocab_sha256")
        return tokenizer

    def encode_ids(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        splits_as_usual = self.wordpiece_scheme == "continuation" and self.split_punctuation and not self.split_digits
        if not (splits_as_usual and self._wordpiece.can_split):
            return self._run(self._encode_words, texts).merge_dims(1, 2)
        # Splitting words and cutting them in one op is twice as fast. What goes before is a graph of its own, so that
        # nothing is built for texts that are seldom there.
        normalized, apart = self._run(self._normalize_and_find_apart, texts)
        return tf.cond(
            tf.size(apart) > 0,
            lambda: self._encode_apart(normalized, apart),
            lambda: self._wordpiece.split_and_tokenize(normalized),
        )

    def encode_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        ids, splits, *places = self._run(self._cut_words, texts)
        begins, ends = self._offsets.of_pieces(texts, *places)
        return tuple(tf.RaggedTensor.from_row_splits(values, splits) for values in (ids, begins, ends))

    def encode_words(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        """Encodes many texts at once and keeps the pieces of each word together.

        Args:
            texts: Strings, or a string tensor [N].

        Returns:
            Ragged int32 tensor [N, (words), (pieces)].
        """
        return self._run(self._encode_words, texts)

    def encode_with_word_starts(self, texts: list[str] | tf.Tensor) -> tuple[tf.RaggedTensor, np.ndarray]:
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

    @property
    def starts_word(self) -> np.ndarray:
        return self._starts_word

    @classmethod
    def load(cls, folder: str | os.PathLike, settings_file: str = TOKENIZER_FILE) -> "KoreanWordPieceTokenizer":
        """Reads a tokenizer that `save` wrote.

        Raises:
            InputError: A file is missing, a setting or its value is unknown, or vocab.txt is not the vocabulary that
                the settings were saved with, or looks like one of another scheme.
        """
        path = os.path.join(folder, settings_file)
        settings = read_json(path, "the tokenizer settings")
        if KIND in settings:
            raise InputError(
                f"{path} belongs to another kind of tokenizer; use "
                "albert_tf.tokenization.load_tokenizer, which reads any"
            )
        vocabulary = Vocabulary.from_file(os.path.join(folder, VOCABULARY_FILE))
        if "vocab_sha256" not in settings:
            raise InputError(f"{path} has no vocab_sha256, so it is unknown which vocabulary it belongs to")
        if settings.pop("vocab_sha256") != vocabulary.sha256:
            raise InputError(f"{vocabulary.source} is not the vocabulary that {path} was written for")
        tokenizer = cls._from_settings(vocabulary, settings, path)
        check_scheme(vocabulary, tokenizer.wordpiece_scheme)
        return tokenizer

    def to_dict(self) -> dict:
        return {
            "wordpiece_scheme": self.wordpiece_scheme,
            **self._switches(),
            **self._settings_of_imports(),
            "vocab_sha256": self.vocabulary.sha256,
        }

    def is_vocabulary_file(self, path: str | os.PathLike) -> bool:
        return Vocabulary.from_file(path).sha256 == self.vocabulary.sha256

    def _save_vocabulary(self, path):
        self.vocabulary.to_file(path)

    def _locate(self, texts):
        ids, splits, *places = (values.numpy() for values in self._run(self._cut_words, texts))
        return ids, *self._offsets.of_pieces(texts, *places), splits

    def _normalize_and_find_apart(self, texts):
        """Returns normalised texts, and the rows, int64 [M, 1], of those whose words are to be split first."""
        normalized, unusual = normalization.normalize_and_find_unusual(texts, self.normalization)
        splits_differently = tf.strings.regex_full_match(
            tf.gather_nd(normalized, unusual), f".*{self._split_differently}.*"
        )
        apart = tf.boolean_mask(unusual, splits_differently)
        return normalized, apart if self.max_characters_per_word is None else self._with_long_words(normalized, apart)

    def _with_long_words(self, texts, rows):
        """Adds to rows, int64 [M, 1], those of texts with words that may be too long."""
        longer = tf.where(tf.strings.length(texts) > self.max_characters_per_word)
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
        """Returns the ids of all pieces, the texts' splits of them, and the arguments of `Offsets.of_pieces`."""
        words = self._split_words(texts)
        ids, begins, ends = self._wordpiece.tokenize_with_byte_offsets(words.flat_values)
        splits = tf.gather(ids.row_splits, words.row_splits)
        return ids.values, splits, words.flat_values, words.row_splits, ids.row_splits, begins.values, ends.values

    def _split_words(self, texts):
        return self._split_normalized(normalization.normalize(texts, self.normalization))

    def _split_normalized(self, normalized):
        if self.normalization.form != "korean":
            return bert_normalization.split_words(normalized)
        return wordpiece.split_words(
            normalized,
            self.wordpiece_scheme,
            self.split_punctuation,
            self.split_digits,
            self.normalization.keep_emoji,
            self.split_emoji,
        )

    def _join(self, pieces):
        return join_pieces(pieces, self.wordpiece_scheme)

    def _switches(self):
        switches = {
            **dataclasses.asdict(self.normalization),
            "split_punctuation": self.split_punctuation,
            "split_digits": self.split_digits,
            "split_emoji": self.split_emoji,
        }
        return {name: value for name, value in switches.items() if name not in _OF_IMPORTS}

    def _settings_of_imports(self):
        """Returns the settings that only tokenizers from elsewhere have, so that the files of ours stay as they are."""
        options = self.normalization
        values = (
            options.form,
            self.max_characters_per_word,
            options.special_tokens_in_text,
            self.vocabulary.truncation,
        )
        usual = ("korean", None, False, ODD_TO_SECOND)
        return {name: value for name, value in zip(_OF_IMPORTS, values) if value not in usual}

    def _check_form(self):
        form, limit = self.normalization.form, self.max_characters_per_word
        if form not in FORMS:
            raise InputError(f"form must be one of {', '.join(FORMS)}. Received: {quote(form)}")
        if limit is not None and (type(limit) is not int or limit < 1):
            raise InputError(f"max_characters_per_word must be a number from 1. Received: {quote(limit)}")
        if self.normalization.special_tokens_in_text:
            if form != "bert":
                raise InputError("special_tokens_in_text works only with form=bert")
            self.vocabulary.require(*SPECIAL_TOKENS)
        if form == "korean":
            return
        # What later versions of ours brought is nothing that BERT's tokenizer has.
        needed = {"split_punctuation": True, **dict.fromkeys(self._later_settings, False)}
        wrong = [name for name, value in needed.items() if self._switches()[name] is not value]
        if self.wordpiece_scheme != "continuation":
            wrong.append("wordpiece_scheme")
        if wrong:
            raise InputError(f"form={form} splits text as BERT's tokenizer does, which has no {', '.join(wrong)}")


def load_tokenizer(folder: str | os.PathLike, settings_file: str = TOKENIZER_FILE) -> Tokenizer:
    """Reads a tokenizer that `save` wrote, of the kind that its settings name.

    Raises:
        InputError: A file is missing, or its content can't be used.
    """
    return kind_of_tokenizer(os.path.join(folder, settings_file)).load(folder, settings_file)


def kind_of_tokenizer(path: str | os.PathLike) -> type[Tokenizer]:
    """Returns the class of the tokenizer that a tokenizer.json is of; raises InputError if it can't be read."""
    settings = read_json(path, "the tokenizer settings")
    return SentencePieceTokenizer if settings.get(KIND) == SENTENCEPIECE else KoreanWordPieceTokenizer
