"""Steps that fail: those that are not finite are skipped, counted and shown; other errors become one sentence."""

import numpy as np
import pytest
import tensorflow as tf
from linear_training import make_linear_examples, start_linear
from tiny_training import TinyRun, loop_settings, make_examples, never

from albert_tf.base.errors import InputError
from albert_tf.training.batches import distribute_batches
from albert_tf.training.progress import read_metrics
from albert_tf.training.stability import SkippedSteps
from albert_tf.training.train_state import MetricSums
from albert_tf.training.train_step import make_train_function

BATCH_SIZE = 4
COUNTS = ("global_step", "skipped_steps", "last_skipped_step")


def counts(run):
    return tuple(int(run.values()[name]) for name in COUNTS)


def stepper(run):
    """Returns a function that trains one step on a batch; it is traced once."""
    train_steps = make_train_function(run.state, 7, never())

    def step(batch):
        dataset = tf.data.Dataset.from_tensors(batch).unbatch().batch(BATCH_SIZE, drop_remainder=True)
        train_steps(iter(distribute_batches(run.strategy, dataset)), tf.constant(1))

    return step


def assert_skips(run, good, bad):
    """Checks that of the batches good, bad, good the second one leaves nothing behind."""
    step = stepper(run)
    step(good)
    before = run.values()
    assert counts(run) == (1, 0, -1)
    step(bad)
    after = run.values()
    assert counts(run) == (2, 1, 1)
    for name, values in before.items():
        if name not in COUNTS:
            np.testing.assert_array_equal(after[name], values, err_msg=name)
            assert np.isfinite(values).all()
    for name in run.state.named_variables():
        for copy in run.strategy.experimental_local_results(run.state.named_variables()[name]):
            np.testing.assert_array_equal(copy.numpy(), after[name], err_msg=f"{name} differs between replicas")
    step(good)
    assert counts(run) == (3, 1, 1)
    assert all(np.isfinite(values).all() for values in run.values().values())
    return before


@pytest.mark.slow
def test_pretraining_skips_a_batch_with_one_bad_weight():
    run = TinyRun.start(num_replicas=2, ema_decay=0.9)
    good, bad = make_examples(BATCH_SIZE), make_examples(BATCH_SIZE, seed=1)
    bad["masked_lm_weights"][3, 1] = np.nan  # an example of the second replica
    before = assert_skips(run, good, bad)
    changed = [name for name, values in run.values().items() if not np.array_equal(values, before[name])]
    assert {name.split("/")[0] for name in changed} >= {"model", "first_moments", "averages", "metric_sums"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_replicas", "feature", "value"), [(1, "inputs", np.inf), (2, "targets", np.nan), (1, "targets", 3e38)]
)
def test_batch_with_one_bad_value_is_skipped(num_replicas, feature, value):
    good, bad = make_linear_examples(BATCH_SIZE), make_linear_examples(BATCH_SIZE)
    bad[feature][-1] = value
    assert_skips(start_linear(num_replicas, ema_decay=0.9, bias_correction=True), good, bad)


def train(folder, run, bad_steps, max_skipped_steps, num_train_steps=8, phase_options=None, **options):
    """Trains on batches of which some are bad; returns the batches."""
    examples = make_linear_examples(num_train_steps * BATCH_SIZE)
    for step in bad_steps:
        examples["targets"][step * BATCH_SIZE + 1] = np.nan
    options = {"iterations_per_loop": 2, "save_checkpoints_steps": 4, **options}
    options = loop_settings(max_skipped_steps=max_skipped_steps, **options)
    run.train(folder, examples, BATCH_SIZE, num_train_steps, options, **(phase_options or {}))
    return [
        {name: values[step * BATCH_SIZE :][:BATCH_SIZE] for name, values in examples.items()}
        for step in range(num_train_steps)
    ]


@pytest.mark.slow
def test_run_tells_of_skipped_steps_saves_their_batch_and_goes_on(tmp_path):
    run = start_linear(num_replicas=2)
    batches = train(tmp_path, run, bad_steps=[1, 4], max_skipped_steps=2)
    assert counts(run) == (8, 2, 4)
    saved = sorted(path.name for path in tmp_path.glob("skipped_batch-*"))
    assert saved == ["skipped_batch-1.npz", "skipped_batch-4.npz"]
    for step in (1, 4):
        with np.load(tmp_path / f"skipped_batch-{step}.npz") as batch:
            np.testing.assert_equal(dict(batch), batches[step])
    warnings = [line for line in run.printed.splitlines() if line.startswith("warning: ")]
    assert warnings == [
        f"warning: loss or gradients were not finite in {count} steps so far, the last of them step {step}; such steps "
        f"are skipped; see {tmp_path}/skipped_batch-{step}.npz"
        for count, step in ((1, 1), (2, 4))
    ]
    rows = read_metrics(str(tmp_path))
    assert [row["step"] for row in rows] == [2, 4, 6, 8]
    assert all(np.isfinite(row["loss"]) for row in rows)


