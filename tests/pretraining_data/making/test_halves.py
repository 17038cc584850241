"""Sentences cut in two: nothing gets lost but what is too short alone, and halves alternate."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.pretraining_data.halves import SHORTEST_CUT_SENTENCE, Halves, max_cut_sentences
from albert_tf.pretraining_data.making.examples import Examples
from albert_tf.pretraining_data.packing import Text

PAD, CLS, SEP = 0, 2, 3
LONGEST = 30  # pieces, with both [SEP]


def cut(lengths_of_documents, word_starts=None, seed=0, longest=LONGEST):
    """Cuts documents of sentences of so many pieces, which are 100, 101, 102, ...; returns the pieces of each half."""
    borders = np.cumsum([0, *(length for lengths in lengths_of_documents for length in lengths)])
    ends = np.cumsum([0, *map(len, lengths_of_documents)])
    documents = [borders[begin : end + 1] for begin, end in itertools.pairwise(ends)]
    ids = np.arange(100, 100 + borders[-1], dtype=np.int32)
    starts = np.ones(len(ids), bool) if word_starts is None else np.resize(np.array(word_starts), len(ids))
    [sentences], pieces, starts, *_ = Halves().arrange(
        Text(documents, ids, starts), CLS, SEP, longest, random.Random(seed)
    )
    halves = [list(half) for half in np.split(pieces, np.flatnonzero(pieces == SEP) + 1)[:-1]]
    assert all(half[-1] == SEP for half in halves) and len(pieces) == sentences[-1]
    assert sentences.tolist() == np.cumsum([0, *(len(a) + len(b) for a, b in zip(halves[0::2], halves[1::2]))]).tolist()
    assert len(starts) == len(pieces)
    return [half[:-1] for half in halves]


lengths = st.lists(st.lists(st.integers(1, LONGEST - 2), min_size=1, max_size=6), min_size=1, max_size=4)


@given(lengths=lengths, word_starts=st.lists(st.booleans(), min_size=1, max_size=9), seed=st.integers(0, 9))
def test_halves_are_the_text_in_its_order_but_for_short_sentences_without_a_long_one(lengths, word_starts, seed):
    halves = cut(lengths, word_starts, seed)
    pieces = [piece for half in halves for piece in half]
    assert pieces == sorted(set(pieces))
    begin, kept = 100, set(pieces)
    for document in lengths:
        for length in document:
            if length >= SHORTEST_CUT_SENTENCE:
                assert kept.issuperset(range(begin, begin + length))
            begin += length
    for first, second in zip(halves[0::2], halves[1::2], strict=True):
        assert min(len(first), len(second)) >= 3 and len(first) + len(second) <= LONGEST - 2
        assert second[0] == first[-1] + 1


def test_a_short_sentence_goes_before_the_next_of_its_document_and_into_its_first_half():
    # 100 to 102 are short, 103 to 112 long, 113 and 114 short; and so on.
    for seed in range(20):
        first, second, third, fourth = cut([[3, 10, 2], [2, 2, 9]], seed=seed)
        assert first[0] == 100 and 103 + 3 <= second[0] <= 113 - 3 and second[-1] == 112
        assert third[0] == 115 and 119 + 3 <= fourth[0] <= 128 - 3


def test_short_sentences_that_do_not_fit_are_left_out():
    first, second = cut([[7, 7, 12]], longest=22)
    assert (first + second)[0] == 107  # one of them fits
    assert cut([[7, 7]]) == []


def test_halves_begin_with_any_word_far_enough_from_both_ends():
    begins = [cut([[12]], [1, 1, 0, 1], seed)[1][0] - 100 for seed in range(300)]
    assert set(begins) == {3, 4, 5, 7, 8, 9}
    assert all(25 <= begins.count(begin) <= 80 for begin in set(begins))


def test_a_single_long_word_is_cut_inside():
    assert {cut([[8]], [1] + 7 * [0], seed)[1][0] - 100 for seed in range(50)} == {3, 4, 5}


@pytest.mark.parametrize("max_seq_length", [16, 64, 128])
def test_segments_alternate_and_there_is_room_for_as_many_as_fit(max_seq_length):
    room = max_cut_sentences(max_seq_length)
    size = SHORTEST_CUT_SENTENCE * room
    documents = [np.arange(0, size + 1, SHORTEST_CUT_SENTENCE)]
    ids, starts = np.arange(100, 100 + size, dtype=np.int32), np.ones(size, bool)
    [borders], pieces, starts, *_ = Halves().arrange(
        Text(documents, ids, starts), CLS, SEP, max_seq_length - 2, random.Random(0)
    )
    segments = np.array([[0, borders[-1] - 1, borders[-1] - 1, borders[-1] - 1]])
    examples = Examples.from_segments(segments, np.zeros(1), np.zeros(1, np.uint64), pieces, starts)
    rows = examples.padded(max_seq_length, PAD, CLS, SEP, segments_alternate=True)
    row, segment_ids = rows["input_ids"][0], rows["segment_ids"][0]
    assert row[0] == CLS and (row == SEP).sum() == 2 * room
    expected, segment = [], 0
    for piece in row[: rows["input_mask"].sum()]:
        expected.append(segment)
        segment ^= piece == SEP
    assert segment_ids.tolist() == expected + [0] * (max_seq_length - len(expected))
