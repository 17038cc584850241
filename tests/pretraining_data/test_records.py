"""Records are what the original's readers expect: its names, dtypes, shapes and layout."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data import records

MAX_SEQ_LENGTH, MAX_PREDICTIONS = 32, 5  # as the shards' fixtures have them

# As the original's run_pretraining.py reads them.
ORIGINAL_SPEC = {
    "input_ids": tf.io.FixedLenFeature([MAX_SEQ_LENGTH], tf.int64),
    "input_mask": tf.io.FixedLenFeature([MAX_SEQ_LENGTH], tf.int64),
    "segment_ids": tf.io.FixedLenFeature([MAX_SEQ_LENGTH], tf.int64),
    "masked_lm_positions": tf.io.FixedLenFeature([MAX_PREDICTIONS], tf.int64),
    "masked_lm_ids": tf.io.FixedLenFeature([MAX_PREDICTIONS], tf.int64),
    "masked_lm_weights": tf.io.FixedLenFeature([MAX_PREDICTIONS], tf.float32),
    "next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64),
}
MASKED_LM_FEATURES = {"masked_lm_positions", "masked_lm_ids", "masked_lm_weights"}


@pytest.mark.parametrize("masking", ["static", "dynamic"])
def test_original_reader_parses_masked_shards(static_shards, dynamic_shards, masking):
    paths = static_shards.train_paths if masking == "static" else dynamic_shards.held_out_paths
    examples = tf.io.parse_example(list(tf.data.TFRecordDataset(paths)), ORIGINAL_SPEC)
    examples = {name: values.numpy() for name, values in examples.items()}
    is_used = examples["masked_lm_weights"] == 1
    assert is_used.sum() > len(is_used)
    assert (examples["segment_ids"] <= examples["input_mask"]).all()
    assert np.take_along_axis(examples["input_mask"], examples["masked_lm_positions"], axis=1)[is_used].all()
    assert np.isin(examples["next_sentence_labels"], [0, 1]).all()


def test_dynamic_training_records_hold_everything_but_masks(dynamic_shards, read_records):
    for record in read_records(dynamic_shards.train_paths):
        assert record.features.keys() == {*ORIGINAL_SPEC, "token_boundary"} - MASKED_LM_FEATURES


def serialize_one_by_one(features):
    """The bytes that protobuf itself writes."""
    serialized = []
    for row in range(len(next(iter(features.values())))):
        example = tf.train.Example()
        for name, values in features.items():
            feature = example.features.feature[name]
            is_integer = np.issubdtype(values.dtype, np.integer)
            target = feature.int64_list if is_integer else feature.float_list
            target.value.extend(np.ravel(values[row]).tolist())
        serialized.append(example.SerializeToString(deterministic=True))
    return serialized


@settings(max_examples=40)
@given(
    num_examples=st.integers(1, 5),
    length=st.integers(1, 300),
    largest=st.sampled_from([1, 127, 128, 2**14 - 1, 2**14, 2**21, 2**31 - 1, 2**40]),
    dtype=st.sampled_from([np.int8, np.int32, np.int64]),
    seed=st.integers(0, 100),
)
def test_serialize_writes_what_protobuf_writes(num_examples, length, largest, dtype, seed):
    random = np.random.default_rng(seed)
    largest = min(largest, np.iinfo(dtype).max)
    features = {
        "input_ids": random.integers(0, largest, (num_examples, length), endpoint=True).astype(dtype),
        "next_sentence_labels": random.integers(0, 2, num_examples).astype(np.int8),
        "masked_lm_weights": random.random((num_examples, length // 2 + 1)).astype(np.float32),
        "a": np.zeros((num_examples, 1), np.int64),
    }
    assert records.serialize(features) == serialize_one_by_one(features)


def test_is_static_tells_both_kinds_apart(static_shards, dynamic_shards):
    assert all(map(records.is_static, static_shards.train_paths + dynamic_shards.held_out_paths))
    assert not any(map(records.is_static, dynamic_shards.train_paths))


def test_is_static_refuses_other_files(tmp_path):
    path = tmp_path / "file"

    def write_records(*serialized):
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in serialized:
                writer.write(record)

    def refuses(message):
        with pytest.raises(InputError, match=message):
            records.is_static(str(path))

    refuses("is not a TFRecord file")  # it isn't there
    path.write_text("하나\n" * 10, encoding="utf-8")
    refuses("is not a TFRecord file")
    write_records()
    refuses("contains no records")
    write_records(*records.serialize({"input_ids": np.array([1]), "label_ids": np.array([1])}))
    refuses("lack input_mask, next_sentence_labels, segment_ids")
    write_records(b"not an Example")
    refuses("is not pre-training data")
