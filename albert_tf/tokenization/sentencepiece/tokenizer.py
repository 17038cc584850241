"""SentencePiece with what ALBERT does around it, under the interface of all tokenizers."""

import collections.abc
import dataclasses
import os
import re
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError, quote
from albert_tf.base.files import read_json
from albert_tf.base.texts import ODD_TO_SECOND
from albert_tf.tokenization.base import (
    KIND,
    LONE_SURROGATES,
    TOKENIZER_FILE,
    TRUNCATION,
    OpRunner,
    Tokenizer,
    check_switches,
)
from albert_tf.tokenization.sentencepiece.model import SPACE_MARK, Engine, SentencePieceModel, SentencePieceVocabulary
from albert_tf.tokenization.sentencepiece.normalization import (
    NumberCommas,
    SentencePieceNormalizer,
    SentencePieceOptions,
    in_texts,
    spans_of,
    trimmed,
)
from albert_tf.tokenization.unicode_tables import characters_of, texts_of

# Special tokens that text turns into, as in transformers' AlbertTokenizer: "[MASK]" becomes [MASK].
#
# They are found in the text as it is given. The text between them is encoded by itself, with a space before it.

# Marks where a text is to be cut; in the text itself another control character stands in for it.
_CUT, _STAND_IN = "\x02", "\x01"
_SPECIAL_TO_RE2 = frozenset("\\.+*?()|[]{}^$")

Columns = tuple[tf.RaggedTensor, ...]


class SpecialTokensInText:
    """Encodes such tokens, and leaves the rest of a text to others; no spelling of a token begins with another."""

    def __init__(self, ids: collections.abc.Mapping[str, int]):
        self._tokens, self._ids = list(ids), list(ids.values())
        self._pattern = "|".join(map(_escaped, self._tokens))

    def encode(self, texts: tf.Tensor, encode: collections.abc.Callable[[tf.Tensor], Columns]) -> Columns:
        """Returns `encode`'s ragged int32 [N, (pieces)] of texts string [N], with special tokens in their places."""
        is_any = tf.reduce_any(tf.strings.regex_full_match(texts, f"(?s).*(?:{self._pattern}).*"))
        return tf.cond(is_any, lambda: self._spliced(_cut(texts, self._pattern), encode), lambda: encode(texts))

    def _spliced(self, parts, encode):
        is_token = tf.equal(tf.ragged.range(parts.texts.row_lengths()).values % 2, 1)
        spelled = tf.boolean_mask(parts.texts.values, is_token)
        numbers = tf.argmax(tf.equal(spelled[:, None], tf.constant(self._tokens)), axis=1)
        begins, ends = (tf.boolean_mask(values, is_token) for values in (parts.begins, parts.ends))
        of_tokens = (tf.gather(tf.constant(self._ids, tf.int32), numbers), begins, ends)
        ids, *offsets = encode(tf.where(is_token, "", parts.texts.values))
        before = tf.gather(parts.begins, ids.value_rowids())  # offsets count from the begin of a part
        others = [ids, *(values.with_values(values.values + before) for values in offsets)]
        splits = tf.concat([[0], tf.cumsum(tf.cast(is_token, tf.int64))], axis=0)
        joined = [
            tf.concat([other, tf.RaggedTensor.from_row_splits(token, splits)], axis=1)
            for other, token in zip(others, of_tokens)
        ]
        return tuple(
            tf.RaggedTensor.from_row_splits(column.values, tf.gather(column.row_splits, parts.texts.row_splits))
            for column in joined
        )


class _Parts(typing.NamedTuple):
    """Texts cut before and behind tokens, so that every other part is a token."""

    texts: tf.RaggedTensor  # string [N, (parts)]
    begins: tf.Tensor  # int32 [parts], where each begins in its text
    ends: tf.Tensor  # the same for where it ends


