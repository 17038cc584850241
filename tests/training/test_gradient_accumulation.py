"""Gradient accumulation: a batch in parts gives the update of the whole batch."""

import functools

import numpy as np
import pytest
from linear_training import start_linear, unevenly_weighted_points
from tiny_training import CONFIG, TinyRun, assert_same_training, make_examples, unevenly_weighted_examples

from albert_tf.base.errors import InputError
from albert_tf.objectives import make_objective
from albert_tf.training.batches import per_replica_batch_size
from albert_tf.training.devices import make_strategy

BATCH_SIZE = 8
WITH_DROPOUT = CONFIG.replace(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)


@functools.cache
def fitted(num_replicas, parts):
    """Returns a run after three steps."""
    run = start_linear(num_replicas)
    run.take_steps(unevenly_weighted_points(), BATCH_SIZE, parts)
    return run


@pytest.fixture
def fitted_anew():
    """Forgets the runs before and after, because a test changes how they are made."""
    fitted.cache_clear()
    yield
    fitted.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("fitted_anew", "without_noise")
@pytest.mark.parametrize(("num_replicas", "parts"), [(1, 4), (2, 1), (2, 2)])
def test_batch_in_parts_gives_the_update_of_the_whole(num_replicas, parts):
    assert_same_training(fitted(num_replicas, parts), fitted(1, 1))


def test_parts_are_not_averaged_as_if_they_weighed_the_same():
    """The points above tell the right way from that wrong one: the losses of the parts differ from the whole's."""
    examples = unevenly_weighted_points()
    run = start_linear()
    losses = []
    for rows in (slice(0, 8), slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8)):
        part = {name: values[rows] for name, values in examples.items()}
        error, weight = run.state.objective.compute(part, False, None, model=run.model)["squared_error"]
        losses.append(float(error / weight))
    assert np.mean(losses[1:]) != pytest.approx(losses[0], rel=0.05)


@pytest.mark.slow
@pytest.mark.keras_2
def test_pretraining_in_parts_gives_the_update_of_the_whole():
    runs = []
    for parts in (4, 1):
        runs.append(TinyRun.start(objective=make_objective("roberta", CONFIG)))
        before = runs[-1].weights()
        runs[-1].take_steps(unevenly_weighted_examples(BATCH_SIZE), BATCH_SIZE, parts)
    assert_same_training(*runs)
    for run in runs:
        untouched = {name for name, values in run.weights().items() if np.array_equal(values, before[name])}
        # Nothing reaches these without pairs; weight decay alone would have moved the kernels.
        assert untouched == {name for name in before if "pooler" in name or "sentence_order" in name}
        assert any(name.endswith("kernel") for name in untouched)


@pytest.mark.slow
def test_parts_draw_the_dropout_of_as_many_replicas():
    runs = []
    for num_replicas, parts in ((1, 2), (2, 1), (1, 1)):
        runs.append(TinyRun.start(num_replicas, config=WITH_DROPOUT))
        runs[-1].take_steps(make_examples(2 * BATCH_SIZE), BATCH_SIZE, parts)
    in_parts, on_replicas, at_once = runs
    assert_same_training(in_parts, on_replicas)
    with pytest.raises(AssertionError):
        assert_same_training(at_once, on_replicas)


@pytest.mark.slow
@pytest.mark.parametrize(("num_replicas", "parts"), [(1, 4), (4, 1)])
def test_noise_depends_on_the_number_of_micro_batches_alone(num_replicas, parts):
    assert_same_training(fitted(num_replicas, parts), fitted(2, 2))
    with pytest.raises(AssertionError):
        assert_same_training(fitted(num_replicas, parts), fitted(1, 1))


def test_batch_that_can_not_be_cut_evenly_is_refused():
    strategy = make_strategy(num_cpu_replicas=2)
    assert per_replica_batch_size(strategy, 12, "train_batch_size", 3) == 6
    with pytest.raises(InputError) as error:
        per_replica_batch_size(strategy, 12, "train_batch_size", 4)
    assert str(error.value) == (
        "`train_batch_size=12` must be a multiple of 8, the number of replicas (2) times "
        "`gradient_accumulation_steps=4`"
    )
