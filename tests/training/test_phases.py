"""Training in two phases, on batches of different shapes: each has its own data from the begin, and its own best."""

import io
import json

import numpy as np
import pytest
import tensorflow as tf
from linear_training import StopAt, make_linear_examples, start_linear
from tiny_training import loop_settings, never, spec_of

from albert_tf.training.batches import distribute_batches
from albert_tf.training.evaluation import Evaluator
from albert_tf.training.progress import Progress, read_metrics
from albert_tf.training.settings import Phase
from albert_tf.training.train_loop import train
from albert_tf.training.train_step import make_train_function

BATCH_SIZE, POINTS, LONGER = 4, 2, 5
FIRST_END, LAST_STEP = 4, 9
OPTIONS = loop_settings(iterations_per_loop=2, save_checkpoints_steps=3, seed=7, eval_every_steps=2)


def make_examples(count, points):
    """Returns points near a plane, which count as pieces."""
    return {**make_linear_examples(count, points), "input_ids": np.zeros([count, points], np.int32)}


def batches(points):
    return tf.data.Dataset.from_tensor_slices(make_examples(40, points)).batch(BATCH_SIZE)


def held_out(points, offset):
    examples = make_linear_examples(8, points, seed=1)
    return tf.data.Dataset.from_tensor_slices({**examples, "targets": examples["targets"] + offset}).batch(BATCH_SIZE)


class Begins:
    """Makes the two phases, and notes where their data began."""

    def __init__(self):
        self.begins = {POINTS: [], LONGER: []}

    def _phase(self, end_step, points, offset, parts):
        def make_dataset(start_step, host_index, num_hosts):
            self.begins[points].append(start_step)
            return batches(points).skip(start_step)

        spec = spec_of(make_examples(BATCH_SIZE, points), BATCH_SIZE)
        return Phase(end_step, spec, make_dataset, lambda: held_out(points, offset), parts)

    def phases(self):
        # The second phase's held-out data are the harder ones.
        return [self._phase(FIRST_END, POINTS, 0.0, 1), self._phase(LAST_STEP, LONGER, 20.0, 2)]


def run_phases(folder, run, phases, settings=OPTIONS):
    """Trains from the newest checkpoint on; returns the result."""
    checkpointer = run.checkpointer(folder, keep_checkpoint_max=1)
    checkpointer.restore_latest()
    evaluator = Evaluator(run.strategy, run.state.objective, run.state.models)
    return train(run.state, phases, settings, checkpointer, evaluator, Progress(str(folder), "", io.StringIO()))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of both phases, its folder, and where its data began."""
    folder, run, made = tmp_path_factory.mktemp("finished"), start_linear(), Begins()
    assert run_phases(folder, run, made.phases()).is_finished
    return run, folder, made.begins


@pytest.mark.slow
def test_data_of_each_phase_begin_at_its_first_batch(finished):
    run, _, begins = finished
    assert begins == {POINTS: [0], LONGER: [0]}
    plain = start_linear()
    for points, num_steps, parts in ((POINTS, FIRST_END, 1), (LONGER, LAST_STEP - FIRST_END, 2)):
        train_steps = make_train_function(plain.state, OPTIONS.random_seed, never(), parts)
        train_steps(iter(distribute_batches(plain.strategy, batches(points))), tf.constant(num_steps))
    assert plain.global_step.numpy() == LAST_STEP
    np.testing.assert_equal(run.weights(), plain.weights())


def test_metrics_of_each_phase_are_its_own(finished):
    rows = [row for row in read_metrics(str(finished[1])) if row["split"] == "train"]
    assert [row["step"] for row in rows] == [2, 3, 4, 6, 8, 9]
    for row in rows:
        points = POINTS if row["step"] <= FIRST_END else LONGER
        assert row["tokens_per_second"] == pytest.approx(points * row["examples_per_second"])


@pytest.mark.slow
@pytest.mark.parametrize(("stop_at_step", "begins"), [(FIRST_END, [0]), (5, [1]), (7, [3])])
def test_run_is_resumed_inside_the_second_phase(tmp_path, monkeypatch, finished, stop_at_step, begins):
    run = start_linear()
    with monkeypatch.context() as patch:
        patch.setattr("albert_tf.training.train_loop.StopRequest", StopAt(run.global_step, stop_at_step))
        assert not run_phases(tmp_path, run, Begins().phases()).is_finished
    assert run.global_step.numpy() == stop_at_step
    resumed, made = start_linear(seed=1), Begins()
    assert run_phases(tmp_path, resumed, made.phases()).is_finished
    assert made.begins == {POINTS: [], LONGER: begins}
    np.testing.assert_equal(resumed.values(), finished[0].values())


def test_best_is_that_of_the_present_phase(tmp_path, finished):
    held_out_losses = {row["step"]: row["loss"] for row in read_metrics(str(finished[1])) if row["split"] == "held_out"}
    assert list(held_out_losses) == [2, 4, 6, 8, 9]
    assert max(held_out_losses[step] for step in (2, 4)) < min(held_out_losses[step] for step in (6, 8, 9))
    best = json.loads((finished[1] / "best_checkpoint.json").read_text())
    assert best["step"] == min((6, 8, 9), key=held_out_losses.get)
    assert (finished[1] / f"{best['checkpoint']}.index").exists()
