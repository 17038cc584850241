"""Mentions of names in batches of pieces, compared with a search written in plain Python."""

import functools

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from albert_tf.knowledge.mentions import build_trie, find_sequences

# Pieces 1 to 4 begin words, 5 to 8 go on with one; 0 pads and 9 is a special token, of which no name has any.
STARTS_WORD = np.array([True] * 5 + [False] * 4 + [True])
NAMES = st.lists(
    st.tuples(st.integers(1, 4), st.lists(st.integers(1, 8), max_size=4)).map(lambda name: (name[0], *name[1])),
    min_size=1,
    max_size=12,
    unique=True,
)


def reference(row, names):
    """Returns the numbers and the lengths of the mentions in a row, from left to right."""
    numbers, lengths = [0] * len(row), [0] * len(row)
    place = 0
    while place < len(row):
        found = [name for name in names if STARTS_WORD[row[place]] and tuple(row[place : place + len(name)]) == name]
        if found:
            longest = max(found, key=len)
            numbers[place], lengths[place] = names.index(longest) + 1, len(longest)
        place += max(lengths[place], 1)
    return numbers, lengths


def finder(names, starts_word=STARTS_WORD):
    return functools.partial(find_sequences, *build_trie(names, starts_word))


def found(names, rows):
    return [values.numpy().tolist() for values in finder(names)(tf.constant(rows, tf.int32))]


@hypothesis.given(NAMES, st.data())
def test_equals_a_search_from_left_to_right(names, data):
    # Text that is put together of names, in part, meets prefixes, overlaps and what follows a name.
    parts = st.one_of(st.sampled_from(names), st.integers(0, 9).map(lambda piece: (piece,)))
    rows = st.lists(parts, max_size=10).map(lambda row: (sum(row, ()) + (0,) * size)[:size])
    size = data.draw(st.integers(1, 24))
    rows = data.draw(st.lists(rows, min_size=1, max_size=3))
    numbers, lengths = found(names, rows)
    for row, *of_row in zip(rows, numbers, lengths):
        assert tuple(of_row) == reference(row, names)


@pytest.mark.parametrize(
    ("names", "row", "numbers", "lengths"),
    [
        pytest.param([(1,), (1, 5)], [9, 1, 5, 6, 9, 0], [0, 2, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0], id="the longest"),
        pytest.param([(1, 5)], [1, 6, 1, 5, 6, 1], [0, 0, 1, 0, 0, 0], [0, 0, 2, 0, 0, 0], id="a josa follows"),
        pytest.param([(5,)], [1, 5, 5, 1, 5, 5], [0] * 6, [0] * 6, id="not within a word"),
        pytest.param([(1, 2), (2, 3), (3, 4)], [1, 2, 3, 4, 0], [1, 0, 3, 0, 0], [2, 0, 2, 0, 0], id="overlaps"),
        pytest.param([(1, 2)], [1, 9, 2, 1, 0, 1], [0] * 6, [0] * 6, id="not across a special token or the end"),
        pytest.param([(1, 2)], [1, 2, 1, 2, 1, 2], [1, 0] * 3, [2, 0] * 3, id="next to each other"),
    ],
)
def test_mention_is(names, row, numbers, lengths):
    assert found(names, [row]) == [[numbers], [lengths]]


def test_many_names_are_told_apart():
    # So many edges have hashes in common; what differs in the last piece alone must not be found.
    generator = np.random.default_rng(0)
    vocab_size, starts_word = 30_000, np.arange(30_000) < 15_000
    drawn = generator.integers(0, [15_000, vocab_size, vocab_size], (20_000, 3))
    names = list({tuple(name) for name in drawn.tolist()})
    rows = np.array(names)
    find = finder(names, starts_word)
    numbers, lengths = (values.numpy() for values in find(tf.constant(rows, tf.int32)))
    np.testing.assert_array_equal(numbers[:, 0], np.arange(len(names)) + 1)
    np.testing.assert_array_equal(lengths[:, 0], 3)
    rows[:, 2] = (rows[:, 2] + 1) % vocab_size
    is_name = np.array([tuple(row) in set(names) for row in rows[:100].tolist()])
    assert not is_name.any()
    assert not find(tf.constant(rows[:100], tf.int32))[0].numpy().any()


def test_shapes_are_static_and_it_compiles():
    plainly = finder([(1, 5), (1, 5, 2), (2, 3)])
    find = tf.function(plainly, jit_compile=True)
    ids = tf.constant([[1, 5, 2, 3, 0], [2, 3, 1, 5, 6]], tf.int32)
    assert all(output.shape == [2, 5] for output in find.get_concrete_function(ids).outputs)
    for compiled, plain in zip(find(ids), plainly(ids)):
        np.testing.assert_array_equal(compiled, plain)
