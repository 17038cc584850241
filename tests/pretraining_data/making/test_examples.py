"""Examples kept column by column are the same examples: collected, sorted, sliced, spilled and padded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.pretraining_data.making import builder
from albert_tf.pretraining_data.making.examples import Examples

PAD, CLS, SEP = 0, 2, 3


def random_examples(num_examples, seed=0, longest=9, has_second=True):
    """Examples, and the same as a list of (key, first, second, label, word starts of both)."""
    random = np.random.default_rng(seed)
    ids = random.integers(5, 100, 200).astype(np.int32)
    word_starts = random.random(200) < 0.5
    begins = random.integers(0, 190, (num_examples, 2))
    lengths = random.integers(1, longest, (num_examples, 2)) * [1, has_second]
    segments = np.stack([begins, begins + lengths], axis=2).reshape(-1, 4)
    labels = random.integers(0, 2, num_examples)
    keys = random.integers(0, 2**64, num_examples, dtype=np.uint64)
    expected = []
    for (a, b, c, d), label, key in zip(segments, labels, keys):
        starts = [list(word_starts[a:b]), list(word_starts[c:d])]
        for segment in starts:
            segment[:1] = [True] * len(segment[:1])
        expected.append((int(key), ids[a:b].tolist(), ids[c:d].tolist(), int(label), starts[0] + starts[1]))
    return Examples.from_segments(segments, labels, keys, ids, word_starts), expected


def as_list(examples):
    """Examples one by one, read off the columns with a loop."""
    rows, place = [], 0
    for key, first, second, label in zip(
        examples.keys.tolist(), examples.first_lengths.tolist(), examples.second_lengths.tolist(), examples.labels
    ):
        middle, end = place + first, place + first + second
        starts = (examples.pieces[place:end] >> 31).astype(bool).tolist()
        rows.append((key, examples.ids[place:middle].tolist(), examples.ids[middle:end].tolist(), int(label), starts))
        place = end
    assert place == len(examples.pieces)
    return rows


sizes = st.integers(0, 12)
seeds = st.integers(0, 1000)


@given(size=sizes, seed=seeds, has_second=st.booleans())
def test_segments_are_collected(size, seed, has_second):
    examples, expected = random_examples(size, seed, has_second=has_second)
    assert len(examples) == size
    assert as_list(examples) == expected


@given(first=sizes, second=sizes, seed=seeds)
def test_parts_are_concatenated_and_sorted(first, second, seed):
    parts = [random_examples(first, seed), random_examples(second, seed + 1)]
    examples = Examples.concatenate([part for part, _ in parts])
    expected = parts[0][1] + parts[1][1]
    assert as_list(examples) == expected
    assert as_list(examples.sorted_by_key()) == sorted(expected, key=lambda row: row[0])


@given(size=sizes, part_size=st.integers(1, 15), seed=seeds)
def test_parts_are_those_of_a_list(size, part_size, seed):
    examples, expected = random_examples(size, seed)
    parts = [as_list(part) for part in examples.split(part_size)]
    assert parts == [expected[begin : begin + part_size] for begin in range(0, size, part_size)]


@given(size=sizes, seed=seeds, has_second=st.booleans())
def test_padded_examples_are_laid_out_as_bert_has_them(size, seed, has_second):
    examples, expected = random_examples(size, seed, has_second=has_second)
    padded = examples.padded(20, PAD, CLS, SEP)
    for row, (_, first, second, _, starts) in enumerate(expected):
        ids = [CLS, *first, SEP, *second, *([SEP] if second else [])]
        segments = [0] * (len(first) + 2) + [1] * (len(ids) - len(first) - 2)
        boundary = [1, *starts[: len(first)], 1, *starts[len(first) :], *([1] if second else [])]
        rest = 20 - len(ids)
        assert padded["input_ids"][row].tolist() == ids + [PAD] * rest
        assert padded["input_mask"][row].tolist() == [1] * len(ids) + [0] * rest
        assert padded["segment_ids"][row].tolist() == segments + [0] * rest
        assert padded["token_boundary"][row].tolist() == [*map(int, boundary)] + [0] * rest
    assert {values.dtype for values in padded.values()} == {np.dtype(np.int32)}


@pytest.mark.parametrize("num_shards", [1, 7, 5000])
def test_every_bucket_of_a_spill_file_is_a_range_of_keys(tmp_path, num_shards):
    examples, expected = random_examples(500, longest=5)
    expected.sort(key=lambda row: row[0])
    num_buckets = builder.num_buckets(num_shards)
    assert num_buckets % num_shards == 0
    path = str(tmp_path / "spill")
    builder.write_spill(path, examples, num_buckets)
    with builder.SpillReader(path, num_buckets) as reader:
        assert as_list(reader.read(0, num_buckets)) == expected
        width = num_buckets // num_shards
        for shard in range(0, num_shards, max(1, num_shards // 7)):
            part = as_list(reader.read(shard * width, (shard + 1) * width))
            assert part == [row for row in expected if row[0] * num_shards >> 64 == shard]
    for bucket in range(0, num_buckets, max(1, num_buckets // 50)):
        before = [row for row in expected if row[0] * num_buckets >> 64 < bucket]
        assert reader.borders[bucket] == len(before)
        assert reader.piece_borders[bucket] == sum(len(row[1]) + len(row[2]) for row in before)
    assert (reader.borders[-1], reader.piece_borders[-1]) == (500, len(examples.pieces))
