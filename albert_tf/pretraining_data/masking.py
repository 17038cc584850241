"""Masks for the masked language model: n-grams of whole words, drawn with TensorFlow ops for a whole batch at once.

Every stretch of text between two special tokens is tiled from its first word with n-grams whose lengths follow
p(n) ~ 1/n (paper, section 4.1), so that none crosses a [SEP]; tiles are taken in random order until the budget is
spent. Of a tile that doesn't fit, the leading words are taken (the original tries shorter n-grams), and words of the
next tiles fill the remaining room.

Positions in this module are flat: they count the pieces of the batch row by row. Words, tiles and chosen pieces are
lists for the whole batch, and only tiles are sorted, which is what makes this fast.

The `prepare` of objectives/language_models.py calls `mask_batch` for each batch, or the builder once, where
examples are static or held out.
"""

import dataclasses
import typing

import numpy as np
import tensorflow as tf

from albert_tf.tokenization import Vocabulary
from albert_tf.tokenization.vocabulary import CLS, MASK, SEP, SPECIAL_TOKENS

MASK_SHARE, KEEP_SHARE = 0.8, 0.1  # of the chosen pieces; the rest becomes a random piece (BERT, section 3.1)

_NUM_FILL_TILES, _NUM_FILL_ROUNDS = 12, 3  # a word that would still fit is missed in 1 of 15,000 Korean sequences


@dataclasses.dataclass(frozen=True)
class MaskingTokens:
    """The ids of a vocabulary that masking treats differently."""

    mask_id: int
    unmaskable_ids: tuple[int, ...]  # that are never chosen: [CLS] and [SEP]
    real_piece_ids: np.ndarray  # int32, that a random replacement is drawn from


@dataclasses.dataclass(frozen=True)
class MaskingOptions:
    """How to mask.

    Attributes:
        max_predictions_per_seq: Most pieces P chosen in a sequence; None where there are no data yet, and nothing is
            masked.
        masked_lm_prob: Share of the pieces, [CLS] and [SEP] counted, that is chosen.
        ngram: Longest n-gram, in words.
        favor_shorter_ngram: p(n) ~ 1/n; otherwise every length is as likely.
        do_whole_word_mask: Choose whole words; otherwise single pieces are the unit.
        do_permutation: Choose more n-grams, up to the same budget, whose pieces change places within the sequence and
            are predicted too (the original's option). Masks get at most half of P, rounded up, and permutation the
            other half.
        tokens: Those of the vocabulary; None where it is not known, and nothing can be masked.
    """

    max_predictions_per_seq: int | None = None
    masked_lm_prob: float = 0.15
    ngram: int = 3
    favor_shorter_ngram: bool = True
    do_whole_word_mask: bool = True
    do_permutation: bool = False
    tokens: MaskingTokens | None = dataclasses.field(default=None, compare=False)

    def with_tokens_of(self, vocabulary: Vocabulary) -> "MaskingOptions":
        """Returns the options with the tokens of a vocabulary; raises InputError if it lacks a special token."""
        vocabulary.require(*SPECIAL_TOKENS)
        unmaskable_ids = vocabulary.id_of(CLS), vocabulary.id_of(SEP)
        tokens = MaskingTokens(vocabulary.id_of(MASK), unmaskable_ids, vocabulary.real_piece_ids)
        return dataclasses.replace(self, tokens=tokens)


def default_max_predictions(max_seq_length: int, masked_lm_prob: float, do_permutation: bool = False) -> int:
    """Returns the least number of predictions that doesn't cut masking short: ceil(max_seq_length * masked_lm_prob).

    With permutation twice that. The original's fixed 20 masks 3.9% of 512 pieces, not 15% (google-research/albert#51).
    """
    return int(np.ceil(round(max_seq_length * masked_lm_prob, 6))) * (1 + do_permutation)


def ngram_probabilities(options: MaskingOptions) -> np.ndarray:
    """Returns float64 [ngram], p(n) for n = 1, 2, ..."""
    lengths = np.arange(1, options.ngram + 1)
    weights = 1.0 / lengths if options.favor_shorter_ngram else np.ones(options.ngram)
    return weights / weights.sum()


