"""Checkpoints that a disk or a kill has damaged: the newest that is whole is used, and leftovers are cleared away."""

import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_training import start_linear

from albert_tf.base.checkpoint_files import DamagedCheckpointError, find_checkpoints
from albert_tf.base.errors import InputError

DATA, INDEX = "model.ckpt-8.data-00000-of-00001", "model.ckpt-8.index"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a run that saved at steps 4 and 8."""
    folder = tmp_path_factory.mktemp("saved")
    save(folder, 4, 8)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of it."""
    return shutil.copytree(saved, tmp_path / "run")


def save(folder, *steps, **options):
    """Saves a run whose weights tell the step."""
    run = start_linear(ema_decay=0.9)
    checkpointer = run.checkpointer(folder, **options)
    for step in steps:
        run.global_step.assign(step)
        run.model.kernel.assign(tf.fill([3, 1], float(step)))
        checkpointer.save()
    checkpointer.wait()


def restored_step(folder):
    """Returns the step that is restored, after checking that the weights are those of the same one."""
    run = start_linear(ema_decay=0.9, seed=1)
    path = run.checkpointer(folder).restore_latest()
    step = int(run.global_step.numpy())
    assert path == f"{folder}/model.ckpt-{step}"
    np.testing.assert_array_equal(run.model.kernel, np.full([3, 1], step))
    return step


def flip_byte(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "data empty": lambda folder: (folder / DATA).write_bytes(b""),
    "data missing": lambda folder: (folder / DATA).unlink(),
    "last byte flipped": lambda folder: flip_byte(folder / DATA, -1),
    "index cut in half": lambda folder: (folder / INDEX).write_bytes((folder / INDEX).read_bytes()[:200]),
    "index not one at all": lambda folder: (folder / INDEX).write_bytes(b"a checkpoint that was cut sh"),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_checkpoint_before_a_damaged_one_is_used(folder, capfd, damage):
    damage(folder)
    capfd.readouterr()
    assert restored_step(folder) == 4
    (warning,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert f"{folder}/model.ckpt-8 is damaged: " in warning and warning.endswith("; going back to the one before it")


@pytest.mark.slow
@settings(max_examples=20)
@given(draws=st.data())
def test_no_truncated_checkpoint_is_taken_for_whole_and_no_flipped_bit_gives_other_weights(
    saved, tmp_path_factory, draws
):
    folder = pathlib.Path(shutil.copytree(saved, tmp_path_factory.mktemp("damaged") / "run"))
    path = folder / draws.draw(st.sampled_from([DATA, INDEX]))
    content = bytearray(path.read_bytes())
    position, is_cut = draws.draw(st.integers(0, len(content) - 1)), draws.draw(st.booleans())
    content[position] ^= 1 << draws.draw(st.integers(0, 7))
    path.write_bytes(content[:position] if is_cut else content)
    # A bit of the index may mean nothing; the one before must never be taken for damaged.
    assert restored_step(folder) in ((4,) if is_cut else (4, 8))


def test_damaged_checkpoint_leaves_the_variables_alone(folder):
    flip_byte(folder / DATA, -1)
    run = start_linear(ema_decay=0.9, seed=1)
    before = run.values()
    with pytest.raises(DamagedCheckpointError):
        run.checkpointer(folder).restore(f"{folder}/model.ckpt-8")
    np.testing.assert_equal(run.values(), before)


def test_nothing_but_damaged_checkpoints_is_an_error(folder):
    for path in folder.glob("*.data-*"):
        path.unlink()
    with pytest.raises(InputError) as error:
        restored_step(folder)
    message = str(error.value)
    assert message.startswith(f"`output_dir={folder}`: none of its 2 checkpoints can be read (")
    assert message.endswith("; choose another folder to start anew") and "\n" not in message


@pytest.mark.parametrize("content", [None, b"\xff garbage", b'model_checkpoint_path: "model.ckpt-4"\n'])
def test_file_named_checkpoint_does_not_matter(folder, content):
    (folder / "checkpoint").unlink()
    if content is not None:
        (folder / "checkpoint").write_bytes(content)
    assert restored_step(folder) == 8


def test_whole_checkpoints_do_not_make_way_for_damaged_ones(folder):
    (folder / INDEX).write_bytes(b"")
    save(folder, 6, keep_checkpoint_max=1)
    assert restored_step(folder) == 6
    save(folder, 8, 9, keep_checkpoint_max=1)
    assert find_checkpoints(folder) == [f"{folder}/model.ckpt-9"]


def test_leftovers_are_removed_and_whole_checkpoints_are_not(folder):
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    others = {"vocab.txt": b"[PAD]\n", "model.ckpt-old.data-00000-of-00001": b"someone's", "metrics.jsonl": b"{}\n"}
    leftovers = (
        "model.ckpt-12.data-00000-of-00001",
        "model.ckpt-12.index.tempstate123",
        "model.ckpt-8.index.tempstate9",
    )
    for name, content in {**others, **dict.fromkeys(leftovers, b"half a")}.items():
        (folder / name).write_bytes(content)
    (folder / "model.ckpt-8_temp").mkdir()
    (folder / "model.ckpt-8_temp" / "part-00000-of-00001.data-00000-of-00001").write_bytes(b"half a")
    run = start_linear(ema_decay=0.9)
    run.checkpointer(folder, is_chief=False).remove_leftovers()
    assert {path.name for path in folder.iterdir()} == {*whole, *others, *leftovers, "model.ckpt-8_temp"}
    run.checkpointer(folder).remove_leftovers()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {**whole, **others}
    run.checkpointer(folder / "missing").remove_leftovers()


def test_damaged_checkpoint_is_no_longer_named_as_the_newest_by_the_worker_that_writes(folder):
    """Other programs find checkpoints by the file that TensorFlow keeps; one process alone writes it."""
    (folder / DATA).write_bytes(b"")
    before = (folder / "checkpoint").read_bytes()
    start_linear(ema_decay=0.9).checkpointer(folder, is_chief=False).restore_latest()
    assert (folder / "checkpoint").read_bytes() == before
    assert restored_step(folder) == 4
    assert tf.train.latest_checkpoint(str(folder)) == f"{folder}/model.ckpt-4"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run[1]*", r"what?back\slash", "두 칸 run"])
def test_folder_may_have_any_name(tmp_path, name):
    """TensorFlow's reader takes some characters for a pattern."""
    folder = tmp_path / name
    save(folder, 4, 8, keep_checkpoint_max=1)
    assert find_checkpoints(str(folder)) == [f"{folder}/model.ckpt-8"]
    assert {path.name for path in folder.iterdir()} == {DATA, INDEX, "checkpoint"}
    assert restored_step(folder) == 8


def test_folder_of_another_file_system_may_have_any_name(tmp_path):
    folder = f"ram://{tmp_path.name}/run[1]"
    save(folder, 4)
    assert restored_step(folder) == 4


def test_folder_may_be_a_link(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    assert restored_step(tmp_path / "link") == 8