@pytest.mark.slow
def test_saved_batch_is_that_of_all_hosts(tmp_path, monkeypatch):
    def two_hosts(strategy, make_dataset):
        def join(*parts):
            return {name: tf.concat([part[name] for part in parts], 0) for name in parts[0]}

        return distribute_batches(strategy, tf.data.Dataset.zip((make_dataset(0, 2), make_dataset(1, 2))).map(join))

    monkeypatch.setattr("albert_tf.training.train_loop.distribute_host_batches", two_hosts)
    run = start_linear()
    batches = train(tmp_path, run, [4], max_skipped_steps=1, phase_options={"hosts_read_apart": True})
    assert counts(run) == (8, 1, 4)
    with np.load(tmp_path / "skipped_batch-4.npz") as batch:
        np.testing.assert_equal(dict(batch), batches[4])


@pytest.mark.slow
def test_loop_of_skipped_steps_alone_reports_no_loss(tmp_path):
    run = start_linear()
    train(tmp_path, run, bad_steps=[2, 3], max_skipped_steps=2)
    assert ["loss" in row for row in read_metrics(str(tmp_path))] == [True, False, True, True]


@pytest.mark.slow
def test_run_that_skipped_most_of_its_steps_fails(tmp_path):
    with pytest.raises(InputError, match=r"not finite in 5 of 8 steps, so the weights are of no use; the batch of the"):
        train(tmp_path, start_linear(), bad_steps=[1, 2, 4, 5, 6], max_skipped_steps=100)


def test_too_many_skipped_steps_end_the_run(tmp_path):
    run = start_linear()
    with pytest.raises(InputError) as error:
        train(tmp_path, run, bad_steps=[1, 4, 5], max_skipped_steps=2)
    message = str(error.value)
    assert message.startswith("loss or gradients were not finite in 3 steps, the last of them step 5, and ")
    assert "`max_skipped_steps` is 2; " in message and f"{tmp_path}/skipped_batch-5.npz" in message
    assert "\n" not in message
    assert (tmp_path / "skipped_batch-5.npz").exists()
    assert run.global_step.numpy() == 6
    assert run.checkpointer(tmp_path).latest == f"{tmp_path}/model.ckpt-4", "what was saved before is there"


def test_one_skipped_step_is_too_many_where_none_is_allowed(tmp_path):
    for _ in range(2):  # also when the command is repeated after the checkpoint of that very step
        with pytest.raises(InputError, match="in 1 steps, the last of them step 7, and `max_skipped_steps` is 0"):
            train(tmp_path, start_linear(), bad_steps=[7], max_skipped_steps=0)
    train(tmp_path, start_linear(), bad_steps=[7], max_skipped_steps=1)


@pytest.mark.slow
def test_count_goes_on_after_a_resume(tmp_path):
    train(tmp_path, start_linear(), [1], max_skipped_steps=1, num_train_steps=4)
    assert SkippedSteps(start_linear().optimizer, str(tmp_path), 1).look() is None
    with pytest.raises(InputError, match="in 2 steps, the last of them step 5"):
        train(tmp_path, start_linear(), [1, 5], max_skipped_steps=1)


NO_MEMORY = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor\nmore lines")
GONE = tf.errors.UnavailableError(None, None, "Socket closed")


@pytest.mark.parametrize(
    ("step", "error", "begin", "end"),
    [
        (
            2,
            NO_MEMORY,
            "a step takes more memory than there is (OOM when allocating tensor); rep",
            "nothing was saved yet",
        ),
        (4, GONE, "a TPU or another worker of this run is gone (Socket closed); start all", "/model.ckpt-2 is intact"),
    ],
    ids=["lack of memory", "lost worker"],
)
def test_other_error_is_a_sentence_that_says_what_helps(monkeypatch, tmp_path, step, error, begin, end):
    run, take = start_linear(), MetricSums.take

    def fail_at_the_step(sums):
        if run.global_step.numpy() >= step:
            raise error
        return take(sums)

    monkeypatch.setattr(MetricSums, "take", fail_at_the_step)
    with pytest.raises(InputError) as raised:
        options = loop_settings(iterations_per_loop=2, save_checkpoints_steps=2)
        run.train(tmp_path, make_linear_examples(8), 4, 8, options)
    message = str(raised.value)
    assert message.startswith(begin) and message.endswith(end) and "\n" not in message
