"""Several hosts share the shards; each can start at any step."""

import collections

import pytest
import tensorflow as tf
from input_batches import assert_equal, assert_goes_on, originals

from albert_tf.base.errors import InputError
from albert_tf.objectives import language_models
from albert_tf.pretraining_data import input_pipeline
from albert_tf.pretraining_data.input_pipeline import train_dataset


@pytest.fixture(scope="module")
def many_shards(build_shards, random_documents, tmp_path_factory):
    """Thirteen shards of unmasked examples, of unequal numbers."""
    folder = tmp_path_factory.mktemp("many")
    return build_shards(folder, random_documents(90), num_shards=13, held_out_fraction=0.0)


@pytest.fixture
def small_groups(monkeypatch):
    """Groups of three shards, so that an epoch has several."""
    monkeypatch.setattr(input_pipeline, "_SHARDS_PER_GROUP", 3)


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

    monkeypatch.setattr(language_models, "mask_batch", mask_batch)


@pytest.fixture
def host_batches(many_shards, dynamic_options, prepare, small_groups, quick_masks):
    """Makes one host's batches of `many_shards`: host_batches(number of batches, start_step, (host, hosts))."""

    def batches(count, start_step=0, host=(0, 1), batch_size=4, **changes):
        dataset = train_dataset(
            **{
                "paths": many_shards.train_paths,
                "options": dynamic_options,
                "prepare": prepare,
                "global_batch_size": batch_size * host[1],
                "seed": 1,
                "start_step": start_step,
                "examples_per_shard": many_shards.manifest["splits"]["train"]["examples_per_shard"],
                "host_index": host[0],
                "num_hosts": host[1],
                **changes,
            }
        )
        return list(dataset.take(count).as_numpy_iterator())

    batches.num_examples = many_shards.manifest["splits"]["train"]["examples"]
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


@pytest.mark.slow
@pytest.mark.parametrize("host", [(0, 1), (0, 2), (1, 2)])
def test_any_step_can_be_started_at_on_any_host(host_batches, host):
    # A host of two needs two epochs for all examples; whole groups and epochs lie before most of these steps.
    per_turn = host_batches.num_examples // 4
    whole = host_batches(4 * per_turn + 2, host=host)
    for start in (1, per_turn // 2, per_turn + 1, 4 * per_turn):
        assert_goes_on(host_batches(2, start, host), start, whole)


@pytest.mark.slow
@pytest.mark.parametrize("host", [(0, 1), (1, 2)])
def test_start_far_ahead_opens_only_the_shards_of_its_group(host_batches, opened, host):
    start = 10**7
    (first,) = host_batches(1, start, host)
    assert 1 <= len(opened) <= 2 * 3, "the group of the step, and the next one if the batch reaches into it"
    # More than an epoch earlier, and read up to there.
    lead = host_batches.num_examples // 4 + 1
    assert_equal(first, host_batches(lead + 1, start - lead, host)[-1])


@pytest.mark.slow
def test_start_at_zero_needs_no_numbers_of_examples(host_batches, monkeypatch):
    monkeypatch.delattr(input_pipeline, "count_records")
    assert_equal(*host_batches(1), *host_batches(1, examples_per_shard=None))


@pytest.mark.slow
def test_numbers_of_examples_are_counted_where_they_are_not_given(host_batches):
    start = host_batches.num_examples // 4 + 3
    for batch, same in zip(host_batches(2, start, examples_per_shard=None), host_batches(2, start)):
        assert_equal(batch, same)


@pytest.mark.slow
def test_hosts_share_an_epoch_and_take_turns(host_batches, many_shards, read_records):
    every_example = collections.Counter(
        tuple(record.features["input_ids"].tolist()) for record in read_records(many_shards.train_paths)
    )
    count, num_hosts = host_batches.num_examples, 3
    read = [
        [example for example, _ in originals(host_batches(2 * count, host=(host, num_hosts), batch_size=1))]
        for host in range(num_hosts)
    ]
    # As much as any host reads of an epoch: four shards, of the thirteen.
    sizes = sorted(many_shards.manifest["splits"]["train"]["examples_per_shard"])
    together = sum((collections.Counter(examples[: sum(sizes[:4])]) for examples in read), collections.Counter())
    assert together <= every_example, "two hosts read the same shard"
    for examples in read:
        first, second = examples[:count], examples[count:]
        assert collections.Counter(first) == collections.Counter(second) == every_example
        assert first != second


@pytest.mark.slow
def test_masks_differ_between_hosts_and_batches(host_batches):
    masks = [batch["masked_lm_positions"].tobytes() for host in (0, 1) for batch in host_batches(3, host=(host, 2))]
    assert len(set(masks)) == 6


def test_more_hosts_than_shards_are_refused(host_batches):
    with pytest.raises(InputError, match=r"13 shards are too few for 14 hosts, .* --num_shards"):
        host_batches(1, host=(0, 14))


def test_batch_that_hosts_cannot_share_is_refused(host_batches):
    with pytest.raises(InputError, match="`train_batch_size=5` must be a multiple of the number of hosts, 2"):
        host_batches(1, host=(0, 2), global_batch_size=5)
