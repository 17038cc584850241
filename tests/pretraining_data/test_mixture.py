"""Languages are drawn as often as the formula says, and as a function of seed and step."""

import itertools
import types

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data.input_pipeline import Mixture, train_dataset
from albert_tf.pretraining_data.languages import SourceReader, all_languages, numbers_of_languages, sampling_shares
from albert_tf.pretraining_data.making.builder import build, shard_paths
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.pretraining_data.shards import find_shards
from albert_tf.runs.phases import language_mixture

SEED = tf.constant([1, 2], tf.int64)
CHI_SQUARE = {1: 15.14, 2: 18.42}  # exceeded once in 10,000 times, by degrees of freedom


def blocks_of(mixture, count, batch_size=16):
    return np.concatenate([mixture.draw(SEED, tf.constant(n, tf.int64), batch_size).numpy() for n in range(count)])


def assert_drawn_as_often(drawn, shares):
    expected = np.array(shares) * drawn.size
    found = np.bincount(drawn.ravel(), minlength=len(shares))
    assert ((found - expected) ** 2 / expected).sum() < CHI_SQUARE[len(shares) - 1], (found, expected)


def test_shares_are_those_of_the_formula():
    for exponent in (0.0, 0.3, 0.5, 0.7, 1.0):
        powers = np.array([0.8, 0.15, 0.05]) ** exponent
        assert sampling_shares([800, 150, 50], exponent) == pytest.approx((powers / powers.sum()).tolist())
    with pytest.raises(InputError, match="`language_exponent=-1` must be from 0 \\(all languages alike\\) to 1"):
        sampling_shares([1, 2], -1)
    for exponent in (1.5, 1e9, float("nan")):
        with pytest.raises(InputError, match=r"`language_exponent=.*` must be from 0 .* to 1"):
            sampling_shares([1, 2], exponent)


@pytest.mark.parametrize("is_one_a_batch", [False, True])
def test_sources_are_drawn_as_often_as_the_formula_says(is_one_a_batch):
    shares = tuple(sampling_shares([9000, 900, 100], 0.7))
    mixture = Mixture((0, 1, 2), shares, ((0, 1, 2),), is_one_a_batch)
    drawn = blocks_of(mixture, 40, 10)  # 102,400 examples
    assert drawn.shape == (10240, 10)
    assert_drawn_as_often(drawn[:, 0] if is_one_a_batch else drawn, shares)
    assert (drawn == drawn[:, :1]).all() == is_one_a_batch
    assert not (drawn[:-1, 0] == drawn[1:, 0]).all()


def test_text_and_pairs_take_turns():
    mixture = Mixture((0, 1, 2), (0.7, 0.3, 1.0), ((0, 1), (2,)))
    drawn = blocks_of(mixture, 4)
    assert (drawn[1::2] == 2).all()
    assert_drawn_as_often(drawn[0::2], (0.7, 0.3))
    assert mixture.frequencies == [0.35, 0.15, 0.5]


def test_what_was_read_before_a_step_is_what_was_drawn():
    mixture = Mixture((0, 1), (0.9, 0.1), ((0, 1),))
    drawn = blocks_of(mixture, 3)
    for step, (host, num_hosts) in itertools.product((0, 1, 255, 256, 700), ((0, 1), (1, 2))):
        own = drawn[:, host::num_hosts]
        assert mixture.count(SEED, step, 16, host, num_hosts) == np.bincount(own[:step].ravel(), minlength=2).tolist()
        rest = list(mixture.dataset(SEED, step, 16, host, num_hosts).take(50).as_numpy_iterator())
        assert rest == own[step:].ravel()[:50].tolist()


def test_languages_are_numbered_in_the_order_in_which_they_are_named():
    assert all_languages(["b", "a+b", "c"]) == ("b", "a", "c")
    # By source, and by label: of segments 0 and 1.
    assert numbers_of_languages(["b", "a+b"]).tolist() == [[[0, 0], [0, 0]], [[1, 0], [0, 1]]]


@pytest.fixture(scope="module")
def shards(tmp_path_factory, tiny_tokenizer, write_corpus, random_documents):
    """Shards of a large and a small language."""
    folder = tmp_path_factory.mktemp("languages")
    paths = [
        write_corpus(folder / f"{name}.txt", random_documents(count, seed=count))
        for name, count in (("large", 120), ("small", 30))
    ]
    reader = SourceReader(paths, sources=["large", "small"])
    options = BuilderOptions(
        32, MaskingOptions(5), packing="full_sentences", sources=("large", "small"), held_out_fraction=0.0
    )
    train_paths = shard_paths(str(folder / "data" / "train.tfrecord"), 4)
    build(reader, tiny_tokenizer, options, train_paths, [])
    return types.SimpleNamespace(paths=train_paths)


@pytest.fixture(scope="module")
def found(shards, tiny_tokenizer):
    return find_shards(shards.paths, tiny_config(len(tiny_tokenizer.vocabulary)))


def batches_of(found, count, start_step=0, host_index=0, num_hosts=1, **options):
    """Returns the first ids of each batch, and the languages of its examples."""
    mixture = language_mixture(found, 0.3, **options)
    dataset = train_dataset(
        found.train_paths,
        found.train_options,
        lambda features, seed: {name: features[name] for name in ("input_ids", "languages")},
        8,
        3,
        start_step,
        host_index,
        num_hosts,
        found.examples_per_shard,
        mixture,
    )
    batches = list(dataset.take(count).as_numpy_iterator())
    assert all((batch["languages"][:, :1] == batch["languages"]).all() for batch in batches)
    return np.array([batch["input_ids"] for batch in batches]), np.array(
        [batch["languages"][:, 0] for batch in batches]
    )


def test_resumed_run_draws_the_same_languages_and_examples(found):
    ids, languages = batches_of(found, 40)
    for step in (1, 17):
        again, same = batches_of(found, 40 - step, step)
        np.testing.assert_array_equal(again, ids[step:])
        np.testing.assert_array_equal(same, languages[step:])
    sizes = np.array(found.tokens_of_sources)
    powers = (sizes / sizes.sum()) ** 0.3
    assert_drawn_as_often(languages, powers / powers.sum())
    # The small language comes around more often, and none of its examples much more often than another.
    small = np.unique(ids[languages == 1].reshape(-1, ids.shape[-1]), axis=0, return_counts=True)[1]
    large = np.unique(ids[languages == 0].reshape(-1, ids.shape[-1]), axis=0, return_counts=True)[1]
    assert small.max() > large.max() and len(small) <= sum(
        count for count, source in zip(found.examples_per_shard, found.sources_of_shards) if source
    )


def test_all_hosts_read_one_language_where_a_batch_is_of_one(found):
    hosts = [batches_of(found, 20, 0, host, 2, is_one_a_batch=True)[1] for host in (0, 1)]
    np.testing.assert_array_equal(*hosts)
    assert (hosts[0] == hosts[0][:, :1]).all() and len(np.unique(hosts[0])) == 2
