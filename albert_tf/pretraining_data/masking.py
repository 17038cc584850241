"""Masks for the masked language model: n-grams of whole words, drawn with TensorFlow ops for a whole batch at once.

The same function masks static records while they are built and dynamic ones in the input pipeline. Every segment is
tiled with n-grams whose lengths follow p(n) ~ 1/n (paper, section 4.1); tiles are then taken in random order until the
budget is spent. A tile that doesn't fit whole gives its leading words, as the original falls back to shorter n-grams.
"""

import dataclasses

import numpy as np
import tensorflow as tf

MASK_SHARE, KEEP_SHARE = 0.8, 0.1  # of the chosen pieces; the rest becomes a random piece (BERT, section 3.1)


@dataclasses.dataclass(frozen=True)
class MaskingOptions:
    """How to mask.

    Attributes:
        max_predictions_per_seq: Most pieces P chosen in a sequence.
        masked_lm_prob: Share of the pieces, [CLS] and [SEP] counted, that is chosen.
        ngram: Longest n-gram, in words.
        favor_shorter_ngram: p(n) ~ 1/n; otherwise every length is as likely.
        do_whole_word_mask: Choose whole words; otherwise single pieces are the unit.
    """

    max_predictions_per_seq: int
    masked_lm_prob: float = 0.15
    ngram: int = 3
    favor_shorter_ngram: bool = True
    do_whole_word_mask: bool = True


@dataclasses.dataclass(frozen=True)
class MaskingTokens:
    """What masking must know of the vocabulary.

    Attributes:
        mask_id: Id of [MASK].
        unmaskable_ids: Ids that are never chosen: [CLS] and [SEP].
        real_piece_ids: int32 ids that a random replacement is drawn from.
    """

    mask_id: int
    unmaskable_ids: tuple[int, ...]
    real_piece_ids: np.ndarray


def default_max_predictions(max_seq_length: int, masked_lm_prob: float) -> int:
    """Returns the least number of predictions that doesn't cut masking short: ceil(max_seq_length * masked_lm_prob).

    The original's fixed 20 masks 3.9% of a sequence of 512 instead of 15% (google-research/albert#51).
    """
    return int(np.ceil(round(max_seq_length * masked_lm_prob, 6)))


def ngram_probabilities(options: MaskingOptions) -> np.ndarray:
    """Returns float64 [ngram], p(n) for n = 1, 2, ..."""
    lengths = np.arange(1, options.ngram + 1)
    weights = 1.0 / lengths if options.favor_shorter_ngram else np.ones(options.ngram)
    return weights / weights.sum()


