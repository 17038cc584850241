"""An encoded text: pieces, ids and where each piece stands in the text; maps spans of text to pieces and back."""

import dataclasses

from albert_tf.errors import InputError


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
        found = [
            position
            for position, ((piece_begin, piece_end), segment) in enumerate(zip(self.offsets, self.segment_ids))
            if segment == segment_id and max(begin, piece_begin) < min(end, piece_end)
        ]
        return (found[0], found[-1]) if found else None

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
        # No piece of a text ends at 0.
        if any(self.offsets[position] == (0, 0) for position in range(first, last + 1)):
            raise InputError(f"pieces {first} to {last} hold [CLS] or [SEP], which stand for no part of a text")
        return self.offsets[first][0], self.offsets[last][1]