def _cut(texts, pattern):
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")  # so that characters can be counted
    texts = tf.strings.regex_replace(texts, _CUT, _STAND_IN)
    parts = tf.strings.split(tf.strings.regex_replace(texts, f"({pattern})", rf"{_CUT}\1{_CUT}"), _CUT)
    lengths = tf.strings.length(parts.values, "UTF8_CHAR")
    ends = tf.cumsum(lengths)
    before = tf.gather(tf.concat([[0], ends], axis=0), tf.gather(parts.row_splits, parts.value_rowids()))
    return _Parts(parts, ends - lengths - before, ends - before)


def _escaped(token):
    """Returns a pattern that matches a token; `re.escape` knows Python's syntax, not RE2's."""
    return "".join(f"\\{character}" if character in _SPECIAL_TO_RE2 else character for character in token)


SENTENCEPIECE = "sentencepiece"
FORMS = GOOGLE, HUGGINGFACE, _, XLM_ROBERTA, DEBERTA = "google", "huggingface", SENTENCEPIECE, "xlm-roberta", "deberta"
# Forms that leave texts as they are to the model.
_OF_MODEL_ALONE = (SENTENCEPIECE, XLM_ROBERTA, DEBERTA)
MODEL_FILE = "spiece.model"

_MODEL_HASH = "model_sha256"
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


