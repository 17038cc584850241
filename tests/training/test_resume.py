"""A run that was stopped and started again ends with the same bits as one that was not."""

import numpy as np
import pytest
from tiny_training import CONFIG, TinyRun, loop_settings, make_examples

from albert_tf.training.progress import read_metrics

BATCH_SIZE = 4
EXAMPLES = make_examples(5 * BATCH_SIZE)
NUM_TRAIN_STEPS = 9
OPTIONS = loop_settings(iterations_per_loop=1, save_checkpoints_steps=4, seed=3)
WITH_DROPOUT = CONFIG.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)

pytestmark = pytest.mark.slow


def train(output_dir, stop_at_step=None, options=OPTIONS, seed=0):
    run = TinyRun.start(1, "adamw", config=WITH_DROPOUT, seed=seed)
    run.train(output_dir, EXAMPLES, BATCH_SIZE, NUM_TRAIN_STEPS, options, stop_at_step)
    return run


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The folder of a run and its final state."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    return folder, train(folder).values()


@pytest.mark.parametrize("stop_at_step", [2, 6])
def test_stopped_run_ends_with_the_same_bits(uninterrupted, tmp_path, stop_at_step):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, stop_at_step)
    # Before the first checkpoint there is nothing to restore, so that the weights must be drawn again as they were.
    resumed = train(tmp_path, seed=0 if stop_at_step < 4 else 1)
    np.testing.assert_equal(resumed.values(), uninterrupted[1])


def test_length_of_a_loop_does_not_change_the_result(uninterrupted, tmp_path):
    options = loop_settings(iterations_per_loop=3, save_checkpoints_steps=5, seed=3)
    run = train(tmp_path, options=options)
    np.testing.assert_equal(run.values(), uninterrupted[1])
    # The loop looks up at multiples of three, wherever it began, and at each checkpoint.
    assert [row["step"] for row in read_metrics(tmp_path)] == [3, 5, 6, 9]


def test_dropout_seed_matters(uninterrupted, tmp_path):
    options = loop_settings(iterations_per_loop=9, save_checkpoints_steps=9, seed=4)
    kernel = "model/encoder/pooler/kernel"
    assert not np.array_equal(train(tmp_path, options=options).values()[kernel], uninterrupted[1][kernel])


def test_running_again_after_the_end_changes_nothing(uninterrupted):
    folder, state = uninterrupted

    def contents():
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    before = contents()
    assert {"model.ckpt-9.index", "metrics.jsonl", "loss.png"} <= before.keys()
    np.testing.assert_equal(train(folder, seed=1).values(), state)
    assert contents() == before
