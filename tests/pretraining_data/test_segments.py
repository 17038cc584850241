"""Pairs of segments teach sentence order and nothing else, and lose no text but what the length limit cuts."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.pretraining_data.segments import Sentence, make_segment_pairs

sentence_lengths = st.lists(st.integers(1, 12), max_size=12)
limits = st.integers(5, 40)
seeds = st.integers(0, 1000)


def make_document(lengths):
    """A document whose ids number its pieces, so that a segment shows where it comes from; words are three pieces."""
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
    return [
        Sentence(np.arange(begin, end, dtype=np.int32), np.arange(end - begin) % 3 == 0)
        for begin, end in itertools.pairwise(bounds)
    ]


def pairs_of(lengths, limit, short_seq_prob=0.0, seed=0):
    return list(make_segment_pairs(make_document(lengths), limit, short_seq_prob, np.random.default_rng(seed)))


def in_text_order(pair):
    segments = [pair.first.ids.tolist(), pair.second.ids.tolist()]
    return segments[::-1] if pair.is_swapped else segments


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
            assert segment == list(range(segment[0], segment[-1] + 1))
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


@given(lengths=sentence_lengths, limit=limits, seed=seeds)
def test_words_keep_their_boundaries_and_each_segment_starts_one(lengths, limit, seed):
    word_starts = np.concatenate([sentence.word_starts for sentence in make_document(lengths)] or [[]])
    for pair in pairs_of(lengths, limit, short_seq_prob=0.3, seed=seed):
        for segment in (pair.first, pair.second):
            assert segment.word_starts[0]
            np.testing.assert_array_equal(segment.word_starts[1:], word_starts[segment.ids[1:]])


@pytest.mark.parametrize("lengths", [[], [4], [400]])
def test_document_of_one_sentence_gives_no_pair(lengths):
    assert pairs_of(lengths, 20) == []


def test_lone_last_sentence_goes_with_the_one_before_it():
    pairs = pairs_of([10, 10, 4], 20)
    assert [list(itertools.chain(*in_text_order(pair))) for pair in pairs] == [list(range(20)), list(range(10, 24))]


def test_half_of_the_pairs_are_swapped():
    labels = [pair.is_swapped for pair in pairs_of([3] * 30_000, 30)]
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