def mask_batch(features: dict[str, tf.Tensor], options: MaskingOptions, seed: tf.Tensor) -> dict[str, tf.Tensor]:
    """Chooses and replaces pieces of int32 [B, S] `input_ids`, by `input_mask` and `token_boundary` (1: a word starts).

    Each sequence begins with [CLS]; the seed is int32 or int64 [2], and equal ones give equal masks to equal batches.
    Other features are passed on. Adds `masked_lm_positions` (ascending, 0 where unused) and `masked_lm_ids`,
    int32 [B, P], and `masked_lm_weights`, float32 [B, P] (1 where used).
    """
    seeds = tf.unstack(tf.random.split(seed, 7))
    shape = tf.shape(features["input_ids"])
    row_begins = shape[1] * tf.range(shape[0] + 1)
    ids, input_mask, token_boundary = (
        tf.reshape(features[name], [-1]) for name in ("input_ids", "input_mask", "token_boundary")
    )
    maskable = tf.equal(input_mask, 1)
    for token_id in options.tokens.unmaskable_ids:
        maskable &= tf.not_equal(ids, token_id)
    starts_word = tf.equal(token_boundary, 1) if options.do_whole_word_mask else tf.ones_like(maskable)
    mask_budget, permutation_budget = _budgets(features["input_mask"], options)

    chosen = _choose(maskable, starts_word, row_begins, mask_budget, options, seeds[:2])
    masked = _positions_of(chosen)
    new_ids = _replace(ids, masked, _draw_replacements(tf.gather(ids, masked), options.tokens, seeds[2:4]))
    if options.do_permutation:
        free = maskable & ~chosen
        is_permuted = _choose(free, starts_word, row_begins, permutation_budget, options, seeds[4:6])
        permuted = _positions_of(is_permuted)
        new_ids = _replace(new_ids, permuted, tf.gather(ids, _shuffle_in_rows(permuted, shape[1], seeds[6])))
        chosen |= is_permuted
    new_ids = tf.ensure_shape(tf.reshape(new_ids, shape), features["input_ids"].shape)
    return {**features, "input_ids": new_ids, **_list_predictions(ids, chosen, row_begins, new_ids.shape[0], options)}


def _positions_of(is_here):
    return tf.cast(tf.where(tf.reshape(is_here, [-1]))[:, 0], tf.int32)


def _budgets(input_mask, options):
    """Returns how many pieces to mask, and how many to permute, float32 [B, 1] each."""
    most_permuted = options.max_predictions_per_seq // 2 if options.do_permutation else 0
    lengths = tf.cast(tf.reduce_sum(input_mask, axis=1, keepdims=True), tf.float64)  # as Python rounds
    wanted = tf.cast(tf.maximum(tf.round(lengths * options.masked_lm_prob), 1), tf.float32)
    return tf.minimum(wanted, options.max_predictions_per_seq - most_permuted), tf.minimum(wanted, most_permuted)


def _choose(maskable, starts_word, row_begins, budget, options, seeds):
    """Returns which pieces are chosen, bool [B * S]."""
    words, stretch_begins, stretch_ends = _find_words(maskable, starts_word)
    tiles = _lay_tiles(words, stretch_begins, stretch_ends, row_begins, options, seeds[0])
    order = _shuffle_tiles(tiles.row_splits, seeds[1])

    # Every tile has a piece, so that no more tiles are ever taken than there is room for pieces.
    first = order[:, : options.max_predictions_per_seq]
    is_whole, room = _take_in_order(tf.gather(tiles.ends - tiles.begins, first), budget)
    whole = tf.gather(tf.reshape(first, [-1]), _positions_of(is_whole))
    num_whole = tf.reduce_sum(tf.cast(is_whole, tf.int32), axis=1, keepdims=True)
    order = tf.pad(order, [[0, 0], [0, _NUM_FILL_TILES]], constant_values=tiles.row_splits[-1])
    rest = tf.gather(order, num_whole + tf.range(_NUM_FILL_TILES), batch_dims=1)
    rest_begins, rest_ends = _choose_words(words, tiles, rest, room, options)

    positions = tf.ragged.range(
        tf.concat([tf.gather(tiles.begins, whole), rest_begins], axis=0),
        tf.concat([tf.gather(tiles.ends, whole), rest_ends], axis=0),
    ).values
    return tf.math.unsorted_segment_sum(tf.ones_like(positions), positions, tf.size(maskable)) > 0


