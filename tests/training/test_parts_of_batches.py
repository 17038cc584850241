"""The cores of a CPU share a batch, and compute what one core does."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from tiny_training import CONFIG, TinyRun, assert_same_training, make_examples, unevenly_weighted_examples

from albert_tf.modeling.kernels.elementwise import dropout, part_of_batch
from albert_tf.objectives import make_objective
from albert_tf.training import batches, evaluation, train_step
from albert_tf.training.batches import compute_in_parts
from albert_tf.training.devices import make_strategy
from albert_tf.training.evaluation import Evaluator, make_output_function

BATCH_SIZE = 8
WITH_DROPOUT = CONFIG.replace(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
OF_DISTANCES = WITH_DROPOUT.replace(relative_attention="p2c|c2p", position_buckets=4)


@pytest.fixture
def on_cores(monkeypatch):
    """Lets the code believe in a number of cores."""
    return lambda count: monkeypatch.setattr(batches, "num_usable_cores", lambda: count)


@pytest.fixture
def counts(monkeypatch):
    """Returns a list that notes how many parts steps have when they are traced."""
    noted = []

    def note(*arguments):
        results = compute_in_parts(*arguments)
        noted.append(len(results))
        return results

    for module in (train_step, evaluation):
        monkeypatch.setattr(module, "compute_in_parts", note)
    return noted


def sizes_of_parts(batch, strategy=None, **options):
    """Returns how many examples each part has."""

    @tf.function(autograph=False)
    def compute():
        count = functools.partial(compute_in_parts, lambda part: tf.shape(part["values"])[0], **options)
        return (strategy or make_strategy()).run(count, args=({"values": batch},))

    return [int(size) for size in compute()]


@pytest.mark.parametrize(
    ("cores", "examples", "sizes"), [(1, 8, [8]), (2, 8, [4, 4]), (4, 6, [2] * 3), (8, 2, [1] * 2)]
)
def test_each_core_has_an_equal_part(on_cores, cores, examples, sizes):
    on_cores(cores)
    assert sizes_of_parts(tf.zeros([examples, 3])) == sizes


def test_batch_stays_whole_where_cores_can_not_share_it(on_cores):
    on_cores(2)
    assert sizes_of_parts(tf.zeros([7, 3])) == [7]
    assert sizes_of_parts(tf.zeros([8, 3]), compares_examples=True) == [8]
    assert sizes_of_parts(tf.zeros([8, 3]), make_strategy(jit_compile="true")) == [8]


def test_part_drops_what_the_whole_batch_drops_there():
    values, seed = tf.ones([6, 5, 4]), tf.constant([3, -2])
    parts = []
    for index in range(3):
        with part_of_batch(tf.constant(index)):
            parts.append(dropout(values[:2], 0.5, seed))
            whole = dropout(values, 0.5, seed, has_examples=False)
    np.testing.assert_array_equal(tf.concat(parts, axis=0), dropout(values, 0.5, seed))
    np.testing.assert_array_equal(whole, dropout(values, 0.5, seed))


@pytest.mark.slow
@pytest.mark.parametrize("config", [WITH_DROPOUT, OF_DISTANCES])
@pytest.mark.parametrize("gradient_accumulation_steps", [1, 2])
def test_cores_train_as_one_does(on_cores, counts, config, gradient_accumulation_steps):
    runs = []
    for cores in (1, 2, 4):
        on_cores(cores)
        runs.append(TinyRun.start(config=config, objective=make_objective("albert", config)))
        examples = unevenly_weighted_examples(BATCH_SIZE)
        runs[-1].take_steps(examples, BATCH_SIZE, gradient_accumulation_steps, drop_remainder=True)
    assert sorted(set(counts)) == [1, 2, 4]
    assert_same_training(runs[1], runs[0])
    assert_same_training(runs[2], runs[0])


@pytest.mark.slow
def test_cores_end_with_the_same_bits_each_time(on_cores):
    on_cores(4)
    first, again = TinyRun.start(config=WITH_DROPOUT), TinyRun.start(config=WITH_DROPOUT)
    for run in (first, again):
        run.take_steps(make_examples(2 * BATCH_SIZE), BATCH_SIZE, drop_remainder=True)
    for name, values in first.weights().items():
        np.testing.assert_array_equal(values, again.weights()[name], err_msg=name)


@pytest.mark.slow
def test_cores_evaluate_and_predict_as_one_does(on_cores, counts):
    run = TinyRun.start()
    dataset = tf.data.Dataset.from_tensor_slices(unevenly_weighted_examples(BATCH_SIZE)).batch(
        BATCH_SIZE, drop_remainder=True
    )
    results, outputs = [], []
    for cores in (1, 2):
        on_cores(cores)
        results.append(Evaluator(run.strategy, run.state.objective, run.state.models).evaluate(dataset))
        outputs.append(make_output_function(run.strategy, lambda batch: run.model(batch))(dataset))
    assert counts == [1, 1, 2, 2]
    assert results[1] == pytest.approx(results[0], rel=1e-5)
    for name, expected in outputs[0].items():
        np.testing.assert_allclose(outputs[1][name], expected, atol=1e-5, err_msg=name)
