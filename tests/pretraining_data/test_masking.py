"""Masks keep their rules for every input, and their frequencies follow the published formulas."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.pretraining_data.builder import masking_tokens
from albert_tf.pretraining_data.masking import (
    MaskingOptions,
    MaskingTokens,
    default_max_predictions,
    mask_batch,
    ngram_probabilities,
)

PAD_ID, UNK_ID, CLS_ID, SEP_ID, MASK_ID = range(5)
VOCAB_SIZE = 50
REAL_IDS = np.arange(10, VOCAB_SIZE, dtype=np.int32)  # 5 to 9 play the part of [unused] slots
TOKENS = MaskingTokens(MASK_ID, (CLS_ID, SEP_ID), REAL_IDS)
LENGTH = 48


def make_batch(rows, length=LENGTH, seed=0):
    """Features of rows ((sizes of the first segment's words), (sizes of the second's)), with random pieces."""
    random = np.random.default_rng(seed)
    features = {
        name: np.zeros([len(rows), length], np.int32)
        for name in ("input_ids", "input_mask", "segment_ids", "token_boundary")
    }
    for row, (first, second) in enumerate(rows):
        ids, starts = [CLS_ID], [1]
        for words in (first, second):
            ids += [*random.choice([UNK_ID, *REAL_IDS], sum(words)), SEP_ID]
            starts += [*itertools.chain.from_iterable([1] + [0] * (size - 1) for size in words), 1]
        features["input_ids"][row, : len(ids)] = ids
        features["input_mask"][row, : len(ids)] = 1
        features["segment_ids"][row, sum(first) + 2 : len(ids)] = 1
        features["token_boundary"][row, : len(ids)] = starts
    return features


def mask(features, options, seed=(1, 2)):
    features = {name: tf.constant(values) for name, values in features.items()}
    masked = mask_batch(features, options, TOKENS, tf.constant(seed))
    return {name: values.numpy() for name, values in masked.items()}


def chosen_positions(masked):
    """What was chosen as bool [B, S], from the positions that have weight 1."""
    chosen = np.zeros(masked["input_ids"].shape, bool)
    for row, (positions, weights) in enumerate(zip(masked["masked_lm_positions"], masked["masked_lm_weights"])):
        chosen[row, positions[weights == 1]] = True
    return chosen


def runs_of(row):
    """Lengths of the runs of True in a bool vector."""
    return [len(list(run)) for is_chosen, run in itertools.groupby(row) if is_chosen]


words = st.lists(st.integers(1, 5), min_size=1, max_size=7).filter(lambda sizes: sum(sizes) <= 22)
batches = st.lists(st.tuples(words, words), min_size=2, max_size=2)
all_options = st.builds(
    MaskingOptions,
    max_predictions_per_seq=st.integers(1, 12),
    masked_lm_prob=st.sampled_from([0.05, 0.15, 0.5, 0.9]),
    ngram=st.integers(1, 4),
    favor_shorter_ngram=st.booleans(),
    do_whole_word_mask=st.booleans(),
)
mask_seeds = st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))


@settings(max_examples=40)
@given(rows=batches, options=all_options, seed=mask_seeds)
def test_every_mask_keeps_the_rules(rows, options, seed):
    features = make_batch(rows)
    masked = mask(features, options, seed)
    for row, (first, second) in enumerate(rows):
        ids, after = features["input_ids"][row], masked["input_ids"][row]
        positions, labels, weights = (
            masked[name][row] for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
        )
        count = int(weights.sum())
        used = positions[:count]

        assert len(positions) == len(labels) == len(weights) == options.max_predictions_per_seq
        assert weights.tolist() == [1] * count + [0] * (options.max_predictions_per_seq - count)
        assert (np.diff(used) > 0).all()
        assert not positions[count:].any() and not labels[count:].any()

        assert labels[:count].tolist() == ids[used].tolist()
        assert not np.isin(labels[:count], [PAD_ID, CLS_ID, SEP_ID]).any()
        replaced = after[used]
        assert (np.isin(replaced, [MASK_ID, *REAL_IDS]) | (replaced == ids[used])).all()
        np.testing.assert_array_equal(np.delete(after, used), np.delete(ids, used))

        num_tokens = sum(first) + sum(second) + 3
        budget = min(options.max_predictions_per_seq, max(1, round(num_tokens * options.masked_lm_prob)))
        assert count <= budget
        if options.do_whole_word_mask:
            word_of = np.cumsum(features["token_boundary"][row])
            assert set(word_of[used]).isdisjoint(np.delete(word_of, used))
        else:
            assert count == min(budget, num_tokens - 3)
    for name in ("input_mask", "segment_ids", "token_boundary"):
        np.testing.assert_array_equal(masked[name], features[name])


@given(rows=st.lists(st.tuples(st.integers(1, 200), st.integers(1, 200)), min_size=4, max_size=4))
@settings(max_examples=20)
def test_words_of_one_piece_spend_the_whole_budget(rows):
    options = MaskingOptions(max_predictions_per_seq=25)
    masked = mask(make_batch([([1] * first, [1] * second) for first, second in rows], 403), options)
    lengths = [first + second + 3 for first, second in rows]
    # No more than there are words: in a sequence of five, one piece of the two is chosen all the same.
    expected = [min(25, max(1, round(length * 0.15))) for length in lengths]
    assert masked["masked_lm_weights"].sum(axis=1).tolist() == expected


def test_share_masked_is_near_the_probability_and_never_over_the_limit():
    random = np.random.default_rng(3)

    def row():
        sizes = random.choice([1, 2, 3, 4], p=[0.4, 0.3, 0.2, 0.1], size=55).tolist()
        split = random.integers(1, 55)
        return sizes[:split], sizes[split:]

    features = make_batch([row() for _ in range(800)], 230)
    for probability, limit in itertools.product((0.1, 0.15, 0.3), (8, 80)):
        counts = mask(features, MaskingOptions(limit, probability))["masked_lm_weights"].sum(axis=1)
        budgets = np.minimum(np.round(features["input_mask"].sum(axis=1) * probability), limit)
        assert (counts <= budgets).all()
        # Whole words leave a rest that none of them fits into, a fraction of a piece on average.
        assert counts.sum() / budgets.sum() == pytest.approx(1, abs=0.02)


def expected_runs(probabilities, budget):
    """Distribution over multisets of run lengths, if n-grams of drawn lengths are taken until the budget is spent."""
    if budget == 0:
        return {(): 1.0}
    distribution = collections.Counter()
    for length, probability in enumerate(probabilities, start=1):
        taken = min(length, budget)
        for rest, rest_probability in expected_runs(probabilities, budget - taken).items():
            distribution[tuple(sorted((taken, *rest)))] += probability * rest_probability
    return distribution


@pytest.mark.parametrize(
    ("ngram", "favor_shorter", "probabilities"),
    [
        (1, True, [1]),
        (2, True, [2 / 3, 1 / 3]),
        (3, True, [6 / 11, 3 / 11, 2 / 11]),
        (3, False, [1 / 3, 1 / 3, 1 / 3]),
        (4, True, [12 / 25, 6 / 25, 4 / 25, 3 / 25]),
    ],
)
def test_ngram_lengths_follow_their_probabilities(ngram, favor_shorter, probabilities):
    # In long sequences of which little is masked, n-grams rarely touch, so that the runs show their lengths.
    options = MaskingOptions(ngram, ngram=ngram, favor_shorter_ngram=favor_shorter)
    np.testing.assert_allclose(ngram_probabilities(options), probabilities)
    features = make_batch([([1] * 150, [1] * 150)] * 2000, 303)
    chosen = chosen_positions(mask(features, options))
    observed = collections.Counter(tuple(sorted(runs_of(row))) for row in chosen)
    expected = expected_runs(probabilities, ngram)
    assert observed.keys() == expected.keys()
    for runs, probability in expected.items():
        assert observed[runs] / 2000 == pytest.approx(probability, abs=0.04), runs


def test_ngrams_count_words_not_pieces():
    options = MaskingOptions(6, ngram=3)
    chosen = chosen_positions(mask(make_batch([([2] * 60, [2] * 60)] * 500, 243), options))
    lengths = collections.Counter(itertools.chain.from_iterable(runs_of(row) for row in chosen))
    assert set(lengths) == {2, 4, 6}


@pytest.mark.parametrize("first_length", [1, 2, 3])
def test_ngrams_never_cross_separators(first_length):
    # If an n-gram went from the first segment into the second, the words on both sides would be chosen together often.
    options = MaskingOptions(3, masked_lm_prob=0.5, ngram=3, favor_shorter_ngram=False)
    features = make_batch([([1] * first_length, [1] * 40)] * 2000)
    chosen = chosen_positions(mask(features, options))
    before, after = chosen[:, first_length], chosen[:, first_length + 2]
    assert before.sum() > 100
    assert after[before].mean() < 0.15
    # Inside a segment they are.
    neighbours = chosen[:, first_length + 2 : first_length + 4]
    assert neighbours[neighbours[:, 0], 1].mean() > 0.4


def test_every_word_is_as_likely_to_be_chosen():
    features = make_batch([([1] * 20, [1] * 20)] * 8000)
    options = MaskingOptions(7)
    shares = chosen_positions(mask(features, options)).mean(axis=0)
    maskable = np.isin(features["input_ids"][0], [CLS_ID, SEP_ID, PAD_ID], invert=True)
    expected = round(43 * 0.15) / 40
    # The last n-gram of a segment is cut off by its end, hence the tolerance.
    np.testing.assert_allclose(shares[maskable], expected, atol=0.06)
    np.testing.assert_array_equal(shares[~maskable], 0)


def test_chosen_pieces_become_mask_themselves_or_random_pieces():
    features = make_batch([([1] * 20, [2] * 10)] * 4000)
    masked = mask(features, MaskingOptions(7))
    chosen = chosen_positions(masked)
    before, after = features["input_ids"][chosen], masked["input_ids"][chosen]
    count = len(before)
    assert count > 20_000
    assert np.mean(after == MASK_ID) == pytest.approx(0.8, abs=0.01)
    # One in a tenth of the vocabulary's random pieces is the piece itself.
    assert np.mean(after == before) == pytest.approx(0.1 + 0.1 / len(REAL_IDS), abs=0.01)
    random_pieces = after[(after != MASK_ID) & (after != before)]
    shares = np.bincount(random_pieces, minlength=VOCAB_SIZE) / len(random_pieces)
    np.testing.assert_array_equal(np.flatnonzero(shares), REAL_IDS)
    np.testing.assert_allclose(shares[REAL_IDS], 1 / len(REAL_IDS), atol=0.015)


def test_pieces_of_a_word_meet_different_fates():
    masked = mask(make_batch([([2] * 10, [2] * 10)] * 1000), MaskingOptions(6))
    is_mask = masked["input_ids"][chosen_positions(masked)] == MASK_ID
    # 2 * 0.8 * 0.2: one of two is masked and the other is not, as in the original, where SpanBERT masks both.
    assert np.mean(is_mask[::2] != is_mask[1::2]) == pytest.approx(0.32, abs=0.03)


def test_word_longer_than_the_budget_is_left_for_one_that_fits():
    masked = mask(make_batch([([20], [1])] * 20), MaskingOptions(3, 0.15))
    np.testing.assert_array_equal(masked["masked_lm_weights"], [[1, 0, 0]] * 20)
    np.testing.assert_array_equal(masked["masked_lm_positions"][:, 0], 22)


def test_sequence_without_a_word_that_fits_is_left_alone():
    features = make_batch([([9], [9])])
    masked = mask(features, MaskingOptions(3))
    assert not masked["masked_lm_weights"].any()
    np.testing.assert_array_equal(masked["input_ids"], features["input_ids"])


def test_word_that_follows_a_separator_is_one_even_if_the_record_does_not_say_so():
    features = make_batch([([1] * 5, [1] * 5)] * 50)
    features["token_boundary"][:, [1, 7]] = 0
    chosen = chosen_positions(mask(features, MaskingOptions(10, 0.7)))
    assert not (chosen[:, [0, 6, 12]]).any()
    assert chosen[:, 1].any() and chosen[:, 7].any()


def test_masks_follow_from_the_seed():
    features = make_batch([([1] * 20, [1] * 20)] * 8)
    first, again, other = (mask(features, MaskingOptions(7), seed) for seed in ([3, 4], [3, 4], [3, 5]))
    for name, values in first.items():
        np.testing.assert_array_equal(values, again[name])
    assert (first["masked_lm_positions"] != other["masked_lm_positions"]).any(axis=1).all()
    # Equal rows of a batch are masked each in its own way.
    assert len(np.unique(first["masked_lm_positions"], axis=0)) == 8


def test_real_pieces_leave_special_tokens_and_unused_slots_out(tiny_tokenizer):
    tokens = masking_tokens(tiny_tokenizer)
    pieces = np.array(tiny_tokenizer.vocabulary.pieces)
    assert pieces[tokens.mask_id] == "[MASK]"
    assert pieces[list(tokens.unmaskable_ids)].tolist() == ["[CLS]", "[SEP]"]
    assert not [piece for piece in pieces[tokens.real_piece_ids] if piece.startswith("[")]
    assert len(tokens.real_piece_ids) == len(pieces) - 6


@pytest.mark.parametrize(("length", "probability", "expected"), [(512, 0.15, 77), (128, 0.15, 20), (20, 0.15, 3)])
def test_default_limit_never_cuts_masking_short(length, probability, expected):
    assert default_max_predictions(length, probability) == expected
