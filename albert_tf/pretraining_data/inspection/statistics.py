"""Statistics of one shard."""

import collections

import numpy as np

from albert_tf.pretraining_data.shard_reader import ShardReader
from albert_tf.tokenization.vocabulary import UNK


class ShardStatistics:
    """Reads a whole shard and counts. Lengths and mask rates count every piece, [CLS] and [SEP] too.

    Args:
        shard: The shard.

    Attributes:
        lengths: int64 [S + 1], the number of examples of each length.
        label_ones: Examples of label 1.
        num_masked: Chosen pieces that became [MASK].
        num_replaced: Chosen pieces that became another piece.
        num_kept: Chosen pieces that stayed, or were replaced by themselves.
        piece_uses: Original piece id to its occurrences, [CLS] and [SEP] left out.

    Raises:
        InputError: A record is damaged, is unlike the first one, or holds an id that is not in the vocabulary.
    """

    def __init__(self, shard: ShardReader):
        self._options = shard.masking_options if shard.is_masked else None
        self._unknown_id = shard.vocabulary.id_of(UNK)
        self.lengths = np.zeros(shard.max_seq_length + 1, np.int64)
        self.label_ones = self.num_masked = self.num_replaced = self.num_kept = 0
        self.piece_uses = collections.Counter()
        for batch in shard.read():
            self._add(batch, shard.mask_id)

    def _add(self, batch, mask_id):
        self.lengths += np.bincount(batch.is_used.sum(axis=1), minlength=len(self.lengths))
        self.label_ones += int((batch.labels == 1).sum())
        seen, original = batch.input_ids[batch.is_chosen], batch.original_ids[batch.is_chosen]
        num_masked, num_kept = int((seen == mask_id).sum()), int((seen == original).sum())
        self.num_masked += num_masked
        self.num_kept += num_kept
        self.num_replaced += len(seen) - num_masked - num_kept
        self.piece_uses.update(batch.original_ids[batch.is_used & ~batch.is_special].tolist())

    @property
    def num_examples(self) -> int:
        """Examples in the shard."""
        return int(self.lengths.sum())

    @property
    def num_pieces(self) -> int:
        """Pieces in the shard."""
        return int(self.lengths @ np.arange(len(self.lengths)))

    @property
    def num_chosen(self) -> int:
        """Pieces that the model must predict."""
        return self.num_masked + self.num_replaced + self.num_kept

    @property
    def expected_mask_rate(self) -> float | None:
        """Share of pieces that are chosen if all budgets are spent, None if unknown."""
        if self._options is None:
            return None
        wanted = np.maximum(np.round(np.arange(len(self.lengths)) * self._options.masked_lm_prob), 1)
        most = self._options.max_predictions_per_seq
        most_permuted = most // 2 if self._options.do_permutation else 0
        budgets = np.minimum(wanted, most - most_permuted) + np.minimum(wanted, most_permuted)
        return float(self.lengths @ budgets / self.num_pieces)

    @property
    def unknown_rate(self) -> float:
        """Share of the pieces between special tokens that are [UNK]."""
        return self.piece_uses[self._unknown_id] / self.piece_uses.total()