def mask_batch(
    features: dict[str, tf.Tensor], options: MaskingOptions, tokens: MaskingTokens, seed: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Chooses and replaces pieces.

    Args:
        features: int32 [B, S] `input_ids`, `input_mask`, `segment_ids` and `token_boundary` (1 where a word starts),
            and whatever else is to be passed on.
        options: How to mask.
        tokens: What masking must know of the vocabulary.
        seed: int32 or int64 [2]; equal seeds give equal masks.

    Returns:
        The features with `input_ids` replaced, and `masked_lm_positions` (ascending, 0 where unused) and
        `masked_lm_ids` int32 [B, P], `masked_lm_weights` float32 [B, P] (1 where used).
    """
    seeds = tf.unstack(tf.random.split(seed, 5))
    input_ids = features["input_ids"]
    maskable = tf.equal(features["input_mask"], 1)
    for token_id in tokens.unmaskable_ids:
        maskable &= tf.not_equal(input_ids, token_id)
    if options.do_whole_word_mask:
        word_starts = _word_starts(features["token_boundary"], maskable)
    else:
        word_starts = tf.ones_like(maskable)

    tiles = _lay_tiles(word_starts & maskable, features["segment_ids"], options, seeds[0])
    chosen = _choose_words(maskable, word_starts, tiles, _budget(features["input_mask"], options), seeds[1])
    positions, weights = _positions(chosen, options.max_predictions_per_seq)
    used = tf.cast(weights, tf.int32)
    return {
        **features,
        "input_ids": tf.where(chosen, _replacements(input_ids, tokens, seeds[2:]), input_ids),
        "masked_lm_positions": positions * used,
        "masked_lm_ids": tf.gather(input_ids, positions, batch_dims=1) * used,
        "masked_lm_weights": weights,
    }


def _word_starts(token_boundary, maskable):
    # A special token, and whatever follows one, starts a word even where the record doesn't say so.
    follows_special = tf.pad(~maskable[:, :-1], [[0, 0], [1, 0]], constant_values=True)
    return tf.equal(token_boundary, 1) | ~maskable | follows_special


def _budget(input_mask, options):
    """Returns int32 [B, 1]: how many pieces to choose."""
    lengths = tf.cast(tf.reduce_sum(input_mask, axis=1, keepdims=True), tf.float32)
    wanted = tf.cast(tf.round(lengths * options.masked_lm_prob), tf.int32)
    return tf.clip_by_value(wanted, 1, options.max_predictions_per_seq)


def _lay_tiles(word_starts, segment_ids, options, seed):
    """Returns int32 [B, S]: the n-gram tile of each piece; both segments are tiled from their first word."""
    batch_size, max_seq_length = tf.unstack(tf.shape(word_starts))
    thresholds = tf.constant(np.cumsum(ngram_probabilities(options))[:-1], tf.float32)
    draws = tf.random.stateless_uniform([2, batch_size, max_seq_length], seed)
    lengths = 1 + tf.searchsorted(thresholds, tf.reshape(draws, [-1]), side="right")
    tile_ends = tf.cumsum(tf.reshape(lengths, tf.shape(draws)), axis=-1)

    tiles = tf.zeros_like(segment_ids)
    for segment in (0, 1):
        is_here = tf.equal(segment_ids, segment)
        words = tf.cumsum(tf.cast(word_starts & is_here, tf.int32), axis=1) - 1
        here = tf.searchsorted(tile_ends[segment], tf.maximum(words, 0), side="right") + segment * max_seq_length
        tiles = tf.where(is_here, here, tiles)
    return tiles


def _choose_words(maskable, word_starts, tiles, budget, seed):
    """Returns bool [B, S]: tiles in random order, cut off at the last word that fits, then words that fill the rest."""
    batch_size, max_seq_length = tf.unstack(tf.shape(maskable))
    priorities = tf.random.stateless_uniform([batch_size, 2 * max_seq_length], seed)
    priorities = tf.where(maskable, tf.gather(priorities, tiles, batch_dims=1), 2.0)
    order = tf.argsort(priorities, stable=True)
    ranks = tf.argsort(order)  # of each piece, among all pieces taken tile by tile

    words = tf.cumsum(tf.cast(word_starts, tf.int32), axis=1) - 1
    flat_words = tf.reshape(words + max_seq_length * tf.range(batch_size)[:, None], [-1])

    def by_word(reduce, values):
        return tf.reshape(reduce(tf.reshape(values, [-1]), flat_words, batch_size * max_seq_length), tf.shape(words))

    sizes = by_word(tf.math.unsorted_segment_sum, tf.cast(maskable, tf.int32))
    last_ranks = by_word(tf.math.unsorted_segment_max, ranks)
    chosen_words = (sizes > 0) & (last_ranks < budget)
    for _ in range(2):
        room = budget - tf.reduce_sum(tf.where(chosen_words, sizes, 0), axis=1, keepdims=True)
        fits = (sizes > 0) & (sizes <= room) & ~chosen_words
        keys = tf.where(fits, last_ranks, max_seq_length)
        chosen_words |= fits & tf.equal(keys, tf.reduce_min(keys, axis=1, keepdims=True))
    return tf.gather(chosen_words, words, batch_dims=1) & maskable


def _positions(chosen, max_predictions_per_seq):
    """Returns the chosen positions, ascending, int32 [B, P], and float32 [B, P], 1 where a position is used."""
    max_seq_length = tf.shape(chosen)[1]
    positions = tf.where(chosen, tf.range(max_seq_length)[None, :], max_seq_length)
    positions = tf.sort(positions, axis=1)[:, :max_predictions_per_seq]
    positions = tf.pad(
        positions, [[0, 0], [0, max_predictions_per_seq - tf.shape(positions)[1]]], constant_values=max_seq_length
    )
    positions = tf.ensure_shape(positions, [None, max_predictions_per_seq])
    is_used = positions < max_seq_length
    return tf.where(is_used, positions, 0), tf.cast(is_used, tf.float32)


def _replacements(input_ids, tokens, seeds):
    """Returns int32 [B, S]: for each piece what it becomes if it is chosen."""
    shape = tf.shape(input_ids)
    random_index = tf.random.stateless_uniform(shape, seeds[0], 0, len(tokens.real_piece_ids), tf.int32)
    random_ids = tf.gather(tf.constant(tokens.real_piece_ids), random_index)
    fate = tf.random.stateless_uniform(shape, seeds[1])
    replaced = tf.where(fate < MASK_SHARE + KEEP_SHARE, input_ids, random_ids)
    return tf.where(fate < MASK_SHARE, tokens.mask_id, replaced)
