"""Damage to TFRecord files: found wherever it is, and named."""

import itertools
import pathlib

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data.records import count_records, find_damage, naming_damaged_shards, read_through

RECORDS = [b"", b"\0" * 3, "가나다".encode(), b"x" * 100, b"abc", b"d"]
# Eight bytes of length and four of its checksum, the record, and four bytes of its checksum.
ENDS = list(itertools.accumulate(12 + len(record) + 4 for record in RECORDS))


def write(path, records=RECORDS):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return str(path)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The bytes of a whole file."""
    return pathlib.Path(write(tmp_path_factory.mktemp("whole") / "whole")).read_bytes()


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """A file to overwrite."""
    return tmp_path_factory.mktemp("damaged") / "damaged"


def records_before(position):
    return sum(end <= position for end in ENDS)


@settings(max_examples=20)
@given(position=st.integers(0, ENDS[-1] - 1), change=st.integers(1, 255))
def test_any_changed_byte_is_found(content, target, position, change):
    target.write_bytes(content[:position] + bytes([content[position] ^ change]) + content[position + 1 :])
    assert read_through(str(target)) == (records_before(position), False)


@settings(max_examples=20)
@given(size=st.integers(0, ENDS[-1]))
def test_any_cut_within_a_record_is_found(content, target, size):
    target.write_bytes(content[:size])
    assert read_through(str(target)) == (records_before(size), size in (0, *ENDS))


def test_records_are_counted(tmp_path):
    paths = [write(tmp_path / str(count), [b"record"] * count) for count in (0, 1, 1024, 2050)]
    assert count_records(paths) == [0, 1, 1024, 2050]


@pytest.fixture
def paths(tmp_path, content):
    """Four files; the second is cut short, and the third has a changed byte in its last record."""
    paths = [write(tmp_path / name) for name in "abcd"]
    (tmp_path / "b").write_bytes(content[: ENDS[1] + 5])
    (tmp_path / "c").write_bytes(content[:-5] + b"?" + content[-4:])
    return paths


def test_damaged_files_are_named_with_the_first_bad_record(paths):
    assert find_damage(paths) == {paths[1]: "record 3 can't be read", paths[2]: "record 6 can't be read"}
    with pytest.raises(InputError, match=r"^damaged: .*/b \(record 3 can't be read\), .*/c \(record 6 .* again"):
        count_records(paths)


def test_failure_while_reading_names_the_file(paths):
    with pytest.raises(InputError, match=r"^damaged: .*/b \(record 3") as failure, naming_damaged_shards(paths):
        list(tf.data.Dataset.from_tensor_slices(paths).interleave(tf.data.TFRecordDataset).batch(100))
    assert isinstance(failure.value.__context__, tf.errors.DataLossError)


def test_failure_of_something_else_is_left_alone(paths):
    with pytest.raises(tf.errors.DataLossError, match="a checkpoint"), naming_damaged_shards(paths[:1]):
        raise tf.errors.DataLossError(None, None, "a checkpoint is damaged")
    with pytest.raises(KeyError), naming_damaged_shards(paths):
        raise KeyError
