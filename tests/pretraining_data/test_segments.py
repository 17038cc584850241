"""Segments teach sentence order and nothing else, and lose no text but what the length limit cuts."""

import collections
import dataclasses
import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.pretraining_data.segments import make_segments

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
    return [begin, *(begin + np.cumsum(lengths, dtype=int)).tolist()]


def segments_of(sentence_pair, documents, limit, short_seq_prob=0.0, seed=0):
    return [
        Pair(range(first_begin, first_end), range(second_begin, second_end), label)
        for first_begin, first_end, second_begin, second_end, label in make_segments(
            sentence_pair, documents, limit, short_seq_prob, random.Random(seed)
        )
    ]


def pairs_of(lengths, limit, short_seq_prob=0.0, seed=0):
    return segments_of("order", [borders_of(lengths)], limit, short_seq_prob, seed)


def in_text_order(pair):
    segments = [list(pair.first), list(pair.second)]
    return segments[::-1] if pair.label else segments


def chunks_without_short_targets(lengths, limit):
    """The sentences of each pair before it is cut: as many as reach the limit, at least two; a lone last one goes
    with the one before it."""
    chunks, begin = [], 0
    while begin < len(lengths):
        end = begin + 1
        while end < len(lengths) and (end - begin < 2 or sum(lengths[begin:end]) < limit):
            end += 1
        chunks.append((begin if end - begin > 1 else begin - 1, end))
        begin = end
    return chunks


@given(lengths=sentence_lengths, limit=limits, short_seq_prob=st.sampled_from([0.0, 0.5, 1.0]), seed=seeds)
def test_segments_are_unbroken_text_in_the_order_the_label_says(lengths, limit, short_seq_prob, seed):
    boundaries = set(np.cumsum(lengths).tolist())
    for pair in pairs_of(lengths, limit, short_seq_prob, seed):
        earlier, later = in_text_order(pair)
        for segment in (earlier, later):
            assert segment
        # Neighbours: what lies between them was cut off around the one sentence boundary they were split at.
        assert boundaries & set(range(earlier[-1] + 1, later[0] + 1))
        assert len(earlier) + len(later) <= limit


@given(lengths=sentence_lengths.filter(lambda lengths: len(lengths) != 1), limit=limits, seed=seeds)
def test_text_is_kept_but_for_what_exceeds_the_limit(lengths, limit, seed):
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
    chunks = chunks_without_short_targets(lengths, limit)
    pairs = pairs_of(lengths, limit, seed=seed)
    assert len(pairs) == len(chunks)
    for pair, (begin, end) in zip(pairs, chunks):
        text = list(range(bounds[begin], bounds[end]))
        kept = list(itertools.chain(*in_text_order(pair)))
        if len(text) <= limit:
            assert kept == text
        else:
            assert set(kept) < set(text)
            assert len(kept) == limit


