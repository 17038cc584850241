"""Averaged weights in a run: saved, restored, and what evaluation and later runs take."""

import numpy as np
import pytest
import tensorflow as tf
from linear_training import make_linear_examples, start_linear
from saved_state import state_of
from tiny_training import SCHEDULE, TinyRun, loop_settings

from albert_tf.modeling.layers import Linear, named_variables
from albert_tf.modeling.pretrained import load_weights
from albert_tf.optimization import AdamW
from albert_tf.training.evaluation import Evaluator
from albert_tf.training.progress import read_metrics
from albert_tf.training.run_folder.checkpoints import Checkpointer
from albert_tf.training.train_state import TrainState

BATCH_SIZE = 4
EXAMPLES, HELD_OUT = make_linear_examples(5 * BATCH_SIZE), make_linear_examples(2 * BATCH_SIZE, seed=1)
OPTIONS = loop_settings(iterations_per_loop=3, save_checkpoints_steps=2)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with averages, after six steps, and its folder."""
    folder = tmp_path_factory.mktemp("trained")
    run = start_linear(ema_decay=0.9)
    run.train(folder, EXAMPLES, BATCH_SIZE, 6, OPTIONS, held_out=HELD_OUT)
    return run, folder


def averages(run):
    return {name: average.numpy() for name, average in run.optimizer.averages.items()}


@pytest.mark.slow
def test_averages_of_a_run_are_neither_its_first_nor_its_last_weights(trained):
    run, _ = trained
    for name, average in averages(run).items():
        assert np.abs(average - run.weights()[name]).max() > 1e-4
        assert np.abs(average - start_linear().weights()[name]).max() > 1e-4


@pytest.mark.slow
def test_stopped_run_goes_on_with_its_averages(trained, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        start_linear(ema_decay=0.9).train(tmp_path, EXAMPLES, BATCH_SIZE, 6, OPTIONS, stop_at_step=3)
    resumed = start_linear(ema_decay=0.9, seed=1)
    resumed.train(tmp_path, EXAMPLES, BATCH_SIZE, 6, OPTIONS)
    np.testing.assert_equal(averages(resumed), averages(trained[0]))


@pytest.mark.slow
def test_weights_are_trained_the_same_with_averages(trained, tmp_path):
    without = start_linear()
    without.train(tmp_path, EXAMPLES, BATCH_SIZE, 6, OPTIONS, held_out=HELD_OUT)
    np.testing.assert_equal(without.weights(), trained[0].weights())
    held_out = [
        [row["loss"] for row in read_metrics(str(folder)) if row["split"] == "held_out"]
        for folder in (tmp_path, trained[1])
    ]
    assert held_out[0] != held_out[1], "it is the averages that are evaluated"


def test_model_alone_is_restored_with_the_averages(trained):
    run, folder = trained
    other = start_linear(num_replicas=2, seed=1)
    variables = named_variables(other.model)
    Checkpointer(str(folder), state_of(variables, other.global_step)).restore_latest()
    assert other.global_step.numpy() == 6
    np.testing.assert_equal(other.weights(), averages(run))
    evaluator = Evaluator(other.strategy, other.state.objective, other.state.models)
    dataset = tf.data.Dataset.from_tensor_slices(HELD_OUT).batch(BATCH_SIZE)
    with run.optimizer.averaged_weights():
        expected = Evaluator(run.strategy, run.state.objective, run.state.models).evaluate(dataset)
    assert evaluator.evaluate(dataset) == pytest.approx(expected, rel=1e-6)
    (row,) = [row for row in read_metrics(str(folder)) if row["split"] == "held_out"]
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-6)


def test_later_run_begins_with_the_averages(trained):
    run, folder = trained
    variables = named_variables(Linear(3, 1, 0.5))
    loaded, missing, unused = load_weights(str(folder), variables)
    assert (sorted(loaded), missing, unused) == (["bias", "kernel"], [], [])
    np.testing.assert_equal({name: variable.numpy() for name, variable in variables.items()}, averages(run))


@pytest.mark.slow
def test_frozen_variables_have_no_averages_and_are_loaded_as_they_are(tmp_path):
    run = start_linear()
    with run.strategy.scope():
        optimizer = AdamW({"kernel": named_variables(run.model)["kernel"]}, SCHEDULE, ema_decay=0.9)
    run = TinyRun(TrainState.create(run.strategy, run.state.objective, {"model": run.model}, optimizer))
    run.model.bias.assign([0.25])
    run.train(tmp_path, EXAMPLES, BATCH_SIZE, 2, OPTIONS)
    assert run.model.bias.numpy() == [0.25]
    assert averages(run).keys() == {"kernel"}
    variables = named_variables(Linear(3, 1, 0.5))
    load_weights(str(tmp_path), variables)
    np.testing.assert_array_equal(variables["bias"], [0.25])
    np.testing.assert_array_equal(variables["kernel"], averages(run)["kernel"])
