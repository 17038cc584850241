"""A run that was stopped and started again ends with the same bits as one that was not, also one with a scaled loss."""

import numpy as np
import pytest
from linear_training import make_linear_examples, start_linear
from tiny_training import CONFIG, TinyRun, loop_settings, make_examples

from albert_tf.training.progress import read_metrics

BATCH_SIZE = 4
NUM_TRAIN_STEPS = 9
OPTIONS = loop_settings(iterations_per_loop=1, save_checkpoints_steps=4, seed=3)


def train(output_dir, stop_at_step=None, options=OPTIONS, seed=0):
    run = start_linear(seed=seed)
    run.train(output_dir, make_linear_examples(5 * BATCH_SIZE), BATCH_SIZE, NUM_TRAIN_STEPS, options, stop_at_step)
    return run


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The folder of a run and its final state."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    return folder, train(folder).values()


@pytest.mark.slow
@pytest.mark.parametrize("stop_at_step", [2, 6])
def test_stopped_run_ends_with_the_same_bits(uninterrupted, tmp_path, stop_at_step):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, stop_at_step)
    # Before the first checkpoint there is nothing to restore, so that the weights must be drawn again as they were.
    resumed = train(tmp_path, seed=0 if stop_at_step < 4 else 1)
    np.testing.assert_equal(resumed.values(), uninterrupted[1])


@pytest.mark.slow
def test_stopped_run_with_dropout_ends_with_the_same_bits(tmp_path):
    config = CONFIG.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)

    def pretrain(name, stop_at_step=None, seed=0):
        run = TinyRun.start(optimizer="adamw", config=config, seed=seed)
        run.train(tmp_path / name, make_examples(5 * BATCH_SIZE), BATCH_SIZE, NUM_TRAIN_STEPS, OPTIONS, stop_at_step)
        return run.values()

    with pytest.raises(KeyboardInterrupt):
        pretrain("stopped", 6)
    np.testing.assert_equal(pretrain("stopped", seed=1), pretrain("uninterrupted"))


@pytest.mark.slow
def test_length_of_a_loop_does_not_change_the_result(uninterrupted, tmp_path):
    options = loop_settings(iterations_per_loop=3, save_checkpoints_steps=5, seed=3)
    run = train(tmp_path, options=options)
    np.testing.assert_equal(run.values(), uninterrupted[1])
    # The loop looks up at multiples of three, wherever it began, and at each checkpoint.
    assert [row["step"] for row in read_metrics(tmp_path)] == [3, 5, 6, 9]


@pytest.mark.slow
def test_losses_are_those_of_float32():
    found = []
    for dtype in ("float32", "float16"):
        options = {"dtype": dtype.replace("float16", "mixed_float16"), "compute_dtype": dtype, "optimizer": "adamw"}
        run = TinyRun.start(num_replicas=2, **options)
        found.append(run.take_steps(make_examples(48), 8))
    assert run.optimizer.loss_scale.overflows.numpy() == 0
    for name in ("masked_lm_loss", "sentence_order_loss"):
        assert found[1][name] == pytest.approx(found[0][name], rel=2e-3)


@pytest.mark.slow
def test_a_stopped_run_goes_on_with_its_scale(tmp_path):
    examples, settings = make_linear_examples(20), loop_settings(iterations_per_loop=1, save_checkpoints_steps=4)
    runs = []
    for stop_at_step in (None, 6):
        folder = tmp_path / str(stop_at_step)
        run = start_linear(compute_dtype="float16")
        run.optimizer.loss_scale.scale.assign(2.0**127)  # so that the first step overflows, in float32 too
        if stop_at_step:
            with pytest.raises(KeyboardInterrupt):
                run.train(folder, examples, 4, 12, settings, stop_at_step)
            run = start_linear(seed=3, compute_dtype="float16")
        run.train(folder, examples, 4, 12, settings)
        runs.append(run)
    straight, resumed = (run.values() for run in runs)
    assert 12 > straight["loss_scale_overflows"] > 0
    assert straight["skipped_steps"] == 0
    np.testing.assert_equal(resumed, straight)
