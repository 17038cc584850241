"""Examples before they are padded and masked, kept column by column so that NumPy can work on thousands at once."""

import dataclasses

import numpy as np

from albert_tf.pretraining_data.packing import BEGINS_MENTION, IN_MENTION, ranges
from albert_tf.pretraining_data.records import MENTIONS_FEATURE

# Of the columns of `Examples`, in their order.
COLUMN_DTYPES = (np.uint64, np.int32, np.int32, np.int8, np.int32, np.int16, np.uint32)

_WORD_START, _IN_MENTION = np.uint32(1 << 31), np.uint32(1 << 30)


@dataclasses.dataclass(frozen=True)
class Examples:
    """N examples; in the end they are sorted by their random keys, which shuffles them."""

    keys: np.ndarray  # uint64 [N]
    first_lengths: np.ndarray  # int32 [N], pieces of the first segment
    second_lengths: np.ndarray  # int32 [N], pieces of the second segment, 0 if there is none
    labels: np.ndarray  # int8 [N], the label of the sentence pair
    num_characters: np.ndarray  # int32 [N], of the text that they stand for; 0 where the packing doesn't declare it
    sources: np.ndarray  # int16 [N], which of `BuilderOptions.sources` they are of
    # uint32 [P], ids of one example after the other, first and second segment; the highest bit is set where a word
    # starts, or another unit of masking, and the next one where a piece lies in a mention of an entity.
    pieces: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def lengths(self) -> np.ndarray:
        """int64 [N], pieces of each example."""
        return self.first_lengths.astype(np.int64) + self.second_lengths

    @property
    def ids(self) -> np.ndarray:
        """int32 [P], without marks."""
        return (self.pieces & ~(_WORD_START | _IN_MENTION)).astype(np.int32)

    @classmethod
    def concatenate(cls, parts: list["Examples"]) -> "Examples":
        if not parts:
            return cls(*(np.zeros(0, dtype) for dtype in COLUMN_DTYPES))
        return cls(*map(np.concatenate, zip(*(part.columns() for part in parts))))

    @classmethod
    def from_segments(
        cls,
        segments: np.ndarray,
        labels: np.ndarray,
        keys: np.ndarray,
        ids: np.ndarray,
        word_starts: np.ndarray,
        num_characters: np.ndarray | None = None,
        mentions: np.ndarray | None = None,
        source: int = 0,
    ) -> "Examples":
        """Collects the pieces of examples of one source of text.

        Segments are int64 [N, 4], begin and end of the first and of the second; labels are [N] and keys uint64 [N]. The
        arrays from `ids` to `mentions` are those of `Text`.
        """
        begins, ends = segments[:, 0::2].ravel(), segments[:, 1::2].ravel()
        lengths = ends - begins
        marked = ids.astype(np.uint32)
        if mentions is not None:
            in_mention = np.isin(mentions, (BEGINS_MENTION, IN_MENTION))
            # What is left of a mention that the packing has cut is a unit, too.
            goes_on = (mentions == IN_MENTION) & np.append(False, in_mention[:-1])
            word_starts = np.where(mentions > 0, ~goes_on, word_starts)
            marked |= np.where(in_mention, _IN_MENTION, np.uint32(0))
        marked |= word_starts.astype(np.uint32) << np.uint32(31)
        pieces = marked[ranges(begins, lengths)]
        # What is left of a word that lost its front counts as a word, and never joins what precedes the segment.
        pieces[(np.cumsum(lengths) - lengths)[lengths > 0]] |= _WORD_START
        lengths = lengths.reshape(-1, 2).astype(np.int32)
        characters = np.zeros(len(segments), np.int32)
        if num_characters is not None:
            before = np.append(0, np.cumsum(num_characters, dtype=np.int64))
            characters = (before[ends] - before[begins]).reshape(-1, 2).sum(axis=1).astype(np.int32)
        sources = np.full(len(segments), source, np.int16)
        return cls(keys, lengths[:, 0], lengths[:, 1], labels.astype(np.int8), characters, sources, pieces)

    def columns(self) -> tuple[np.ndarray, ...]:
        lengths = self.first_lengths, self.second_lengths
        return self.keys, *lengths, self.labels, self.num_characters, self.sources, self.pieces

    def sorted_by_key(self) -> "Examples":
        order = np.argsort(self.keys, kind="stable")
        begins = np.cumsum(self.lengths) - self.lengths
        pieces = self.pieces[ranges(begins[order], self.lengths[order])]
        return Examples(*(column[order] for column in self.columns()[:-1]), pieces)

    def split(self, size: int) -> list["Examples"]:
        """Returns parts of `size` examples; the last may be smaller, but none is empty."""
        borders = np.append(np.cumsum(self.lengths) - self.lengths, len(self.pieces))
        parts = []
        for begin in range(0, len(self), size):
            end = min(begin + size, len(self))
            columns = (column[begin:end] for column in self.columns()[:-1])
            parts.append(Examples(*columns, self.pieces[borders[begin] : borders[end]]))
        return parts

    def padded(
        self,
        max_seq_length: int,
        pad_id: int,
        cls_id: int,
        sep_id: int,
        segments_alternate: bool = False,
        adds_separators: bool = True,
        tells_mentions: bool = False,
    ) -> dict[str, np.ndarray]:
        """Adds special tokens and pads: int32 [N, max_seq_length] `records.SEQUENCE_FEATURES`.

        With `tells_mentions`, `MENTIONS_FEATURE` is added. Without separators, there is no second segment.
        """
        rows, positions = np.arange(len(self)), np.arange(max_seq_length)
        first_ends = 1 + self.first_lengths.astype(np.int64)  # where the first [SEP] stands
        ends = first_ends + adds_separators * (1 + self.second_lengths + (self.second_lengths > 0))

        is_piece = (positions > 0) & (positions < ends[:, None] - adds_separators)
        if adds_separators:
            is_piece &= positions != first_ends[:, None]
        input_ids = np.full(is_piece.shape, pad_id, np.int32)
        token_boundary = np.zeros(is_piece.shape, np.int32)
        input_ids[is_piece] = self.ids
        token_boundary[is_piece] = self.pieces >> np.uint32(31)
        separators = [(first_ends, sep_id), (ends - 1, sep_id)] if adds_separators else []
        for column, token_id in [(np.zeros_like(rows), cls_id), *separators]:
            input_ids[rows, column] = token_id
            token_boundary[rows, column] = 1

        input_mask = positions < ends[:, None]
        is_second = positions > first_ends[:, None]
        if segments_alternate:
            is_separator = input_ids == sep_id
            is_second = (np.cumsum(is_separator, axis=1) - is_separator) % 2 == 1
        features = {
            "input_ids": input_ids,
            "input_mask": input_mask.astype(np.int32),
            "segment_ids": (input_mask & is_second).astype(np.int32),
            "token_boundary": token_boundary,
        }
        if tells_mentions:
            in_mention = np.zeros_like(input_ids)
            in_mention[is_piece] = (self.pieces & _IN_MENTION) > 0
            features[MENTIONS_FEATURE] = in_mention
        return features
