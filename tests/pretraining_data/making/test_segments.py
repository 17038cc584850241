"""Segments are unbroken text, cut from whole sentences, and lose little of it; see test_labels_from_words_alone too."""

import collections
import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.pretraining_data import PACKINGS
from albert_tf.pretraining_data.packing import Text

sentence_lengths = st.lists(st.integers(1, 12), max_size=12)
limits = st.integers(5, 40)
seeds = st.integers(0, 1000)


@dataclasses.dataclass(frozen=True)
class Pair:
    """An example's segments as ranges of pieces, in the order of the model."""

    first: range
    second: range
    label: int


def borders_of(lengths, begin=0):
    return begin + np.cumsum([0, *lengths])


def segments_of(packing, documents, limit, short_seq_prob=0.0, seed=0):
    return [
        Pair(range(first_begin, first_end), range(second_begin, second_end), label)
        for first_begin, first_end, second_begin, second_end, label in PACKINGS[packing].make_segments(
            Text(documents, np.zeros(0), np.zeros(0)), limit, short_seq_prob, random.Random(seed)
        )
    ]


def pairs_of(lengths, limit, short_seq_prob=0.0, seed=0):
    return segments_of("order", [borders_of(lengths)], limit, short_seq_prob, seed)


def in_text_order(pair):
    segments = [list(pair.first), list(pair.second)]
    return segments[::-1] if pair.label else segments


@given(lengths=sentence_lengths, limit=limits, short_seq_prob=st.sampled_from([0.0, 0.5, 1.0]), seed=seeds)
def test_segments_are_unbroken_text_in_the_order_the_label_says(lengths, limit, short_seq_prob, seed):
    borders = set(borders_of(lengths).tolist())
    for pair in pairs_of(lengths, limit, short_seq_prob, seed):
        earlier, later = in_text_order(pair)
        assert earlier and later
        # Neighbours: a sentence ends between them.
        assert borders & set(range(earlier[-1] + 1, later[0] + 1))
        assert earlier[0] >= 0 and later[-1] < sum(lengths)
        assert len(earlier) + len(later) <= limit


@given(lengths=sentence_lengths, limit=limits, seed=seeds)
def test_both_segments_begin_with_a_sentence_and_lose_their_end(lengths, limit, seed):
    borders = borders_of(lengths).tolist()
    for pair in pairs_of(lengths, limit, seed=seed):
        assert {pair.first.start, pair.second.start} <= set(borders)
        assert (pair.first.stop in borders) == (pair.second.stop in borders)
        earlier, later = in_text_order(pair)
        # Between them lies less than two sentences: the end of the one that was cut, or that and a whole one.
        assert len([border for border in borders if earlier[-1] < border - 1 < later[0] - 1]) <= 1


@given(lengths=st.lists(st.integers(4, 12), min_size=3, max_size=12), limit=limits, seed=seeds)
def test_a_document_is_gone_through_to_its_end(lengths, limit, seed):
    pairs = pairs_of(lengths, limit, seed=seed)
    assert pairs
    # No more is left than a sentence, and what was dropped of another.
    assert sum(lengths) - max(in_text_order(pair)[1][-1] for pair in pairs) <= 2 * 12


def test_little_of_a_long_document_is_lost():
    # What is lost is the end of a sentence between the two segments.
    lengths = np.random.default_rng(0).integers(5, 25, 20_000)
    seen = {piece for pair in pairs_of(lengths, 125) for segment in in_text_order(pair) for piece in segment}
    assert len(seen) > 0.9 * lengths.sum()


def test_parts_of_a_sentence_that_was_too_long_make_pairs_as_sentences_do():
    borders = borders_of([5, 20, 20, 20, 20, 20, 20, 5, 5])
    inside = set(range(25, 125, 20))
    seen = set()
    for seed in range(50):
        text = Text([borders], np.zeros(0), np.zeros(0))
        for first_begin, _, second_begin, _, _ in PACKINGS["order"].make_segments(
            text, 40, 0.0, random.Random(seed), inside
        ):
            assert (first_begin in inside) == (second_begin in inside)
            seen |= {first_begin, second_begin}
    assert seen & inside


def test_document_of_one_sentence_gives_no_pair():
    assert [pairs_of(lengths, 20) for lengths in ([], [4], [400])] == [[]] * 3
    assert segments_of("next", [borders_of([5]), borders_of([5], begin=5)], 20) == []


