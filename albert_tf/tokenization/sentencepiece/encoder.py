"""Strings to ids of a SentencePiece model, and where its pieces stand, with TensorFlow ops alone."""

import tensorflow as tf

from albert_tf.tokenization.characters import characters_of
from albert_tf.tokenization.sentencepiece.engine import Engine
from albert_tf.tokenization.sentencepiece.model import SPACE_MARK
from albert_tf.tokenization.sentencepiece.normalization import SentencePieceNormalizer, texts_of
from albert_tf.tokenization.sentencepiece.number_commas import NumberCommas
from albert_tf.tokenization.sentencepiece.spans import in_texts, spans_of, trimmed
from albert_tf.tokenization.sentencepiece.vocabulary import SentencePieceVocabulary


class SentencePieceEncoder:
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
        """Returns ids of texts string [N], int32 [N, (pieces)]."""
        ids = self._engine.tokenize(texts if self._normalizer is None else self._normalizer.normalize(texts))
        return ids if self._number_commas is None else self._number_commas.split(ids)

    def encode_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Returns ids of texts string [N], and where their pieces begin and end in them, int32 [N, (pieces)] each.

        The span of a piece holds no space and nothing that is removed at either end; a space by itself has an empty
        span before what follows it. Where several pieces stand for parts of one character, all have its span.
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