class SentencePieceTokenizer(Tokenizer):
    """A SentencePiece model, and the steps before and behind it of the original and of Hugging Face's AlbertTokenizer.

    Args:
        model: The model; special tokens are found by their names in it.
        lower_case: Map letters to lower case.
        strip_accents: Take characters apart (NFKD), and drop accents; the model's own normaliser composes Hangul again.
        normalize_quotes: Make `` and '' a quotation mark, which Hugging Face's tokenizer does and the original doesn't.
        split_number_commas: Cut a piece that ends in a digit and a comma before the comma.
        num_unused: Number of [unused] slots to add behind the model's pieces.
        form: "google" for what the settings above say, no text turning into a special token; "huggingface" for the same
            with letters lower-cased before all else, too, and "[MASK]" turning into the special token;
            "sentencepiece" for the model alone, which KerasHub has; "deberta" for the same with special tokens in text;
            "xlm-roberta" for that with two [SEP] between the texts of a pair.
        special_pieces_in_text: Of form="google": let text spell special tokens that are ordinary pieces of the model.
        truncation: Which text of a pair keeps the odd piece, as for `KoreanWordPieceTokenizer`.

    Raises:
        InputError: A special token is missing, a setting has a value that it can't have, or the model can't be used.
    """

    vocabulary_file = MODEL_FILE

    def __init__(
        self,
        model: SentencePieceModel,
        lower_case: bool = True,
        strip_accents: bool = True,
        normalize_quotes: bool = False,
        split_number_commas: bool = True,
        num_unused: int = 0,
        form: str = GOOGLE,
        special_pieces_in_text: bool = False,
        truncation: str = ODD_TO_SECOND,
    ):
        if type(num_unused) is not int or num_unused < 0:
            raise InputError(f"num_unused must be a number from 0 on. Received: {quote(num_unused)}")
        super().__init__(SentencePieceVocabulary(model, num_unused, 2 if form == XLM_ROBERTA else 1), truncation)
        self.model = model
        self.normalization = SentencePieceOptions(lower_case, strip_accents, normalize_quotes)
        self.split_number_commas, self.num_unused = split_number_commas, num_unused
        self.form, self.special_pieces_in_text = form, special_pieces_in_text
        check_switches({**self._switches(), "special_pieces_in_text": special_pieces_in_text})
        self._check_form()
        as_it_is = special_pieces_in_text or form == SENTENCEPIECE
        leaves_texts = form in _OF_MODEL_ALONE
        engine = Engine(
            model.content if as_it_is else model.with_control_pieces(self.vocabulary.is_reserved), model.source
        )
        normalizer = SentencePieceNormalizer(self.normalization, form == HUGGINGFACE)
        self._encoder = _Encoder(engine, self.vocabulary, None if leaves_texts else normalizer, split_number_commas)
        special = {piece: self.vocabulary.id_of(piece) for piece in self.vocabulary.special_pieces}
        self._special_tokens = SpecialTokensInText(special) if self.takes_special_tokens_in_text else None
        self._run = OpRunner()
        self.resources = [engine]
        self._starts_word = np.array([self._may_start_word(piece) for piece in self.vocabulary.pieces])
        self._is_space = np.array([piece == SPACE_MARK for piece in self.vocabulary.pieces])

    def _check_form(self):
        if self.form not in FORMS:
            raise InputError(f"form must be one of {', '.join(FORMS)}. Received: {quote(self.form)}")
        if self.form in _OF_MODEL_ALONE and any(self._switches().values()):
            raise InputError(f"form={self.form} leaves text to the model, so all other settings must be false")
        if self.form != GOOGLE and self.special_pieces_in_text:
            raise InputError(f"special_pieces_in_text works only with form={GOOGLE}")

    @property
    def takes_special_tokens_in_text(self) -> bool:
        """Whether "[MASK]" and the like in a text are the special tokens."""
        return self.form in (HUGGINGFACE, XLM_ROBERTA, DEBERTA)

    @classmethod
    def from_model_file(cls, model_file: str | os.PathLike, **options) -> "SentencePieceTokenizer":
        """Builds a tokenizer from the .model file that SentencePiece has written; options as for the class.

        Raises:
            InputError: The file is missing or is no such model, a tokenizer.json beside it has other settings for it,
                or as for the class.
        """
        tokenizer = cls(SentencePieceModel.from_file(model_file), **options)
        tokenizer._check_settings_beside(model_file, _MODEL_HASH)
        return tokenizer

    def encode_ids(self, texts: list[str] | tf.Tensor) -> tf.RaggedTensor:
        return self._run(self._encode_ids, texts)

    def encode_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        return self._run(self._encode_with_offsets, texts)

    def _encode_ids(self, texts):
        if self._special_tokens is None:
            return self._encoder.encode_ids(texts)
        return self._special_tokens.encode(texts, lambda parts: (self._encoder.encode_ids(parts),))[0]

    def _encode_with_offsets(self, texts):
        if self._special_tokens is None:
            return self._encoder.encode_with_offsets(texts)
        return self._special_tokens.encode(texts, self._encoder.encode_with_offsets)

    def encode_with_word_starts(self, texts: list[str] | tf.Tensor) -> tuple[tf.RaggedTensor, np.ndarray]:
        """A word starts with a space or a mark, as in the original; a space alone belongs to the next piece."""
        ids = self.encode_ids(texts)
        values, splits = ids.values.numpy(), ids.row_splits.numpy()
        starts = self._starts_word[values]
        starts[1:] &= ~self._is_space[values[:-1]]
        starts[splits[:-1][np.diff(splits) > 0]] = True
        return ids, starts

    @property
    def starts_word(self) -> np.ndarray:
        return self._starts_word

    @classmethod
    def load(cls, folder: str | os.PathLike, settings_file: str = TOKENIZER_FILE) -> "SentencePieceTokenizer":
        """Reads a tokenizer that `save` wrote.

        Raises:
            InputError: A file is missing, a setting or its value is unknown, or spiece.model is not the model that the
                settings were saved with.
        """
        path = os.path.join(folder, settings_file)
        settings = read_json(path, "the tokenizer settings")
        if settings.pop(KIND, None) != SENTENCEPIECE:
            raise InputError(
                f"{path} belongs to another kind of tokenizer; use "
                "albert_tf.tokenization.load_tokenizer, which reads any"
            )
        model = SentencePieceModel.from_file(os.path.join(folder, MODEL_FILE))
        if settings.pop(_MODEL_HASH, None) != model.sha256:
            raise InputError(f"{model.source} is not the model that {path} was written for")
        return cls._from_settings(model, settings, path)

    def to_dict(self) -> dict:
        return {
            KIND: SENTENCEPIECE,
            **self._switches(),
            "num_unused": self.num_unused,
            **self._settings_of_imports(),
            _MODEL_HASH: self.model.sha256,
        }

    def is_vocabulary_file(self, path: str | os.PathLike) -> bool:
        return SentencePieceModel.from_file(path).sha256 == self.model.sha256

    def with_unused(self, num_unused: int) -> "SentencePieceTokenizer":
        """Returns the same tokenizer with so many [unused] slots behind the model's pieces."""
        return type(self)(self.model, **self._switches(), num_unused=num_unused, **self._settings_of_imports())

    def _save_vocabulary(self, path):
        self.model.to_file(path)

    def _locate(self, texts):
        ids, begins, ends = self.encode_with_offsets(texts)
        splits, begins, ends = ids.row_splits.numpy(), np.array(begins.values), np.array(ends.values)
        for row, text in enumerate(texts):
            if LONE_SURROGATES.search(text):
                part = slice(splits[row], splits[row + 1])
                begins[part], ends[part] = _with_surrogates(text, begins[part], ends[part])
        return ids.values.numpy(), begins, ends, splits

    def _join(self, pieces):
        return "".join(pieces).replace(SPACE_MARK, " ").strip(" ")

    def _may_start_word(self, piece):
        is_mark = _LETTER_OR_DIGIT.search(piece) is None
        return piece.startswith(SPACE_MARK) or is_mark or self.vocabulary.is_reserved(piece)

    def _settings_of_imports(self):
        """Returns the settings that only tokenizers from elsewhere have, so that other files stay as they are."""
        settings = {"form": self.form, "special_pieces_in_text": self.special_pieces_in_text}
        settings[TRUNCATION] = self.vocabulary.truncation
        return {name: value for name, value in settings.items() if value not in (GOOGLE, False, ODD_TO_SECOND)}

    def _switches(self):
        return {**dataclasses.asdict(self.normalization), "split_number_commas": self.split_number_commas}


