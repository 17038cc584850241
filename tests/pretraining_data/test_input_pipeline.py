"""Batches follow from the seed alone, start at any step on any host, and leave no example out."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.objectives import language_models as masked_lm
from albert_tf.pretraining_data import input_pipeline
from albert_tf.pretraining_data.input_pipeline import InputOptions, check_readable, eval_dataset, train_dataset

MAX_SEQ_LENGTH, MAX_PREDICTIONS = 32, 5  # as the shards' fixtures have them
STATIC_OPTIONS = InputOptions(MAX_SEQ_LENGTH, MAX_PREDICTIONS, is_static=True)


@pytest.fixture(scope="module")
def many_shards(build_shards, random_documents, tmp_path_factory):
    """Thirteen shards of unmasked examples, of unequal numbers."""
    folder = tmp_path_factory.mktemp("many")
    return build_shards(folder, random_documents(90), num_shards=13, held_out_fraction=0.0)


@pytest.fixture
def quick_masks(monkeypatch):
    """Draws masks that follow from the seed alone; the real ones take longer to trace than all the rest."""

    def mask_batch(features, options, seed):
        num_examples, length = tf.unstack(tf.shape(features["input_ids"]))
        shape = [num_examples, options.max_predictions_per_seq]
        positions = tf.random.stateless_uniform(shape, seed, 1, length, tf.int32)
        masked_lm = {
            "masked_lm_positions": positions,
            "masked_lm_ids": tf.gather(features["input_ids"], positions, batch_dims=1),
            "masked_lm_weights": tf.ones(shape),
        }
        return {**features, **masked_lm}

    monkeypatch.setattr(masked_lm, "mask_batch", mask_batch)


@pytest.fixture
def host_dataset(many_shards, dynamic_options, prepare, quick_masks, monkeypatch):
    """Makes a data set of one host's batches of `many_shards`, in groups of three shards: several an epoch."""
    monkeypatch.setattr(input_pipeline, "_SHARDS_PER_GROUP", 3)
    examples_per_shard = many_shards.manifest["splits"]["train"]["examples_per_shard"]

    def dataset(start_step=0, host=(0, 1), batch_size=4, **changes):
        arguments = {
            "paths": many_shards.train_paths,
            "options": dynamic_options,
            "prepare": prepare,
            "global_batch_size": batch_size * host[1],
            "seed": 1,
            "start_step": start_step,
            "examples_per_shard": examples_per_shard,
            "host_index": host[0],
            "num_hosts": host[1],
        }
        return train_dataset(**(arguments | changes))

    dataset.num_examples = sum(examples_per_shard)
    return dataset


@pytest.fixture
def host_batches(host_dataset):
    """Returns the first batches: host_batches(number of batches, start_step, (host, hosts))."""

    def batches(count, *arguments, **changes):
        return list(host_dataset(*arguments, **changes).take(count).as_numpy_iterator())

    batches.num_examples = host_dataset.num_examples
    return batches


@pytest.fixture
def opened(monkeypatch):
    """The paths that training data sets open from now on, in order."""
    paths, original = [], tf.data.TFRecordDataset

    def note(path):
        paths.append(path.numpy().decode())
        return path

    def noting(path):
        noted = tf.data.Dataset.from_tensors(path).map(lambda path: tf.py_function(note, [path], tf.string))
        return noted.flat_map(lambda path: original(tf.ensure_shape(path, [])))

    monkeypatch.setattr(input_pipeline.tf.data, "TFRecordDataset", noting)
    return paths


def assert_equal(batch, other):
    assert batch.keys() == other.keys()
    for name, values in batch.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def originals(batches):
    """The pieces of each example before masking, as tuples, and the positions of its masks."""
    for batch in batches:
        for ids, positions, labels in zip(batch["input_ids"], batch["masked_lm_positions"], batch["masked_lm_ids"]):
            used = positions > 0
            restored = ids.copy()
            restored[positions[used]] = labels[used]
            yield tuple(restored.tolist()), tuple(positions.tolist())


@pytest.mark.slow
def test_batches_follow_from_the_seed_alone(host_dataset):
    tf.random.set_seed(1)
    dataset = host_dataset().take(2)
    first, again = (list(dataset.as_numpy_iterator()) for _ in range(2))
    tf.random.set_seed(0)  # which tf.data takes for no seed at all
    same, other = (list(host_dataset(seed=seed).take(2).as_numpy_iterator()) for seed in (1, 2))
    for step, batch in enumerate(first):
        assert_equal(batch, again[step])
        assert_equal(batch, same[step])
        assert (batch["input_ids"] != other[step]["input_ids"]).any()