def _find_words(maskable, starts_word):
    """Returns int32 positions of the words, and the numbers at which stretches of text begin and end.

    The place behind a stretch is listed as a word of its own, so that each word ends where the next one begins.
    """
    is_here, was_before = tf.pad(maskable, [[0, 1]]), tf.pad(maskable, [[1, 0]])
    # What follows a special token starts a word even where the record doesn't say so.
    words = _positions_of(tf.not_equal(is_here, was_before) | (is_here & tf.pad(starts_word, [[0, 1]])))
    stretch_ends = tf.searchsorted(words, _positions_of(was_before & ~is_here))
    stretch_begins = tf.concat([[0], stretch_ends + 1], axis=0)[:-1]
    return words, stretch_begins, stretch_ends


class _Tiles(typing.NamedTuple):
    """The n-grams of a batch in the order of the text, followed by an empty one."""

    first_words: tf.Tensor  # int32 [tiles + 1], number of the first word
    begins: tf.Tensor  # int32 [tiles + 1], position of the first piece
    ends: tf.Tensor  # int32 [tiles + 1], position after the last piece
    row_splits: tf.Tensor  # int32 [B + 1], number of each row's first tile


def _lay_tiles(words, stretch_begins, stretch_ends, row_begins, options, seed):
    """Cuts every stretch into n-grams, from its first word on.

    The lengths come from a single sequence of draws. Each stretch starts with the first fresh tile after its place in
    that sequence, where places lie far enough apart for stretches never to share a tile.
    """
    gap = options.ngram - 1
    num_stretches = tf.size(stretch_begins)
    draws = tf.random.stateless_uniform([tf.size(words) + gap * num_stretches + 1], seed)
    lengths = tf.ones_like(draws, tf.int32)
    for threshold in np.cumsum(ngram_probabilities(options))[:-1]:
        lengths += tf.cast(draws >= threshold, tf.int32)
    starts = tf.cumsum(lengths, exclusive=True)

    first_tiles = tf.searchsorted(starts, stretch_begins + gap * tf.range(num_stretches))
    shifts = stretch_begins - tf.gather(starts, first_tiles)
    tiles = tf.ragged.range(first_tiles, tf.searchsorted(starts, stretch_ends - shifts))
    # A running sum gives each tile the shift of its stretch; tf.repeat would be slower.
    changes = shifts - tf.concat([[0], shifts], axis=0)[:-1]
    changes = tf.math.unsorted_segment_sum(changes, tiles.row_splits[:-1], tf.size(tiles.values))
    first_words = tf.gather(starts, tiles.values) + tf.cumsum(changes)

    end_of_batch = row_begins[-1:]
    begins = tf.concat([tf.gather(words, first_words), end_of_batch], axis=0)
    ends = tf.concat([begins[1:], end_of_batch], axis=0)
    stretch_splits = tf.cast(tiles.row_splits, tf.int32)
    last_ends = tf.gather(words, stretch_ends)
    return _Tiles(
        tf.concat([first_words, [tf.size(words)]], axis=0),
        begins,
        tf.tensor_scatter_nd_update(ends, stretch_splits[1:, None] - 1, last_ends),
        tf.gather(stretch_splits, tf.searchsorted(last_ends, row_begins, side="right")),
    )


def _shuffle_tiles(row_splits, seed):
    """Returns each row's tiles in random order, filled up with the empty one, int32 [B, tiles]."""
    num_tiles = row_splits[1:, None] - row_splits[:-1, None]
    columns = tf.range(tf.maximum(tf.reduce_max(num_tiles), 0))  # the batch may be empty
    is_tile = columns < num_tiles
    priorities = tf.where(is_tile, tf.random.stateless_uniform(tf.shape(is_tile), seed), -1)
    order = tf.math.top_k(priorities, tf.size(columns)).indices  # no slower than the best P
    return tf.where(is_tile, order + row_splits[:-1, None], row_splits[-1])