def test_a_rest_that_makes_no_pair_goes_with_the_sentence_before_it():
    # Ten pieces of twenty are at most a pair's, so that one sentence or two are left over.
    seen = collections.Counter()
    for seed in range(200):
        pairs = pairs_of([10, 10, 10, 10, 10], 20, seed=seed)
        seen.update({piece // 10 for pair in pairs for segment in in_text_order(pair) for piece in segment})
    assert seen[4] == 200


def test_lengths_of_segments_are_spread_and_none_is_tiny():
    sentences = np.random.default_rng(0).integers(3, 20, 40_000)
    pairs = pairs_of(sentences, 40)
    lengths = np.array([len(pair.first) for pair in pairs if len(pair.first) + len(pair.second) == 40])
    assert lengths.min() == 5 and lengths.max() == 35
    shares = np.bincount(lengths, minlength=36)[5:] / len(lengths)
    assert shares.min() > 0.3 / 31


@pytest.mark.parametrize("short_seq_prob", [0.25, 1.0])
def test_short_targets_are_as_frequent_as_asked_and_uniform(short_seq_prob):
    limit = 41
    lengths = np.array([sum(map(len, in_text_order(pair))) for pair in pairs_of([1] * 60_000, limit, short_seq_prob)])
    # A short target is uniform on 2 to the limit, and so equals the limit now and then.
    expected_mean = (1 - short_seq_prob) * limit + short_seq_prob * (2 + limit) / 2
    assert np.mean(lengths) == pytest.approx(expected_mean, rel=0.03)
    assert np.mean(lengths < limit) == pytest.approx(short_seq_prob * 39 / 40, abs=0.03)
    assert lengths.min() == 2


def test_second_segment_comes_from_another_document_half_of_the_time():
    documents = [borders_of([4] * 250, begin=1000 * number) for number in range(50)]
    pairs = segments_of("next", documents, 30)
    labels = np.array([pair.label for pair in pairs])
    # 1.96 standard errors of a fair coin.
    assert abs(labels.mean() - 0.5) < 1.96 * 0.5 / np.sqrt(len(labels))
    for pair in pairs:
        is_same_document = pair.first.start // 1000 == pair.second.start // 1000
        assert is_same_document == (pair.label == 0)
        assert len(pair.first) + len(pair.second) <= 30
        if not pair.label:
            assert any(place % 4 == 0 for place in range(pair.first.stop, pair.second.start + 1))
    others = collections.Counter(pair.second.start // 1000 for pair in pairs if pair.label)
    assert len(others) == 50


def test_random_segments_come_from_documents_as_often_as_they_have_sentences():
    long, short = borders_of([4] * 900), borders_of([4] * 100, begin=10_000)
    first, *rest = (borders_of([4] * 1000, begin=10_000 * number) for number in range(2, 6))
    pairs = [pair for seed in range(20) for pair in segments_of("next", [first, long, short, *rest], 30, seed=seed)]
    counts = collections.Counter(pair.second.start // 10_000 for pair in pairs if pair.label)
    assert 6 < counts[0] / counts[1] < 13


def test_sentences_that_a_random_segment_pushed_out_come_again():
    document, other = borders_of([5] * 200), borders_of([5] * 200, begin=5000)
    pairs = [pair for pair in segments_of("next", [document, other], 20) if pair.first.start < 5000]
    covered = {piece // 5 for pair in pairs for piece in (*pair.first, *pair.second)}
    assert len(covered) > 190


def test_random_segment_of_a_lone_document_comes_from_elsewhere_in_it():
    pairs = segments_of("next", [borders_of([5] * 400)], 20)
    labels = [pair.label for pair in pairs]
    assert abs(np.mean(labels) - 0.5) < 1.5 / np.sqrt(len(labels))
    for pair in pairs:
        distance = pair.second.start - pair.first.stop
        assert (0 <= distance <= 10) == (pair.label == 0)


@pytest.mark.parametrize("packing", ["document_sentences", "full_sentences"])
@given(lengths=sentence_lengths, limit=st.integers(12, 40), seed=seeds)
def test_single_segments_are_whole_sentences_and_lose_nothing(packing, lengths, limit, seed):
    borders = borders_of(lengths)
    segments = segments_of(packing, [borders], limit, 0.2, seed)
    assert [piece for segment in segments for piece in segment.first] == list(range(sum(lengths)))
    for segment in segments:
        assert {segment.first.start, segment.first.stop} <= set(borders.tolist())
        assert 0 < len(segment.first) <= limit
        assert (len(segment.second), segment.label) == (0, 0)
    segments = segments_of(packing, [borders_of([4, 4, 4, 7, 12])], 12)
    assert [len(segment.first) for segment in segments] == [12, 7, 12], "filled as far as sentences go"
