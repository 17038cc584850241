"""Words are counted as the tokenizer splits them, in bounded memory, from a fair sample of a text that is too long."""

import collections

import numpy as np
import pytest

from albert_tf.tokenization.vocabulary_training import count_words, join_counts, sample_numbers, take_numbers


def test_words_are_counted_as_the_tokenizer_splits_them():
    lines = ["가나 다.", "가나", "\u3000ABC  가나\0 "]
    assert count_words(lines) == {"가나": 3, "다": 1, ".": 1, "abc": 1}
    assert count_words(lines, lower_case=False, split_punctuation=False) == {"가나": 3, "다.": 1, "ABC": 1}
    assert count_words(lines, wordpiece_scheme="end_of_word") == {"가나": 2, "가나_": 1, "다": 1, ".": 1, "abc_": 1}


def test_words_are_counted_over_many_lines():
    assert count_words(str(i % 3) for i in range(20_000)) == {"0": 6667, "1": 6667, "2": 6666}


@pytest.mark.parametrize(("total", "size"), [(0, 5), (4, 5), (5, 5)])
def test_short_text_is_taken_whole(total, size):
    numbers, num_lines = sample_numbers(map(str, range(total)), size)
    assert numbers.tolist() == list(range(total)) and num_lines == total


@pytest.mark.parametrize(("total", "size"), [(6, 5), (20_000, 1), (20_000, 9_000)])
def test_sample_has_its_size_and_no_line_twice(total, size):
    numbers, num_lines = sample_numbers(map(str, range(total)), size)
    assert len(set(numbers.tolist())) == len(numbers) == size and num_lines == total
    assert (np.diff(numbers) > 0).all() and numbers[0] >= 0 and numbers[-1] < total


def test_every_line_is_as_likely():
    """3 of 10 lines, 4,000 times: each is drawn 1,200 times on average, with a standard deviation of 29."""
    drawn = collections.Counter(n for seed in range(4_000) for n in sample_numbers("0123456789", 3, seed)[0].tolist())
    assert all(1_200 - 5 * 29 < drawn[number] < 1_200 + 5 * 29 for number in range(10))


def test_lines_of_the_sample_are_taken():
    assert list(take_numbers(iter("가나다라마"), np.array([0, 2, 3]))) == ["가", "다", "라"]
    assert list(take_numbers("가나", np.array([], int))) == []


def test_rarest_words_are_forgotten_where_there_are_too_many():
    """Batches have 8,192 lines, each with a word of its own: after the second there are 16,384 such words."""
    reports = []
    counts = count_words((f"자주 {i}" for i in range(20_000)), max_different_words=10_000, report=reports.append)
    assert counts == {"자주": 20_000, **{str(i): 1 for i in range(16_384, 20_000)}}
    assert reports == ["forgot 16,384 of 16,385 different words, those seen less than 2 times so far"]


def test_texts_are_joined_as_the_shares_that_they_are_to_be():
    large, small = collections.Counter(a=600, b=300), collections.Counter(b=40, c=60)
    joined = join_counts([large, small], [0.5, 0.5])
    assert joined == {"a": 600, "b": 300 + 360, "c": 540}
    assert join_counts([large, small], [0.9, 0.1]) == large + small
