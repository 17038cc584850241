"""Frequencies of masks follow the published formulas, over tens of thousands of chosen pieces each.

A z-score says by how many standard deviations a count misses its expectation. Chance alone brings one of more than 5
about once in two million times.
"""

import collections
import functools
import itertools

import numpy as np
import pytest
from masking_batches import (
    CLS_ID,
    MASK_ID,
    PAD_ID,
    REAL_IDS,
    SEP_ID,
    UNK_ID,
    VOCAB_SIZE,
    chosen_positions,
    make_batch,
    mask,
)

from albert_tf.pretraining_data import masking
from albert_tf.pretraining_data.masking import MaskingOptions

MAX_Z = 5


def z_score(count, trials, probability):
    return (count - trials * probability) / np.sqrt(trials * probability * (1 - probability))


def chi_square_z_score(counts, expected):
    """That of the chi-square statistic, whose mean is the degrees of freedom and whose variance is twice that."""
    degrees = len(counts) - 1
    return (((np.array(counts) - expected) ** 2 / expected).sum() - degrees) / np.sqrt(2 * degrees)


def test_budget_is_spent():
    random = np.random.default_rng(3)
    rows = [np.split(random.choice([1, 2, 3, 4], p=[0.4, 0.3, 0.2, 0.1], size=55), [10, 40]) for _ in range(1000)]
    features = make_batch(rows, 230)
    for probability, limit in ((0.15, 8), (0.3, 80)):
        counts = mask(features, MaskingOptions(limit, probability))["masked_lm_weights"].sum(axis=1)
        budgets = np.minimum(np.round(features["input_mask"].sum(axis=1) * probability), limit)
        assert (counts <= budgets).all()
        assert (counts < budgets).mean() <= 0.001  # where not one of the next dozen n-grams has a word that fits


def tilings(words, probabilities):
    """Every way to cut a stretch into n-grams from its first word on, and how likely it is."""
    if not words:
        return {(): 1.0}
    found = collections.Counter()
    for length, probability in enumerate(probabilities, start=1):
        for rest, rest_probability in tilings(words[length:], probabilities).items():
            found[(words[:length], *rest)] += probability * rest_probability
    return found


@functools.cache
def choices(tiles, room):
    """Every set of words that n-grams taken in random order can give, and how likely it is.

    An n-gram gives the words that fit: all, or the leading ones until one doesn't, and later only fillers.
    """
    if not tiles or not room:
        return {frozenset(): 1.0}
    found = collections.Counter()
    for index, tile in enumerate(tiles):
        left, taken = room, set()
        for word, size in tile:
            if size <= left:
                left -= size
                taken.add(word)
        for others, probability in choices(tiles[:index] + tiles[index + 1 :], left).items():
            found[others | taken] += probability / len(tiles)
    return found


