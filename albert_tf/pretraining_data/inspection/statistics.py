"""Statistics of one shard, and what theory expects of them."""

import collections

import numpy as np

from albert_tf.pretraining_data.masking import ngram_probabilities
from albert_tf.pretraining_data.shard_reader import ShardReader
from albert_tf.tokenization.vocabulary import UNK

_SIMULATED_EXAMPLES = 4000


class ShardStatistics:
    """Reads a whole shard and counts. Lengths and mask rates count every piece, [CLS] and [SEP] too.

    Args:
        shard: The shard.

    Attributes:
        examples: int64 [S + 1, S + 1], the number of examples by length and number of chosen pieces.
        label_ones: Examples of label 1.
        num_masked: Chosen pieces that became [MASK].
        num_replaced: Chosen pieces that became another piece.
        num_kept: Chosen pieces that stayed, or were replaced by themselves.
        piece_uses: Original piece id to its occurrences, [CLS] and [SEP] left out.
        unit: "word" or "piece": what n-grams are made of.
        num_mentions: Mentions of entities that are masked whole; None where none are.
        num_in_mentions: Pieces in them.
        num_chosen_in_mentions: Chosen pieces in them.
        runs: int64 [S + 1], the number of runs of neighbouring chosen units by length.
        expected_runs: float64 [S + 1], the share of runs of each length that theory expects; None if it is unknown how
            the shard is masked.

    Raises:
        InputError: A record is damaged, is unlike the first one, or holds an id that is not in the vocabulary.
    """

    def __init__(self, shard: ShardReader):
        self._options = shard.masking_options if shard.is_masked else None
        self._unknown_id = shard.vocabulary.id_of(UNK) if shard.vocabulary else None
        size = shard.max_seq_length + 1
        self.examples = np.zeros([size, size], np.int64)
        self.label_ones = self.num_masked = self.num_replaced = self.num_kept = 0
        self.piece_uses = collections.Counter()
        self.num_mentions = None
        self.num_in_mentions = self.num_chosen_in_mentions = 0
        masks_words = self._options is None or self._options.do_whole_word_mask
        self.unit = "word" if masks_words and shard.knows_words else "piece"
        self.runs = np.zeros(size, np.int64)
        layouts = []
        for batch in shard.read():
            unit_starts = batch.word_starts if self.unit == "word" else np.ones_like(batch.word_starts)
            self._add(batch, shard.mask_id)
            self.runs += np.bincount(_run_lengths(batch.is_chosen, unit_starts), minlength=size)
            if self._options and len(layouts) < _SIMULATED_EXAMPLES:
                layouts += _layouts(batch, unit_starts)
        self.expected_runs = self._simulate_runs(layouts) if self._options else None

    def _add(self, batch, mask_id):
        np.add.at(self.examples, (batch.is_used.sum(axis=1), batch.is_chosen.sum(axis=1)), 1)
        self.label_ones += int((batch.labels == 1).sum())
        seen, original = batch.input_ids[batch.is_chosen], batch.original_ids[batch.is_chosen]
        num_masked, num_kept = int((seen == mask_id).sum()), int((seen == original).sum())
        self.num_masked += num_masked
        self.num_kept += num_kept
        self.num_replaced += len(seen) - num_masked - num_kept
        ids, counts = np.unique(batch.original_ids[batch.is_used & ~batch.is_special], return_counts=True)
        self.piece_uses.update(dict(zip(ids.tolist(), counts.tolist())))
        if batch.in_mention is not None:
            self.num_mentions = (self.num_mentions or 0) + int((batch.in_mention & batch.word_starts).sum())
            self.num_in_mentions += int(batch.in_mention.sum())
            self.num_chosen_in_mentions += int((batch.in_mention & batch.is_chosen).sum())

    @property
    def num_examples(self) -> int:
        """Examples in the shard."""
        return int(self.examples.sum())

    @property
    def num_pieces(self) -> int:
        """Pieces in the shard."""
        return int(self.lengths @ np.arange(len(self.lengths)))

    @property
    def num_chosen(self) -> int:
        """Pieces that the model must predict."""
        return self.num_masked + self.num_replaced + self.num_kept

    @property
    def lengths(self) -> np.ndarray:
        """int64 [S + 1], the number of examples of each length."""
        return self.examples.sum(axis=1)

    @property
    def median_length(self) -> float:
        """The median of the lengths."""
        middle = [(self.num_examples + 1) // 2, self.num_examples // 2 + 1]
        return float(np.searchsorted(np.cumsum(self.lengths), middle).mean())

    @property
    def budgets(self) -> np.ndarray | None:
        """float64 [S + 1], how many pieces should be chosen at each length; None if unknown."""
        if self._options is None:
            return None
        wanted = np.maximum(np.round(np.arange(len(self.lengths)) * self._options.masked_lm_prob), 1)
        most = self._options.max_predictions_per_seq
        most_permuted = most // 2 if self._options.do_permutation else 0
        return np.minimum(wanted, most - most_permuted) + np.minimum(wanted, most_permuted)

    @property
    def expected_mask_rate(self) -> float | None:
        """Share of pieces that are chosen if all budgets are spent, None if unknown."""
        return None if self._options is None else float(self.lengths @ self.budgets / self.num_pieces)

    @property
    def ngram_probabilities(self) -> np.ndarray | None:
        """float64 [ngram], p(n) for n = 1, 2, ...; None if unknown."""
        return None if self._options is None else ngram_probabilities(self._options)

    @property
    def unknown_rate(self) -> float | None:
        """Share of the pieces between special tokens that are [UNK], None if the vocabulary is unknown."""
        return None if self._unknown_id is None else self.piece_uses[self._unknown_id] / self.piece_uses.total()

    @property
    def label_interval(self) -> tuple[float, float]:
        """95% confidence interval of the share of label 1 (Wilson, 1927)."""
        count, z = self.num_examples, 1.96
        share = self.label_ones / count
        center = share + z**2 / (2 * count)
        margin = z * np.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
        scale = 1 + z**2 / count
        return float((center - margin) / scale), float((center + margin) / scale)

    def _simulate_runs(self, layouts):
        """Returns how the lengths of runs are distributed if the rules of `masking` are followed exactly.

        A run is not an n-gram: n-grams that lie side by side make one run, and the end of a segment or of the budget
        cuts them short. So the rules are simulated, without TensorFlow, on layouts of the shard's own examples.
        """
        random = np.random.default_rng(0)
        counts = np.zeros(len(self.runs))
        for index in range(_SIMULATED_EXAMPLES):
            length, segments = layouts[index % len(layouts)]
            is_chosen = _choose_units(segments, int(self.budgets[length]), self.ngram_probabilities, random)
            counts += np.bincount(_run_lengths(is_chosen, np.ones_like(is_chosen)), minlength=len(counts))
        return counts / max(counts.sum(), 1)


def _run_lengths(is_chosen, unit_starts):
    """Returns the length, in units, of every run of neighbouring chosen units; each row begins with a special token."""
    units = np.cumsum(unit_starts) - 1
    has_chosen = np.zeros(units[-1] + 3, np.int8)
    has_chosen[units[is_chosen.ravel()] + 1] = 1
    borders = np.flatnonzero(np.diff(has_chosen))
    return borders[1::2] - borders[::2]


def _layouts(batch, unit_starts):
    """Returns for each example its length and, for each stretch between special tokens, the sizes of its units."""
    layouts = []
    for is_used, is_special, starts in zip(batch.is_used, batch.is_special, unit_starts):
        length = int(is_used.sum())
        begins = np.flatnonzero(starts[:length])
        sizes = np.diff(begins, append=length)
        stretches = np.split(sizes, np.flatnonzero(is_special[begins]))
        layouts.append((length, [stretch[1:] for stretch in stretches]))
    return layouts


def _choose_units(segments, budget, probabilities, random):
    """Covers segments with n-grams of random lengths and takes n-grams in random order until the budget is spent.

    Args:
        segments: For each segment the sizes of its units, in pieces.
        budget: How many pieces to choose.
        probabilities: p(n) for n = 1, 2, ...
        random: Source of every draw.

    Returns:
        bool [units and a gap after each segment].
    """
    sizes, ngrams = [], []
    for segment in segments:
        ends = np.cumsum(1 + random.choice(len(probabilities), len(segment), p=probabilities))
        ends = np.minimum(ends, len(segment)) + len(sizes)
        ngrams += [range(*ngram) for ngram in zip([len(sizes), *ends], ends)]
        sizes += [*segment, 0]
    is_chosen = np.zeros(len(sizes), bool)
    for index in random.permutation(len(ngrams)):
        for unit in ngrams[index]:
            if sizes[unit] > budget:
                break  # of an n-gram that doesn't fit, the leading units are taken
            is_chosen[unit] = True
            budget -= sizes[unit]
    return is_chosen
