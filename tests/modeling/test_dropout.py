"""Dropout is a function of its seed, and of nothing else."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.modeling import AlbertForPreTraining, AlbertForSequenceClassification, attention, embeddings, heads
from albert_tf.modeling.kernels import attention as attention_kernels
from albert_tf.modeling.kernels.elementwise import dropout, fold_in, random_bits

PROBABILITIES = ["hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"]
NO_DROPOUT = dict.fromkeys(PROBABILITIES, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBABILITIES)
def test_seed_alone_decides_what_is_dropped_and_nothing_is_outside_training(tiny_config, randomized, batch, name):
    def logits_with(probability, training, seed):
        config = tiny_config.replace(**{**NO_DROPOUT, name: probability})
        model = randomized(AlbertForSequenceClassification(config, 3))
        return model(batch, training=training, dropout_seed=tf.constant(seed))["logits"].numpy()

    first, again, other = (logits_with(0.3, True, seed) for seed in ([1, 2], [1, 2], [1, 3]))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3
    expected = logits_with(0.0, True, [1, 2])
    np.testing.assert_array_equal(logits_with(0.3, False, [1, 2]), expected)
    assert np.abs(first - expected).max() > 1e-3


@pytest.mark.slow
def test_training_without_a_seed_draws_one_at_every_call(tiny_config, randomized, batch):
    # So high that the two draws for 3 * 16 elements agree in one run of 10**14.
    model = randomized(AlbertForSequenceClassification(tiny_config.replace(classifier_dropout_prob=0.5), 3))

    @tf.function
    def call():
        return model(batch, training=True)["logits"]

    assert np.abs(call() - call()).max() > 1e-3


@pytest.mark.slow
def test_graph_drops_the_same_as_eager_code(tiny_config, randomized, batch):
    config = tiny_config.replace(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3)
    model = randomized(AlbertForPreTraining(config))

    def call(seed):
        return model(batch, training=True, dropout_seed=seed)

    eager, graph = call(tf.constant([1, 2])), tf.function(call)(tf.constant([1, 2]))
    for name, values in eager.items():
        np.testing.assert_allclose(graph[name], values, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("shape", [[3, 5, 7], [None, None, 7]], ids=["known", "unknown"])
def test_gradient_drops_what_was_dropped(shape):
    @tf.function(input_signature=[tf.TensorSpec(shape)] * 2)
    def gradient_and_outputs(inputs, upstream):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = dropout(inputs, 0.3, tf.constant([1, 2]))
        return tape.gradient(outputs, inputs, upstream), outputs

    inputs, upstream = (tf.random.normal([3, 5, 7], seed=seed) for seed in (1, 2))
    gradient, outputs = gradient_and_outputs(inputs, upstream)
    is_kept = outputs.numpy() != 0
    assert 0 < is_kept.sum() < is_kept.size
    np.testing.assert_array_equal(outputs, dropout(inputs, 0.3, tf.constant([1, 2])))
    np.testing.assert_array_equal(gradient, np.where(is_kept, upstream * np.float32(1 / 0.7), 0))


def test_noise_is_drawn_once_where_nothing_is_fused():
    def graph_of(function, shape):
        return tf.function(function).get_concrete_function(tf.TensorSpec(shape)).graph

    def forward(inputs):
        return dropout(inputs, 0.3, tf.constant([1, 2]))

    def both(inputs):
        return tf.gradients(forward(inputs), inputs)

    noise, *more = (
        [node.op for node in graph_of(function, [None, 7]).as_graph_def().node] for function in (forward, both)
    )
    assert noise.count("RightShift") == more[0].count("RightShift") > 0


def test_pretraining_heads_drop_nothing(tiny_config, randomized, batch):
    model = randomized(AlbertForPreTraining(tiny_config.replace(**{**NO_DROPOUT, "classifier_dropout_prob": 0.5})))
    trained, evaluated = (model(batch, training=training) for training in (True, False))
    for name, values in evaluated.items():
        np.testing.assert_array_equal(trained[name], values, err_msg=name)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_zeroes_its_share_and_scales_the_rest_up(rate):
    size = 10_000
    dropped = dropout(tf.ones([size]), rate, tf.constant([1, 2])).numpy()
    kept = dropped[dropped != 0]
    np.testing.assert_allclose(kept, 1 / (1 - rate), rtol=1e-6)
    five_deviations = 5 * np.sqrt(rate * (1 - rate) / size)
    assert abs((size - kept.size) / size - rate) < five_deviations


def test_factor_is_exact_in_bfloat16():
    dropped = dropout(tf.ones([1000], tf.bfloat16) * 0.9, 0.1, tf.constant([1, 2])).numpy()
    assert set(dropped.astype(np.float32)) == {0.0, 1.0}


def _reference_bits(seed, shape):
    """The hash of `random_bits`, in NumPy, of the elements' numbers in order."""
    first, second = (np.uint32(value % 2**32) for value in seed)
    bits = np.arange(np.prod(shape), dtype=np.uint32) + first
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x7FEB352D)
    bits ^= second
    bits = (bits ^ (bits >> np.uint32(15))) * np.uint32(0x846CA68B)
    return (bits ^ (bits >> np.uint32(16))).reshape(shape)


@pytest.mark.parametrize("shape", [[7], [2, 3], [2, 3, 4, 5]])
@pytest.mark.parametrize("seed", [[0, 0], [-5, 2**31 - 1]])
def test_random_bits_follow_from_the_seed_and_the_number_of_an_element(seed, shape):
    np.testing.assert_array_equal(random_bits(tf.constant(seed), shape), _reference_bits(seed, shape))


def test_no_two_dropouts_of_a_call_share_a_seed(tiny_config, batch, monkeypatch):
    seeds = []

    def recording(inputs, rate, seed):
        seeds.append(tuple(seed.numpy()))
        return inputs

    for module in (attention, embeddings, heads, attention_kernels):
        monkeypatch.setattr(module, "dropout", recording)
    config = tiny_config.replace(**dict.fromkeys(PROBABILITIES, 0.1), num_hidden_layers=3)
    AlbertForSequenceClassification(config, 3)(batch, training=True, dropout_seed=tf.constant([1, 2]))
    # After the embeddings and before the head; on the probabilities and after either sub-layer of each layer.
    assert len(seeds) == len(set(seeds)) == 2 + 3 * 3


@pytest.mark.slow
def test_seeds_that_are_folded_in_differ_and_are_the_same_under_xla():
    seeds = [tf.constant([seed, 0]) for seed in range(12)]
    compiled = tf.function(fold_in, jit_compile=True)
    folded = {
        (seed, number): tuple(fold_in(values, tf.constant(number)).numpy())
        for seed, values in enumerate(seeds)
        for number in range(12)
    }
    assert len(set(folded.values())) == len(folded)
    for seed, number in [(0, 0), (11, 11)]:
        assert tuple(compiled(seeds[seed], tf.constant(number)).numpy()) == folded[seed, number]