@given(lengths=st.lists(st.integers(1, 30), min_size=2, max_size=2), limit=limits, seed=seeds)
def test_the_longer_segment_is_cut(lengths, limit, seed):
    [pair] = pairs_of(lengths, limit, seed=seed)
    shorter, longer = sorted(lengths)
    excess = max(0, shorter + longer - limit)
    # Once both are equally long they are cut in turns.
    expected = [shorter, longer - excess] if longer - excess >= shorter else [limit // 2, limit - limit // 2]
    assert sorted(map(len, in_text_order(pair))) == expected


@pytest.mark.parametrize("lengths", [[], [4], [400]])
def test_document_of_one_sentence_gives_no_pair(lengths):
    assert pairs_of(lengths, 20) == []


def test_lone_last_sentence_goes_with_the_one_before_it():
    pairs = pairs_of([10, 10, 4], 20)
    assert [list(itertools.chain(*in_text_order(pair))) for pair in pairs] == [list(range(20)), list(range(10, 24))]


def test_half_of_the_pairs_are_swapped():
    labels = [pair.label for pair in pairs_of([3] * 30_000, 30)]
    assert len(labels) == 3_000
    assert np.mean(labels) == pytest.approx(0.5, abs=0.03)
    # A label can't be told from the one before it.
    assert np.mean(np.equal(labels[1:], labels[:-1])) == pytest.approx(0.5, abs=0.03)


def test_every_sentence_boundary_may_split_a_chunk():
    splits = [len(in_text_order(pair)[0]) for pair in pairs_of([1] * 20_000, 5)]
    shares = np.bincount(splits, minlength=5)[1:] / len(splits)
    np.testing.assert_allclose(shares, [0.25] * 4, atol=0.03)


def test_pieces_are_cut_off_both_ends():
    cut_at_front = [in_text_order(pairs_of([200, 200], 200, seed=seed)[0])[0][0] for seed in range(50)]
    assert np.mean(cut_at_front) == pytest.approx(50, abs=3)


@pytest.mark.parametrize("short_seq_prob", [0.0, 0.25, 1.0])
def test_short_targets_are_as_frequent_as_asked_and_uniform(short_seq_prob):
    limit = 41
    lengths = np.array([sum(map(len, in_text_order(pair))) for pair in pairs_of([1] * 60_000, limit, short_seq_prob)])
    # A short target is uniform on 2 to the limit, and so equals the limit now and then.
    expected_mean = (1 - short_seq_prob) * limit + short_seq_prob * (2 + limit) / 2
    assert np.mean(lengths) == pytest.approx(expected_mean, rel=0.03)
    assert np.mean(lengths < limit) == pytest.approx(short_seq_prob * 39 / 40, abs=0.03)
    if short_seq_prob:
        assert lengths.min() == 2


def test_same_random_state_gives_same_pairs():
    def flat(seed):
        return [in_text_order(pair) for pair in pairs_of([5] * 100, 30, 0.3, seed)]

    assert flat(1) == flat(1) != flat(2)


def test_second_segment_comes_from_another_document_half_of_the_time():
    documents = [borders_of([3] * 300, begin=1000 * number) for number in range(50)]
    pairs = segments_of("next", documents, 30)
    labels = np.array([pair.label for pair in pairs])
    # 1.96 standard errors of a fair coin.
    assert abs(labels.mean() - 0.5) < 1.96 * 0.5 / np.sqrt(len(labels))
    for pair in pairs:
        is_same_document = pair.first[0] // 1000 == pair.second[0] // 1000
        assert is_same_document == (pair.label == 0)
        assert len(pair.first) + len(pair.second) <= 30
        if not pair.label:
            assert pair.second[0] == pair.first[-1] + 1
    others = collections.Counter(pair.second[0] // 1000 for pair in pairs if pair.label)
    assert len(others) == 50


def test_sentences_that_a_random_segment_pushed_out_come_again():
    document, other = borders_of([5] * 200), borders_of([5] * 200, begin=5000)
    pairs = [pair for pair in segments_of("next", [document, other], 20) if pair.first[0] < 5000]
    covered = {piece for pair in pairs for piece in (*pair.first, *pair.second)}
    # But for the last sentence, which may have been left alone.
    assert covered >= set(range(995))


def test_next_needs_two_sentences_of_a_document_and_another_document():
    alone = segments_of("next", [borders_of([5] * 50)], 20)
    assert alone and not any(pair.label for pair in alone)
    assert segments_of("next", [borders_of([5]), borders_of([5], begin=5)], 20) == []


@pytest.mark.parametrize("sentence_pair", ["none", "full_sentences"])
@given(lengths=sentence_lengths, limit=st.integers(12, 40), seed=seeds)
def test_single_segments_are_whole_sentences_and_lose_nothing(sentence_pair, lengths, limit, seed):
    borders = borders_of(lengths)
    segments = segments_of(sentence_pair, [borders], limit, 0.2, seed)
    assert [piece for segment in segments for piece in segment.first] == list(range(sum(lengths)))
    for segment in segments:
        assert {segment.first[0], segment.first[-1] + 1} <= set(borders)
        assert 0 < len(segment.first) <= limit
        assert (len(segment.second), segment.label) == (0, 0)


def test_single_segments_are_filled_as_far_as_sentences_go():
    segments = segments_of("none", [borders_of([4, 4, 4, 7, 12])], 12)
    assert [len(segment.first) for segment in segments] == [12, 7, 12]
