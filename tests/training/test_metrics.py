"""Metrics: averages on the device, exact over any number of replicas and batches."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_training import CONFIG, TinyRun, make_examples

from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.pretraining_data.input_pipeline import pad_batch
from albert_tf.training.devices import make_strategy
from albert_tf.training.evaluation import Evaluator
from albert_tf.training.train_state import MetricSums


def numpy_loss_and_accuracy(logits, labels, weights):
    """Returns the weighted means of -log softmax and of right answers, in float64."""
    logits = np.asarray(logits, np.float64).reshape(-1, np.shape(logits)[-1])
    labels, weights = np.reshape(labels, -1), np.reshape(weights, -1)
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    losses = -log_probs[np.arange(len(labels)), labels]
    return np.average(losses, weights=weights), np.average(logits.argmax(axis=-1) == labels, weights=weights)


@pytest.mark.parametrize("num_replicas", [1, 2, 4])
def test_sums_add_up_over_replicas_and_calls(num_replicas):
    strategy = make_strategy(num_cpu_replicas=num_replicas)
    with strategy.scope():
        sums = MetricSums(("loss", "accuracy", "never added"))

    @tf.function
    def add(value):
        replica = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
        sums.update({"accuracy": (value, 2.0), "loss": (value * (replica + 1), replica + 1), "never added": (0.0, 0.0)})

    for value in (1.0, 4.0):
        strategy.run(add, args=(tf.constant(value),))
    assert sums.take()[0] == pytest.approx({"loss": 2.5, "accuracy": 1.25}), "what weighs nothing has no average"
    assert not sums.take()[0], "taking starts anew"
    strategy.run(add, args=(tf.constant(6.0),))
    assert sums.take()[0]["loss"] == pytest.approx(6.0)


def test_cross_entropy_is_the_weighted_mean():
    draws = np.random.default_rng(0)
    logits = draws.normal(size=[5, 3, 7]).astype(np.float32) * 4
    labels = draws.integers(0, 7, [5, 3]).astype(np.int32)
    labels[0] = logits[0].argmax(axis=-1)
    weights = draws.integers(0, 2, [5, 3]).astype(np.float32)
    (loss, loss_weight), (right, right_weight) = weighted_cross_entropy(logits, labels, weights)
    assert loss_weight == right_weight == weights.sum()
    expected = numpy_loss_and_accuracy(logits, labels, weights)
    assert (float(loss / loss_weight), float(right / right_weight)) == pytest.approx(expected, rel=1e-6)


def test_cross_entropy_of_what_weighs_nothing_is_zero():
    (loss, weight), (right, _) = weighted_cross_entropy(tf.ones([2, 3]), tf.zeros([2], tf.int32), tf.zeros([2]))
    assert (float(loss), float(weight), float(right)) == (0.0, 0.0, 0.0)


def test_what_is_not_counted_leaves_no_trace():
    strategy = make_strategy(num_cpu_replicas=2)
    with strategy.scope():
        sums = MetricSums(("loss",))

    @tf.function
    def add(value, is_counted):
        sums.update({"loss": (value, 1.0)}, is_counted)

    for value, is_counted in ((1.0, True), (float("nan"), False), (float("inf"), False), (3.0, True)):
        strategy.run(add, args=(tf.constant(value), tf.constant(is_counted)))
    np.testing.assert_array_equal(sums.variable.numpy(), [[8.0], [4.0]])
    for copy in strategy.experimental_local_results(sums.variable):
        np.testing.assert_array_equal(copy.numpy(), [[8.0], [4.0]], "all replicas hold the same sums")


def evaluate(run, dataset, max_eval_steps=None):
    """Returns what a new evaluator finds."""
    return Evaluator(run.strategy, run.state.objective, run.state.models, max_eval_steps).evaluate(dataset)


def eval_batches(examples, batch_size):
    """Returns the examples once, in order, the last batch filled up as the input pipeline does."""
    batches = tf.data.Dataset.from_tensor_slices(examples).batch(batch_size)
    return batches.map(lambda batch: pad_batch(batch, batch_size))


def unevenly_weighted_examples(count):
    examples = make_examples(count)
    examples["masked_lm_weights"][::3, 1:] = 0
    return examples


@pytest.mark.slow
@pytest.mark.parametrize(("num_replicas", "batch_size"), [(1, 3), (2, 6), (4, 16)])
def test_evaluation_is_the_mean_over_all_examples(num_replicas, batch_size):
    examples = unevenly_weighted_examples(13)
    run = TinyRun.start(num_replicas)
    results = evaluate(run, eval_batches(examples, batch_size))

    outputs = run.model(examples)
    masked_lm = numpy_loss_and_accuracy(
        outputs["masked_lm_logits"], examples["masked_lm_ids"], examples["masked_lm_weights"]
    )
    sentence_order = numpy_loss_and_accuracy(
        outputs["sentence_order_logits"], examples["sentence_order_labels"], examples["example_weights"]
    )
    expected = {
        "loss": masked_lm[0] + sentence_order[0],
        "masked_lm_loss": masked_lm[0],
        "masked_lm_accuracy": masked_lm[1],
        "sentence_order_loss": sentence_order[0],
        "sentence_order_accuracy": sentence_order[1],
    }
    assert results == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_evaluation_leaves_dropout_out():
    run = TinyRun.start(config=CONFIG.replace(hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5))
    batches = eval_batches(make_examples(4), 4)
    without = TinyRun.start()
    assert evaluate(run, batches) == evaluate(without, batches)


@pytest.mark.slow
def test_evaluation_stops_at_max_eval_steps():
    run, examples = TinyRun.start(), make_examples(10)
    first_two = {name: values[:4] for name, values in examples.items()}
    limited = evaluate(run, eval_batches(examples, 2), max_eval_steps=2)
    assert limited == evaluate(run, eval_batches(first_two, 2))


@pytest.mark.slow
def test_evaluator_starts_anew_each_time_and_when_given_up():
    run, batches = TinyRun.start(), eval_batches(make_examples(4), 2)
    evaluator = Evaluator(run.strategy, run.state.objective, run.state.models)
    first = evaluator.evaluate(batches)
    answers = iter([False, True])
    assert evaluator.evaluate(batches, lambda: next(answers)) is None
    assert evaluator.evaluate(batches) == first
