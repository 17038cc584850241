"""What a model makes of every example, whatever the lengths of the batches, and what evaluations say together."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.training.devices import make_strategy
from albert_tf.training.evaluation import HeldOutHistory, make_output_function


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
    found = HeldOutHistory(rows, "f1", 0, 5)
    assert (found.best_step, found.evaluations_since_best, found.evaluations_since_progress) == (1, 4, 2)
    of_loss = HeldOutHistory(rows, "loss", 0, 5)
    assert of_loss.evaluations_since_best == of_loss.evaluations_since_progress == 2