def _take_in_order(sizes, room):
    """Returns which columns of `sizes` [B, N] come before `room` [B, 1] runs out, and the room that they leave."""
    sizes = tf.cast(sizes, tf.float32)
    triangle = tf.linalg.band_part(tf.ones(2 * [tf.shape(sizes)[1]]), 0, -1)
    is_taken = tf.matmul(sizes, triangle) <= room  # for few columns much faster than tf.cumsum
    return is_taken, room - tf.reduce_sum(tf.where(is_taken, sizes, 0), axis=1, keepdims=True)


def _choose_words(words, tiles, rest, room, options):
    """Chooses words of `rest`, int32 [B, _NUM_FILL_TILES], the next tiles, of which the first doesn't fit whole.

    Returns int32 positions where chosen words begin and end: for each row the leading words of the first tile together,
    maybe none; then each word that fits.
    """
    words = tf.pad(words, [[0, options.ngram + 1]], constant_values=tiles.ends[-1])
    borders = tf.gather(words, tf.gather(tiles.first_words, rest)[:, :, None] + tf.range(options.ngram + 1))
    borders = tf.minimum(borders, tf.gather(tiles.ends, rest)[:, :, None])
    begins = tf.reshape(borders[:, :, :-1], [-1, _NUM_FILL_TILES * options.ngram])
    sizes = tf.reshape(borders[:, :, 1:], tf.shape(begins)) - begins  # 0 after the end of the tile

    is_leading, left = _take_in_order(sizes, room)
    leading_ends = begins[:, 0] + tf.cast(room - left, tf.int32)[:, 0]
    too_large = options.max_predictions_per_seq + 1
    candidates = still_free = tf.where(is_leading | tf.equal(sizes, 0), too_large, sizes)
    for _ in range(_NUM_FILL_ROUNDS):
        fits = tf.cast(still_free, tf.float32) <= left
        is_taken, left = _take_in_order(tf.where(fits, still_free, 0), left)
        still_free = tf.where(fits & is_taken, too_large, still_free)
    fillers = _positions_of(tf.not_equal(candidates, still_free))
    filler_begins = tf.gather(tf.reshape(begins, [-1]), fillers)
    filler_ends = filler_begins + tf.gather(tf.reshape(sizes, [-1]), fillers)
    return tf.concat([begins[:, 0], filler_begins], axis=0), tf.concat([leading_ends, filler_ends], axis=0)


def _draw_replacements(ids, tokens, seeds):
    fates = tf.random.stateless_uniform(tf.shape(ids), seeds[0])
    random_index = tf.random.stateless_uniform(tf.shape(ids), seeds[1], 0, len(tokens.real_piece_ids), tf.int32)
    random_ids = tf.gather(tf.constant(tokens.real_piece_ids), random_index)
    replacements = tf.where(fates < MASK_SHARE + KEEP_SHARE, ids, random_ids)
    return tf.where(fates < MASK_SHARE, tokens.mask_id, replacements)


def _shuffle_in_rows(positions, max_seq_length, seed):
    """Returns ascending positions, int32, in random order within each row."""
    rows = tf.cast(positions // max_seq_length, tf.float64)
    return tf.gather(positions, tf.argsort(rows + tf.random.stateless_uniform(tf.shape(rows), seed, dtype=tf.float64)))


def _replace(ids, positions, new_ids):
    # Adding differences is several times as fast as tf.tensor_scatter_nd_update.
    return ids + tf.math.unsorted_segment_sum(new_ids - tf.gather(ids, positions), positions, tf.size(ids))


def _list_predictions(ids, chosen, row_begins, batch_size, options):
    """Returns the features [B, P] of the predictions, from chosen pieces and the ids before masking."""
    positions = _positions_of(chosen)
    positions = tf.RaggedTensor.from_row_splits(positions, tf.searchsorted(positions, row_begins), validate=False)
    positions = positions.to_tensor(-1, shape=[batch_size, options.max_predictions_per_seq])
    is_used = positions >= 0
    return {
        "masked_lm_positions": tf.where(is_used, positions - row_begins[:-1, None], 0),
        "masked_lm_ids": tf.where(is_used, tf.gather(ids, tf.maximum(positions, 0)), 0),
        "masked_lm_weights": tf.cast(is_used, tf.float32),
    }