@pytest.mark.slow
@pytest.mark.parametrize(("host", "turns"), [((0, 1), [1.1]), ((1, 2), [0.1, 0.5, 1.1, 4])])
def test_any_step_can_be_started_at_on_any_host(host_batches, host, turns):
    # A host of two needs two epochs for all examples; whole groups and epochs lie before most of these steps.
    starts = [int(host_batches.num_examples // 4 * share) for share in turns]
    whole = host_batches(starts[-1] + 2, host=host)
    for start in starts:
        for batch, same in zip(host_batches(2, start, host), whole[start : start + 2], strict=True):
            assert_equal(batch, same)


@pytest.mark.slow
def test_start_far_ahead_opens_only_the_shards_of_its_group(host_batches, opened):
    start, host = 10**7, (1, 2)
    (first,) = host_batches(1, start, host)
    assert 1 <= len(opened) <= 2 * 3, "the group of the step, and the next one if the batch reaches into it"
    # More than an epoch earlier, and read up to there.
    lead = host_batches.num_examples // 4 + 1
    assert_equal(first, host_batches(lead + 1, start - lead, host)[-1])


def test_numbers_of_examples_are_counted_only_where_they_are_needed(host_batches, monkeypatch):
    start = host_batches.num_examples // 4 + 3
    assert_equal(*host_batches(1, start, examples_per_shard=None), *host_batches(1, start))
    monkeypatch.delattr(input_pipeline, "count_records")
    assert host_batches(1, examples_per_shard=None)


@pytest.mark.slow
def test_hosts_share_an_epoch_and_take_turns(host_batches, many_shards, read_records):
    every_example = collections.Counter(
        tuple(record.features["input_ids"].tolist()) for record in read_records(many_shards.train_paths)
    )
    count, num_hosts = host_batches.num_examples, 3
    assert count % 7, "batches lie across the ends of epochs"
    read = [
        [example for example, _ in originals(host_batches(2 * count // 7 + 1, host=(host, num_hosts), batch_size=7))]
        for host in range(num_hosts)
    ]
    # As much as any host reads of an epoch: four shards, of the thirteen.
    sizes = sorted(many_shards.manifest["splits"]["train"]["examples_per_shard"])
    together = sum((collections.Counter(examples[: sum(sizes[:4])]) for examples in read), collections.Counter())
    assert together <= every_example, "two hosts read the same shard"
    for examples in read:
        first, second = examples[:count], examples[count : 2 * count]
        assert collections.Counter(first) == collections.Counter(second) == every_example
        assert first != second


@pytest.mark.slow
def test_masks_differ_between_hosts_and_batches(host_batches):
    masks = [batch["masked_lm_positions"].tobytes() for host in (0, 1) for batch in host_batches(3, host=(host, 2))]
    assert len(set(masks)) == 6


def test_hosts_that_have_too_few_shards_or_cannot_share_a_batch_are_refused(host_dataset):
    with pytest.raises(InputError, match=r"13 shards are too few for 14 hosts, .* --num_shards"):
        host_dataset(host=(0, 14))
    with pytest.raises(InputError, match="`train_batch_size=5` must be a multiple of the number of hosts, 2"):
        host_dataset(host=(0, 2), global_batch_size=5)


@pytest.mark.slow
def test_shards_are_read_in_a_new_order_each_epoch(dynamic_shards, dynamic_options, prepare, quick_masks, monkeypatch):
    # Where a corpus is larger than the shuffle buffer, only the order of its shards brings distant examples together.
    monkeypatch.setattr(input_pipeline, "_SHUFFLE_BUFFER", 1)
    monkeypatch.setattr(input_pipeline, "_SHARDS_PER_GROUP", 1)
    count = dynamic_shards.manifest["splits"]["train"]["examples"]
    dataset = train_dataset(dynamic_shards.train_paths, dynamic_options, prepare, count, seed=1).take(8)
    first_examples = {next(originals([batch]))[0] for batch in dataset.as_numpy_iterator()}
    assert len(first_examples) == len(dynamic_shards.train_paths)


def test_static_masks_stay(static_shards, prepare):
    count = static_shards.manifest["splits"]["train"]["examples"]
    dataset = train_dataset(static_shards.train_paths, STATIC_OPTIONS, prepare, count, seed=1).take(2)
    first, second = (sorted(originals([batch])) for batch in dataset.as_numpy_iterator())
    assert first == second


def test_batches_have_static_shapes_and_dtypes(dynamic_shards, static_shards, dynamic_options, prepare):
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
    for dataset in (
        train_dataset(dynamic_shards.train_paths, dynamic_options, prepare, 4, seed=1),
        train_dataset(static_shards.train_paths, STATIC_OPTIONS, prepare, 4, seed=1),
        eval_dataset(static_shards.held_out_paths, STATIC_OPTIONS, prepare, 4),
    ):
        assert dataset.element_spec == expected


def test_evaluation_keeps_every_example_in_order_and_pads_with_weight_zero(static_shards, read_records, prepare):
    batches = list(eval_dataset(static_shards.train_paths, STATIC_OPTIONS, prepare, 7).as_numpy_iterator())
    rows = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    records = [record.features for record in read_records(static_shards.train_paths)]
    count = len(records)
    assert len(rows["input_ids"]) == -(-count // 7) * 7 > count > 7
    names = {name: name for name in rows} | {"sentence_order_labels": "next_sentence_labels"}
    del names["example_weights"]
    for ours, theirs in names.items():
        expected = np.array([record[theirs] for record in records]).reshape(rows[ours][:count].shape)
        np.testing.assert_array_equal(rows[ours][:count], expected)
    np.testing.assert_array_equal(rows["example_weights"], np.arange(len(rows["input_ids"])) < count)
    for name in ("masked_lm_weights", "input_mask"):
        assert not rows[name][count:].any()


def test_evaluation_masks_dynamic_records_the_same_each_time(dynamic_shards, dynamic_options, prepare, quick_masks):
    dataset = eval_dataset(dynamic_shards.train_paths, dynamic_options, prepare, 16)
    for batch, same in zip(dataset.as_numpy_iterator(), dataset.as_numpy_iterator(), strict=True):
        assert_equal(batch, same)


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
