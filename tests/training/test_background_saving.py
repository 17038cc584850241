"""Saving while training goes on: nobody waits for the disk, and what goes wrong there is told in one sentence."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from linear_training import make_linear_examples, start_linear
from tiny_training import loop_settings

from albert_tf.base.checkpoint_files import find_checkpoints
from albert_tf.base.errors import InputError

EXAMPLES = make_linear_examples(16)
WRITE = tf.train.Checkpoint.write


@pytest.fixture
def held_up(monkeypatch):
    """Holds up what writes a checkpoint until the event is set."""
    release = threading.Event()

    def write(checkpoint, path):
        assert release.wait(60)
        return WRITE(checkpoint, path)

    monkeypatch.setattr(tf.train.Checkpoint, "write", write)
    yield release
    release.set()


@pytest.fixture
def full_disk(monkeypatch):
    """Lets a disk be full from the call on; half of each checkpoint still has room."""

    def write(checkpoint, path):
        with open(f"{path}.data-00000-of-00001", "wb") as file:
            file.write(b"half a")
        raise tf.errors.ResourceExhaustedError(None, None, f"{path}; No space left on device\nmore lines")

    return lambda: monkeypatch.setattr(tf.train.Checkpoint, "write", write)


def saved_kernel(path):
    return tf.train.load_checkpoint(path).get_tensor("model/kernel/.ATTRIBUTES/VARIABLE_VALUE")


def test_saving_waits_for_no_disk(tmp_path, held_up):
    run = start_linear()
    checkpointer = run.checkpointer(tmp_path)
    kernel = run.model.kernel.numpy()
    path = checkpointer.save()
    run.take_steps(EXAMPLES, 4)
    assert not np.array_equal(run.model.kernel, kernel)
    checkpointer.check()  # does not wait either
    assert not find_checkpoints(str(tmp_path))
    held_up.set()
    checkpointer.wait()
    assert find_checkpoints(str(tmp_path)) == [path]
    np.testing.assert_array_equal(saved_kernel(path), kernel, "as it was when it was asked for")


@pytest.mark.slow
def test_loop_saves_and_goes_on(tmp_path, held_up):
    run = start_linear()
    steps = []

    def release_at_the_end(step, averages):
        steps.append(step)
        assert not find_checkpoints(str(tmp_path)), "held up"
        if step == 4:
            held_up.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tiny_training.Progress.update", lambda progress, *values: release_at_the_end(*values))
        options = loop_settings(iterations_per_loop=1, save_checkpoints_steps=2)
        assert run.train(tmp_path, EXAMPLES, 4, 4, options).is_finished
    assert steps == [1, 2, 3, 4]
    assert find_checkpoints(str(tmp_path)) == [f"{tmp_path}/model.ckpt-{step}" for step in (2, 4)]


def test_step_is_saved_once(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(tf.train.Checkpoint, "write", lambda self, path: written.append(path) or WRITE(self, path))
    run = start_linear()
    checkpointer = run.checkpointer(tmp_path)
    checkpointer.save()
    checkpointer.save()
    checkpointer.wait()
    other = run.checkpointer(tmp_path)
    other.restore_latest()
    other.save()
    other.wait()
    assert written == [f"{tmp_path}/model.ckpt-0"]


def test_one_process_alone_writes(tmp_path):
    checkpointer = start_linear().checkpointer(tmp_path / "run", is_chief=False)
    assert checkpointer.save() == f"{tmp_path}/run/model.ckpt-0"
    checkpointer.wait()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", ["check", "wait", "save"])
def test_checkpoint_that_could_not_be_written_is_told_and_leaves_no_half(tmp_path, full_disk, call):
    run = start_linear()
    checkpointer = run.checkpointer(tmp_path, keep_checkpoint_max=1)
    run.global_step.assign(4)
    checkpointer.save()
    checkpointer.wait()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    full_disk()
    run.global_step.assign(8)
    checkpointer.save()
    checkpointer._pending.exception()  # waits without raising
    run.global_step.assign(12)
    with pytest.raises(InputError) as error:
        getattr(checkpointer, call)()
    assert str(error.value) == (
        f"can't save {tmp_path}/model.ckpt-8: {tmp_path}/model.ckpt-8; No space left on device; "
        f"{tmp_path}/model.ckpt-4 is intact; free some space or choose another `output_dir`, and repeat the command to "
        "continue from there"
    )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    checkpointer.wait()  # told once


def test_failed_step_can_be_saved_when_there_is_space_again(tmp_path):
    run = start_linear()
    checkpointer = run.checkpointer(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.train.Checkpoint, "write", _raise_permission_error)
        checkpointer.save()
        with pytest.raises(InputError, match=r"model\.ckpt-0: not allowed; none was written before; free some space"):
            checkpointer.wait()
    path = checkpointer.save()
    checkpointer.wait()
    assert find_checkpoints(str(tmp_path)) == [path]


def _raise_permission_error(checkpoint, path):
    raise PermissionError("not allowed")


def test_training_ends_at_a_checkpoint_that_could_not_be_written(tmp_path, full_disk):
    full_disk()
    run = start_linear()
    options = loop_settings(iterations_per_loop=1, save_checkpoints_steps=2)
    with pytest.raises(InputError, match=r"^can't save .*model\.ckpt-2: .*No space left on device; none was written"):
        run.train(tmp_path, EXAMPLES, 4, 100, options)
    assert run.global_step.numpy() <= 4, "the next checkpoint at the latest brings it to light"
