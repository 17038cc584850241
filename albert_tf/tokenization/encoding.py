"""Encodings: pieces, ids and where each piece stands in the text, and spans mapped to pieces."""

import dataclasses

import numpy as np

from albert_tf.base.errors import InputError


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
            Positions in `tokens`; None where the span is empty or holds nothing but spaces and removed characters.
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


def check_pairs(texts: list[str], text_pairs: list[str] | None) -> None:
    if text_pairs is not None and len(texts) != len(text_pairs):
        raise InputError(f"there are {len(texts)} texts, but {len(text_pairs)} text_pairs; every text needs one")