HARMONIC = {2: (2 / 3, 1 / 3), 3: (6 / 11, 3 / 11, 2 / 11), 4: (12 / 25, 6 / 25, 4 / 25, 3 / 25)}
UNIFORM = (1 / 3, 1 / 3, 1 / 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stretches", "budget", "probabilities"),
    [
        ([[1] * 9], 4, HARMONIC[4]),
        ([[1] * 3, [1] * 6], 4, HARMONIC[3]),
        ([[1] * 2, [1], [1] * 4, [1]], 3, UNIFORM),
        ([[2, 1, 3, 1], [1, 2, 4]], 4, HARMONIC[3]),
        ([[3, 2, 1, 1, 2, 3]], 5, HARMONIC[2]),
    ],
)
def test_every_choice_is_as_frequent_as_theory_says(stretches, budget, probabilities):
    numbers = itertools.count()
    words = [tuple((next(numbers), size) for size in sizes) for sizes in stretches]
    expected = collections.Counter()
    for cuts in itertools.product(*(tilings(stretch, probabilities).items() for stretch in words)):
        tiles = tuple(itertools.chain.from_iterable(tiling for tiling, _ in cuts))
        for choice, probability in choices(tiles, budget).items():
            expected[tuple(sorted(choice))] += probability * np.prod([probability for _, probability in cuts])
    assert sum(expected.values()) == pytest.approx(1)

    features = make_batch([stretches], 24, times=60_000 // budget)
    favor_shorter = probabilities is not UNIFORM
    options = MaskingOptions(budget, 0.9, len(probabilities), favor_shorter)
    chosen = chosen_positions(mask(features, options))
    assert chosen.sum() > 50_000
    is_word = (features["token_boundary"][0] == 1) & ~np.isin(features["input_ids"][0], [CLS_ID, SEP_ID])
    rows, numbers_of_rows = np.unique(chosen[:, is_word], axis=0, return_counts=True)
    observed = {tuple(np.flatnonzero(row).tolist()): count for row, count in zip(rows, numbers_of_rows)}

    assert observed.keys() <= expected.keys()
    outcomes = sorted(expected)
    frequencies = np.array([expected[outcome] for outcome in outcomes])
    counts = np.array([observed.get(outcome, 0) for outcome in outcomes])
    common = frequencies * len(chosen) > 10  # rarer ones aren't normally distributed
    assert np.abs(z_score(counts, len(chosen), frequencies)[common]).max() < MAX_Z
    assert abs(chi_square_z_score(counts[common], frequencies[common] * len(chosen))) < MAX_Z


def fates_of_chosen(row, options, times):
    """Fates of chosen pieces, [MASK], [UNK] or another id, if all were [UNK]: int32 [times, P], all of them used."""
    features = make_batch([row], times=times)
    features["input_ids"][~np.isin(features["input_ids"], [PAD_ID, CLS_ID, SEP_ID])] = UNK_ID
    masked = mask(features, options)
    assert masked["masked_lm_weights"].all()
    return np.take_along_axis(masked["input_ids"], masked["masked_lm_positions"], axis=1)


def test_chosen_pieces_become_mask_themselves_or_random_pieces():
    fates = fates_of_chosen(([1] * 20, [2] * 10), MaskingOptions(20, 0.5), times=5500)
    for count, share in (((fates == MASK_ID).sum(), 0.8), ((fates == UNK_ID).sum(), 0.1)):
        assert abs(z_score(count, fates.size, share)) < MAX_Z
    counts = np.bincount(fates[~np.isin(fates, [MASK_ID, UNK_ID])], minlength=VOCAB_SIZE)
    np.testing.assert_array_equal(np.flatnonzero(counts), REAL_IDS)
    assert abs(chi_square_z_score(counts[REAL_IDS], counts.sum() / len(REAL_IDS))) < MAX_Z


def test_pieces_of_a_word_have_fates_of_their_own():
    fates = fates_of_chosen(([2] * 10,), MaskingOptions(2, 0.5, ngram=1), times=20_000)
    kinds = np.select([fates == MASK_ID, fates == UNK_ID], [0, 1], 2)
    alike = kinds[:, 0] == kinds[:, 1]
    assert abs(z_score(alike.sum(), len(alike), 0.8**2 + 0.1**2 + 0.1**2)) < MAX_Z


def permuted_positions(row, options, times, monkeypatch):
    """Positions of permuted pieces, and those that their pieces come from: int [times, P / 2] each."""
    monkeypatch.setattr(masking, "MASK_SHARE", 1.0)  # to tell masked pieces from permuted ones
    features = make_batch([row], times=times)
    is_piece = ~np.isin(features["input_ids"], [PAD_ID, CLS_ID, SEP_ID])
    features["input_ids"][is_piece] = 100 + np.nonzero(is_piece)[1]
    masked = mask(features, options)
    is_permuted = chosen_positions(masked) & (masked["input_ids"] != MASK_ID)
    positions = np.nonzero(is_permuted)[1].reshape(times, -1)
    assert positions.shape[1] == options.max_predictions_per_seq // 2
    return positions, masked["input_ids"][is_permuted].reshape(times, -1) - 100


def test_every_permutation_is_as_likely(monkeypatch):
    options = MaskingOptions(9, 0.5, do_permutation=True)
    positions, sources = permuted_positions(([1] * 10, [1] * 10), options, 26_000, monkeypatch)
    np.testing.assert_array_equal(np.sort(sources, axis=1), positions)
    permutations = collections.Counter(map(tuple, np.argsort(sources, axis=1).tolist()))
    assert len(permutations) == 24
    assert abs(chi_square_z_score(list(permutations.values()), len(positions) / 24)) < MAX_Z


@pytest.mark.slow
def test_permuted_pieces_are_chosen_as_ngrams(monkeypatch):
    shares = []
    for ngram in (1, 2):
        options = MaskingOptions(4, 0.5, ngram, do_permutation=True)
        positions, _ = permuted_positions(([1] * 25,), options, 20_000, monkeypatch)
        shares.append((np.diff(positions) == 1).mean())
    # Two of 25 words are neighbours in 24 of 300 cases; among n-grams of up to two words a third are long.
    assert shares[0] == pytest.approx(24 / 300, abs=0.02)
    assert shares[1] == pytest.approx(1 / 3 + 24 / 300, abs=0.05)