class _Encoder:
    """Normalises texts, unless there is no normalizer, and cuts them into pieces, maybe before number commas, too."""

    def __init__(
        self,
        engine: Engine,
        vocabulary: SentencePieceVocabulary,
        normalizer: SentencePieceNormalizer | None,
        split_number_commas: bool,
    ):
        self._engine, self._normalizer = engine, normalizer
        self._mark_id = vocabulary.id_of(SPACE_MARK) if SPACE_MARK in vocabulary else -1
        self._number_commas = NumberCommas(vocabulary, engine) if split_number_commas else None

    def encode_ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        ids = self._engine.tokenize(texts if self._normalizer is None else self._normalizer.normalize(texts))
        return ids if self._number_commas is None else self._number_commas.split(ids)

    def encode_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Returns ids of texts string [N], and where their pieces begin and end in them, int32 [N, (pieces)] each.

        The span of a piece has no space and no removed character at either end; a space by itself has an empty span
        before what follows it. Where several pieces stand for parts of one character, all have its span.
        """
        characters = characters_of(texts) if self._normalizer is None else self._normalizer.characters(texts)
        ids, byte_begins, byte_ends = self._engine.tokenize_with_offsets(texts_of(characters, tf.size(texts)))
        spans = trimmed(spans_of(byte_begins, byte_ends, characters), characters, tf.equal(ids.values, self._mark_id))
        values, splits = ids.values, ids.row_splits
        if self._number_commas is not None:
            values, splits, spans = self._number_commas.split_spans(values, splits, spans)
        return tuple(
            tf.RaggedTensor.from_row_splits(column, splits) for column in (values, *in_texts(spans, characters))
        )


def _with_surrogates(text, begins, ends):
    """Returns where spans stand in a text whose lone surrogates, which the ops never see, were not counted."""
    places = [place for place, character in enumerate(text) if not LONE_SURROGATES.match(character)]
    places = np.array([*places, len(text)])
    return places[begins], np.where(begins < ends, places[ends - 1] + 1, places[begins])
