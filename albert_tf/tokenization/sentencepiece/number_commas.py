"""Pieces that end in a digit and a comma, cut before the comma.

The original does this (`encode_pieces`), so that a number is spelled alike whether a comma follows it or not: where the
model says `▁2010,` it makes `▁2010` and `,`. The part before the comma is encoded by itself.
"""

import itertools

import numpy as np
import tensorflow as tf

from albert_tf.tokenization.sentencepiece.engine import Engine
from albert_tf.tokenization.sentencepiece.model import SPACE_MARK
from albert_tf.tokenization.sentencepiece.spans import Spans
from albert_tf.tokenization.sentencepiece.vocabulary import SentencePieceVocabulary
from albert_tf.tokenization.vocabulary import UNK

# Characters to the end of a piece, however many these are.
_ALL = 1 << 20


class NumberCommas:
    """Cuts the pieces of encoded texts; the engine encodes the part before a comma."""

    def __init__(self, vocabulary: SentencePieceVocabulary, engine: Engine):
        parts = [[(piece_id, 0, _ALL)] for piece_id in range(len(vocabulary))]
        pieces = [piece for piece in vocabulary.pieces if ends_in_number_comma(piece)]
        stems = [piece[:-1].replace(SPACE_MARK, "") for piece in pieces]
        encoded = engine.tokenize(tf.constant(stems, tf.string, shape=[len(stems)])).to_list()
        for piece, stem, ids in zip(pieces, stems, encoded):
            parts[vocabulary.id_of(piece)] = _parts(piece, stem, ids, vocabulary)
        counts = np.array([len(row) for row in parts], np.int32)
        self._starts, self._counts = (np.cumsum(counts) - counts).astype(np.int32), counts
        self._ids, self._begins, self._ends = np.array(list(itertools.chain.from_iterable(parts)), np.int32).T

    def split(self, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        """Returns ids int32 [N, (pieces)] with the parts of cut pieces in their place."""

        def split():
            places, _, splits = self._cut(ids.values, ids.row_splits)
            return tf.gather(self._ids, places), splits

        values, splits = tf.cond(self._is_any(ids.values), split, lambda: (ids.values, ids.row_splits))
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

    def split_spans(self, ids: tf.Tensor, splits: tf.Tensor, spans: Spans) -> tuple[tf.Tensor, tf.Tensor, Spans]:
        """Does the same to ids int32 [P], texts' splits int64 [N + 1] and spans."""

        def split():
            places, sources, new_splits = self._cut(ids, splits)
            firsts, behinds, rows = (tf.gather(values, sources) for values in spans)
            # What the model's normaliser has made shorter or longer is shared out as far as it goes.
            begins = tf.minimum(tf.gather(self._begins, places), tf.maximum(behinds - firsts - 1, 0))
            ends = tf.minimum(tf.gather(self._ends, places), behinds - firsts)
            new_spans = Spans(firsts + begins, firsts + tf.maximum(begins, ends), rows)
            return tf.gather(self._ids, places), new_splits, new_spans

        return tf.cond(self._is_any(ids), split, lambda: (ids, splits, spans))

    def _is_any(self, ids):
        return tf.reduce_any(tf.gather(self._counts, ids) > 1)

    def _cut(self, ids, splits):
        """Returns the places of the parts in the table, the piece that each is of, and the texts' splits."""
        counts = tf.gather(self._counts, ids)
        parts = tf.ragged.range(counts)
        sources = parts.value_rowids()
        places = tf.gather(tf.gather(self._starts, ids), sources) + parts.values
        ends = tf.concat([[0], tf.cumsum(tf.cast(counts, tf.int64))], axis=0)
        return places, sources, tf.gather(ends, splits)


def ends_in_number_comma(piece: str) -> bool:
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


def _parts(piece, stem, ids, vocabulary):
    """Returns (id, first character, character behind the last) of each part of a piece, its mark of a space left out.

    The stem is the part before the comma, and `ids` are the model's of that by itself, behind a mark of a space.
    """

    def id_of(text):
        return vocabulary.id_of(text if text in vocabulary else UNK)

    texts = [vocabulary.pieces[part] for part in ids]
    if not piece.startswith(SPACE_MARK) and texts and texts[0].startswith(SPACE_MARK):
        texts = [texts[0].removeprefix(SPACE_MARK), *texts[1:]]
        texts = texts if texts[0] else texts[1:]
    lengths = [len(text.replace(SPACE_MARK, "")) for text in texts]
    borders = np.minimum(np.cumsum([0, *lengths]), len(stem)).tolist()
    if texts:
        borders[-1] = len(stem)
    parts = [(id_of(text), begin, end) for text, begin, end in zip(texts, borders, borders[1:])]
    return [*parts, (id_of(","), len(stem), _ALL)]
