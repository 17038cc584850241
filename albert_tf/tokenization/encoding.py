"""Encodings: pieces, ids and where each piece stands in the text; how texts are encoded, and spans mapped to pieces."""

import collections.abc
import dataclasses
import itertools
import operator

import numpy as np

from albert_tf.errors import InputError
from albert_tf.tokenization.vocabulary import CLS, SEP, Vocabulary

_TEXTS_PER_BATCH = 1024


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
            Positions in `tokens`; None where no piece holds a character of the span, because it is empty or holds
            nothing but spaces and removed characters.
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


class OffsetEncoder:
    """Encodes texts and tells where each piece stands in the text as given; `locate` is `Tokenizer._locate`."""

    def __init__(self, vocabulary: Vocabulary, locate: collections.abc.Callable[[list[str]], tuple[np.ndarray, ...]]):
        self._vocabulary, self._locate = vocabulary, locate
        self._pieces = np.array(vocabulary.pieces, object)

    def encode_batch(self, texts: list[str], text_pairs: list[str] | None) -> list[Encoding]:
        """Encodes texts, or pairs of texts; see `Tokenizer.encode_batch`."""
        self._vocabulary.require(CLS, SEP)
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

    def _with_further_separators(self, row):
        """Returns the columns of the first text of a pair with the [SEP] that it has besides its own."""
        sep_id, count = self._vocabulary.id_of(SEP), self._vocabulary.num_separators - 1
        added = self._vocabulary.pieces[sep_id], sep_id, (0, 0), 0
        return [column + [value] * count for column, value in zip(row, added)]

    def _add_special_tokens(self, ids, begins, ends, splits, segment_id):
        """Adds [SEP] to each text, and [CLS] to those of the first segment; yields the columns of each text."""
        num_texts = len(splits) - 1
        where, added = splits[1:], np.full(num_texts, self._vocabulary.id_of(SEP))
        if segment_id == 0:
            # Of two insertions at one place, the earlier in the list comes first: the [SEP] of the text before.
            where = np.stack([splits[:-1], where], axis=1).ravel()
            added = np.stack([np.full(num_texts, self._vocabulary.id_of(CLS)), added], axis=1).ravel()
        ids, begins, ends = (np.insert(column, where, new) for column, new in ((ids, added), (begins, 0), (ends, 0)))
        borders = (splits + np.arange(num_texts + 1) * (len(added) // max(num_texts, 1))).tolist()
        tokens, ids, offsets = self._pieces[ids].tolist(), ids.tolist(), list(zip(begins.tolist(), ends.tolist()))
        for begin, end in itertools.pairwise(borders):
            yield tokens[begin:end], ids[begin:end], offsets[begin:end], [segment_id] * (end - begin)


def check_pairs(texts: list[str], text_pairs: list[str] | None) -> None:
    """Raises InputError if not every text has its pair, where there are pairs."""
    if text_pairs is not None and len(texts) != len(text_pairs):
        raise InputError(f"there are {len(texts)} texts, but {len(text_pairs)} text_pairs; every text needs one")
