"""Batches follow from the seed alone, go on where a run stopped, and leave no example out."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf
from input_batches import assert_equal, assert_goes_on, originals

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data import input_pipeline
from albert_tf.pretraining_data.input_pipeline import (
    InputOptions,
    check_readable,
    eval_dataset,
    pad_batch,
    train_dataset,
)

MAX_SEQ_LENGTH, MAX_PREDICTIONS = 32, 5  # as the shards' fixtures have them
STATIC_OPTIONS = InputOptions(MAX_SEQ_LENGTH, MAX_PREDICTIONS, is_static=True)


@pytest.fixture(params=["dynamic", "static"])
def train(request, dynamic_shards, static_shards, dynamic_options, prepare):
    """Makes batches of one kind of shards: train(number of batches, batch size, seed, start_step)."""
    shards, options = {"dynamic": (dynamic_shards, dynamic_options), "static": (static_shards, STATIC_OPTIONS)}[
        request.param
    ]

    def batches(count, batch_size=8, seed=1, start_step=0):
        dataset = train_dataset(shards.train_paths, options, prepare, batch_size, seed, start_step)
        return list(dataset.take(count).as_numpy_iterator())

    batches.num_examples = shards.manifest["splits"]["train"]["examples"]
    return batches


@pytest.mark.slow
def test_batches_follow_from_the_seed(train):
    first, again, other = (train(4, seed=seed) for seed in (1, 1, 2))
    for batch, same, different in zip(first, again, other):
        assert_equal(batch, same)
        assert (batch["input_ids"] != different["input_ids"]).any()


@pytest.mark.slow
@pytest.mark.parametrize("program_seed", [0, 2])
def test_batches_do_not_depend_on_the_seed_of_the_program(train, program_seed):
    tf.random.set_seed(1)
    expected = train(2)
    tf.random.set_seed(program_seed)
    assert_goes_on(train(2), 0, expected)


@pytest.mark.slow
def test_iterating_twice_gives_the_same_batches(dynamic_shards, dynamic_options, prepare):
    dataset = train_dataset(dynamic_shards.train_paths, dynamic_options, prepare, 8, seed=1).take(3)
    for batch, again in zip(dataset.as_numpy_iterator(), dataset.as_numpy_iterator()):
        assert_equal(batch, again)


@pytest.mark.slow
def test_started_later_it_goes_on_with_the_same_batches(train):
    batch_size = 16
    per_epoch = -(-train.num_examples // batch_size)
    whole = train(2 * per_epoch + 2, batch_size)
    # In the first epoch, across its end, and past the next one.
    for start in (1, per_epoch - 1, 2 * per_epoch):
        assert_goes_on(train(2, batch_size, start_step=start), start, whole)


@pytest.mark.slow
def test_every_epoch_holds_every_example_once_in_a_new_order(train):
    count = train.num_examples
    batches = train(2 * count // 7 + 1, batch_size=7)  # a batch size that does not divide an epoch
    examples = [example for example, _ in originals(batches)]
    first, second = examples[:count], examples[count : 2 * count]
    assert collections.Counter(first) == collections.Counter(second)
    assert first != second


@pytest.mark.slow
def test_shards_are_read_in_a_new_order_each_epoch(dynamic_shards, dynamic_options, monkeypatch, prepare):
    # Where a corpus is larger than the shuffle buffer, only the order of its shards brings distant examples together.
    monkeypatch.setattr(input_pipeline, "_SHUFFLE_BUFFER", 1)
    monkeypatch.setattr(input_pipeline, "_SHARDS_PER_GROUP", 1)
    count = dynamic_shards.manifest["splits"]["train"]["examples"]
    dataset = train_dataset(dynamic_shards.train_paths, dynamic_options, prepare, count, seed=1).take(8)
    first_examples = {next(originals([batch]))[0] for batch in dataset.as_numpy_iterator()}
    assert len(first_examples) == len(dynamic_shards.train_paths)


@pytest.mark.slow
def test_dynamic_masks_differ_between_epochs(dynamic_shards, dynamic_options, prepare):
    count = dynamic_shards.manifest["splits"]["train"]["examples"]
    dataset = train_dataset(dynamic_shards.train_paths, dynamic_options, prepare, count, seed=1).take(2)
    first, second = (dict(originals([batch])) for batch in dataset.as_numpy_iterator())
    assert np.mean([positions != second[example] for example, positions in first.items()]) > 0.5


@pytest.mark.slow
def test_every_batch_has_masks_of_its_own(build_shards, dynamic_options, tmp_path, prepare):
    # Words of one piece at the same positions in every example: only the draw can make a difference.
    same_documents = [["가 나 다 라 마 바", "사 아 자 차 카 타"]] * 10
    shards = build_shards(tmp_path, same_documents, held_out_fraction=0.0, short_seq_prob=0.0)
    batches = train_dataset(shards.train_paths, dynamic_options, prepare, 10, seed=1).take(4).as_numpy_iterator()
    assert len({batch["masked_lm_positions"].tobytes() for batch in batches}) == 4


def test_static_masks_stay(static_shards, prepare):
    count = static_shards.manifest["splits"]["train"]["examples"]
    dataset = train_dataset(static_shards.train_paths, STATIC_OPTIONS, prepare, count, seed=1).take(2)
    first, second = (sorted(originals([batch])) for batch in dataset.as_numpy_iterator())
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_batches_have_static_shapes_and_dtypes(kind, dynamic_shards, static_shards, dynamic_options, prepare):
    shards, options = (dynamic_shards, dynamic_options) if kind == "dynamic" else (static_shards, STATIC_OPTIONS)
    sequence, masked = tf.TensorSpec([4, MAX_SEQ_LENGTH], tf.int32), tf.TensorSpec([4, MAX_PREDICTIONS], tf.int32)
    expected = {
        "input_ids": sequence,
        "input_mask": sequence,
        "segment_ids": sequence,
        "masked_lm_positions": masked,
        "masked_lm_ids": masked,
        "masked_lm_weights": tf.TensorSpec([4, MAX_PREDICTIONS], tf.float32),
        "sentence_order_labels": tf.TensorSpec([4], tf.int32),
        "example_weights": tf.TensorSpec([4], tf.float32),
    }
    train = train_dataset(shards.train_paths, options, prepare, 4, seed=1)
    evaluation = eval_dataset(shards.held_out_paths, STATIC_OPTIONS, prepare, 4)
    assert train.element_spec == evaluation.element_spec == expected
    for dataset in (train, evaluation):
        for name, values in next(dataset.as_numpy_iterator()).items():
            assert values.shape == expected[name].shape


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 5, 1000])
def test_evaluation_keeps_every_example_in_order_and_pads_with_weight_zero(
    static_shards, read_records, batch_size, prepare
):
    batches = list(eval_dataset(static_shards.train_paths, STATIC_OPTIONS, prepare, batch_size).as_numpy_iterator())
    rows = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    records = [record.features for record in read_records(static_shards.train_paths)]
    count = len(records)
    assert len(rows["input_ids"]) == -(-count // batch_size) * batch_size
    names = {name: name for name in rows} | {"sentence_order_labels": "next_sentence_labels"}
    del names["example_weights"]
    for ours, theirs in names.items():
        expected = np.array([record[theirs] for record in records]).reshape(rows[ours][:count].shape)
        np.testing.assert_array_equal(rows[ours][:count], expected)
    np.testing.assert_array_equal(rows["example_weights"], np.arange(len(rows["input_ids"])) < count)
    for name in ("masked_lm_weights", "input_mask"):
        assert not rows[name][count:].any()


@pytest.mark.slow
def test_evaluation_masks_dynamic_records_the_same_each_time(dynamic_shards, dynamic_options, prepare):
    first, again = (
        eval_dataset(dynamic_shards.train_paths, dynamic_options, prepare, 16).as_numpy_iterator() for _ in range(2)
    )
    for batch, same in itertools.zip_longest(first, again):
        assert_equal(batch, same)


def test_pad_batch_leaves_a_full_batch_alone():
    features = {"ids": tf.constant([[1, 2], [3, 4]]), "weights": tf.constant([1.0, 1.0])}
    for name, values in pad_batch(features, 2).items():
        np.testing.assert_array_equal(values, features[name])


@pytest.mark.parametrize(("max_seq_length", "max_predictions"), [(16, MAX_PREDICTIONS), (MAX_SEQ_LENGTH, 4)])
def test_wrong_lengths_are_named_before_training(static_shards, max_seq_length, max_predictions):
    message = f"doesn't hold examples of `max_seq_length={max_seq_length}` .*seq={max_predictions}"
    with pytest.raises(InputError, match=message):
        check_readable(static_shards.train_paths, InputOptions(max_seq_length, max_predictions, True))


def test_mixture_of_masked_and_unmasked_shards_is_refused(dynamic_shards, static_shards, dynamic_options):
    dynamic, static = dynamic_shards.train_paths[0], static_shards.train_paths[0]
    with pytest.raises(InputError, match=f"{static} is masked, unlike {dynamic}"):
        check_readable([dynamic, static], dynamic_options)
    with pytest.raises(InputError, match=f"{dynamic} is not masked, unlike {static}"):
        check_readable([static, dynamic], STATIC_OPTIONS)


def test_original_records_without_word_boundaries_are_read(tmp_path, static_shards, prepare):
    path = str(tmp_path / "original.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for serialized in tf.data.TFRecordDataset(static_shards.train_paths).as_numpy_iterator():
            example = tf.train.Example.FromString(serialized)
            del example.features.feature["token_boundary"]
            writer.write(example.SerializeToString())
    theirs, ours = (
        next(eval_dataset(paths, STATIC_OPTIONS, prepare, 8).as_numpy_iterator())
        for paths in ([path], static_shards.train_paths)
    )
    assert_equal(theirs, ours)
