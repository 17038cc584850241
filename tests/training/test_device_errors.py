"""What TensorFlow's errors in the middle of training become: one sentence that says what to do."""

import pytest
import tensorflow as tf
from linear_training import make_linear_examples, start_linear
from tiny_training import loop_settings

from albert_tf.base.errors import InputError
from albert_tf.training.train_state import MetricSums


@pytest.mark.parametrize(
    ("step", "error", "sentence"),
    [
        (
            2,
            tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor\nmore lines"),
            "a step takes more memory than there is (OOM when allocating tensor); repeat the command with "
            "`remat=attention` or `remat=block`, or start anew with a lower `train_batch_size` or more "
            "`gradient_accumulation_steps`; nothing was saved yet",
        ),
        (
            4,
            tf.errors.UnavailableError(None, None, "Socket closed"),
            "a TPU or another worker of this run is gone (Socket closed); start all of them again with the same "
            "command; {folder}/model.ckpt-2 is intact",
        ),
    ],
    ids=["lack of memory", "lost worker"],
)
def test_error_at_a_step_is_a_sentence_that_says_what_helps(monkeypatch, tmp_path, step, error, sentence):
    run, take = start_linear(), MetricSums.take

    def fail_at_the_step(sums):
        if run.global_step.numpy() >= step:
            raise error
        return take(sums)

    monkeypatch.setattr(MetricSums, "take", fail_at_the_step)
    with pytest.raises(InputError) as raised:
        options = loop_settings(iterations_per_loop=2, save_checkpoints_steps=2)
        run.train(tmp_path, make_linear_examples(8), 4, 8, options)
    assert str(raised.value) == sentence.format(folder=tmp_path)
