"""Metrics: averages on the device, exact over any number of replicas and batches, and what evaluations say together."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from linear_training import make_linear_examples, start_linear
from tiny_training import TinyRun, make_examples

from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.pretraining_data.input_pipeline import pad_batch
from albert_tf.training.devices import make_strategy
from albert_tf.training.evaluation import Evaluator, HeldOutHistory, make_output_function
from albert_tf.training.train_state import MetricSums


def numpy_loss_and_accuracy(logits, labels, weights):
    """Returns the weighted means of -log softmax and of right answers, in float64."""
    logits = np.asarray(logits, np.float64).reshape(-1, np.shape(logits)[-1])
    labels, weights = np.reshape(labels, -1), np.reshape(weights, -1)
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    losses = -log_probs[np.arange(len(labels)), labels]
    return np.average(losses, weights=weights), np.average(logits.argmax(axis=-1) == labels, weights=weights)


@pytest.mark.parametrize("num_replicas", [1, 2])
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
def test_evaluation_is_the_mean_over_all_examples():
    examples = unevenly_weighted_examples(13)
    run = TinyRun.start(num_replicas=2)
    results = evaluate(run, eval_batches(examples, 6))

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


def squared_error(run, examples):
    """Returns the mean without noise."""
    errors = run.model(examples["inputs"])[..., 0] - examples["targets"]
    return pytest.approx(np.mean(errors.numpy().astype(np.float64) ** 2), rel=1e-5)


def test_evaluation_leaves_noise_out_and_stops_at_max_eval_steps():
    run, examples = start_linear(), make_linear_examples(10)
    batches, first = eval_batches(examples, 2), {name: values[:4] for name, values in examples.items()}
    assert evaluate(run, batches)["squared_error"] == squared_error(run, examples)
    assert evaluate(run, batches, max_eval_steps=2)["squared_error"] == squared_error(run, first)


def test_evaluator_starts_anew_each_time_and_when_given_up():
    run, batches = start_linear(), eval_batches(make_linear_examples(4), 2)
    evaluator = Evaluator(run.strategy, run.state.objective, run.state.models)
    first = evaluator.evaluate(batches)
    answers = iter([False, True])
    assert evaluator.evaluate(batches, lambda: next(answers)) is None
    assert evaluator.evaluate(batches) == first


def batches():
    """Yields two batches of other lengths; the last example only fills up."""
    yield {"values": [[1, 2, 3], [4, 5, 6]], "example_weights": [1.0, 1.0]}
    yield {"values": [[7, 8, 9, 10, 11], [0, 0, 0, 0, 0]], "example_weights": [1.0, 0.0]}


@pytest.mark.parametrize("num_replicas", [1, 2])
def test_shorter_batches_are_filled_up(num_replicas):
    dataset = tf.data.Dataset.from_generator(
        batches,
        output_signature={
            "values": tf.TensorSpec([2, None], tf.int32),
            "example_weights": tf.TensorSpec([2], tf.float32),
        },
    )

    def double_and_add_up(batch):
        return {"double": 2 * batch["values"], "sum": tf.reduce_sum(batch["values"], axis=1)}

    outputs = make_output_function(make_strategy(num_cpu_replicas=num_replicas), double_and_add_up)(dataset)
    expected = [[2, 4, 6, 0, 0], [8, 10, 12, 0, 0], [14, 16, 18, 20, 22]]
    np.testing.assert_array_equal(outputs["double"], expected)
    np.testing.assert_array_equal(outputs["sum"], [6, 15, 45])


def rows_of(held_out, train=()):
    """Returns rows as metrics.jsonl has them; both arguments are values by step."""
    return [
        *({"split": "train", "step": step, "loss": loss} for step, loss in dict(train).items()),
        *(
            {"split": "held_out", "step": step, "loss": loss, "accuracy": -loss, "part_loss": loss}
            for step, loss in held_out.items()
        ),
    ]


def history(held_out, train=(), metric="loss", begin=0, end=1000):
    return HeldOutHistory(rows_of(held_out, train), metric, begin, end)


@given(st.dictionaries(st.integers(1, 1000), st.floats(0, 10), min_size=1))
def test_best_is_the_first_of_the_lowest(held_out):
    best = min(sorted(held_out), key=held_out.get)
    found = history(held_out)
    assert (found.best_step, found.best_value) == (best, held_out[best])
    assert found.evaluations_since_best == sum(step > best for step in held_out)
    found = history(held_out, metric="accuracy")
    assert (found.best_step, found.best_value) == (best, -held_out[best])
    found = history(held_out, metric="part_loss")
    assert (found.best_step, found.best_value) == (best, held_out[best])


@pytest.mark.parametrize(
    ("held_out", "begin", "end", "best", "since"),
    [
        ({}, 0, 1000, None, 0),
        ({10: math.nan}, 0, 1000, None, 0),
        ({10: 2.0, 20: math.inf, 30: 3.0}, 0, 1000, 10, 1),
        ({0: 1.0, 10: 2.0}, 0, 1000, 10, 0),  # what came before training is no result of it
        ({10: 1.0, 20: 3.0, 30: 2.0}, 10, 1000, 30, 0),  # an earlier phase had other data
        ({10: 2.0, 20: 3.0, 30: 1.0}, 0, 20, 10, 1),
    ],
)
def test_only_finite_evaluations_of_the_phase_count(held_out, begin, end, best, since):
    found = history(held_out, begin=begin, end=end)
    assert (found.best_step, found.evaluations_since_best) == (best, since)


FALLING = {5: 3.0, 15: 2.0, 25: 1.0, 35: 0.5}


@pytest.mark.parametrize(
    ("held_out", "train", "expected"),
    [
        ({10: 2.0, 20: 2.1, 30: 2.2}, FALLING, True),
        ({10: 2.0, 20: 2.3, 30: 2.2}, FALLING, True),
        ({10: 2.0, 20: 2.2}, FALLING, False),  # once may be chance
        ({10: 2.0, 20: 2.001, 30: 2.002}, FALLING, False),
        ({10: 2.0, 20: 1.9, 30: 1.8}, FALLING, False),
        ({10: 2.0, 20: 2.1, 30: 2.2}, {5: 2.0, 15: 2.1, 25: 2.2}, False),  # it gets worse, by too high a rate
        ({10: 2.0, 20: 2.1, 30: 2.2}, {}, False),
    ],
)
def test_overfitting_is_a_held_out_loss_that_rises_while_the_training_loss_falls(held_out, train, expected):
    assert (history(held_out, train).overfitting() is not None) == expected
    assert history(held_out, train, metric="accuracy").overfitting() is None


def test_overfitting_tells_both_losses_at_both_steps():
    # The training loss is the average of what was reported between two evaluations.
    found = history({10: 2.0, 20: 2.1, 30: 2.2}, {5: 4.0, 10: 3.0, 15: 2.0, 25: 1.5, 30: 0.5}).overfitting()
    assert found == (
        "the held-out loss rose from 2 at step 10 to 2.2 at step 30 while the training loss fell from 3.5 to 1"
    )


def test_falling_loss_is_progress_where_the_score_stands_still():
    rows = [
        {"step": step, "split": "held_out", "f1": f1, "loss": loss}
        for step, f1, loss in ((1, 0.4, 2.0), (2, 0.3, 1.5), (3, 0.3, 1.2), (4, 0.3, 1.3), (5, 0.2, 1.4))
    ]
    rows.insert(2, {"step": 2, "split": "held_out", "loss": 1.5})  # of an earlier version, without the score
    found = HeldOutHistory(rows, "f1", 0, 5)
    assert (found.best_step, found.evaluations_since_best, found.evaluations_since_progress) == (1, 4, 2)
    of_loss = HeldOutHistory(rows, "loss", 0, 5)
    assert of_loss.evaluations_since_best == of_loss.evaluations_since_progress == 2
