"""What TensorFlow's errors in the middle of training become: one sentence that says what to do."""

import pytest
import tensorflow as tf
from linear_training import make_linear_examples, start_linear
from tiny_training import loop_settings

from albert_tf.errors import InputError

EXAMPLES = make_linear_examples(8)
OPTIONS = loop_settings(iterations_per_loop=2, save_checkpoints_steps=2)


@pytest.fixture
def train_until(monkeypatch, tmp_path):
    """Trains until an error comes at a step, and returns the sentence that the user gets."""

    def train(step, error):
        run = start_linear()
        update = type(run.state.metric_sums).take

        def take(sums):
            if run.global_step.numpy() >= step:
                raise error
            return update(sums)

        monkeypatch.setattr(type(run.state.metric_sums), "take", take)
        with pytest.raises(InputError) as raised:
            run.train(tmp_path, EXAMPLES, 4, 8, OPTIONS)
        return str(raised.value)

    return train


def test_lack_of_memory_names_the_flags_that_help(train_until):
    error = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor\nmore lines")
    assert train_until(2, error) == (
        "a step takes more memory than there is (OOM when allocating tensor); repeat the command with "
        "`remat=attention` or `remat=block`, or start anew with a lower `train_batch_size` or more "
        "`gradient_accumulation_steps`; nothing was saved yet"
    )


def test_lost_worker_says_which_checkpoint_is_there(train_until, tmp_path):
    error = tf.errors.UnavailableError(None, None, "Socket closed")
    assert train_until(4, error) == (
        "a TPU or another worker of this run is gone (Socket closed); start all of them again with the same command; "
        f"{tmp_path}/model.ckpt-2 is intact"
    )
