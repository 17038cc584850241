"""Files that appear together or not at all, also where a folder is there to be filled."""

import json
import os
import subprocess
import sys

import pytest
import tensorflow as tf

from albert_tf.base import folders
from albert_tf.base.errors import InputError
from albert_tf.base.files import UNFINISHED, read_text
from albert_tf.base.folders import files_together, hold, new_folder

NAMES = ("model.index", "a.json", "model.data")


def fill(folder, names=NAMES):
    for name in names:
        with open(os.path.join(folder, name), "w") as file:
            file.write(name)


def visible(path):
    return [name for name in os.listdir(path) if not name.startswith(".")] if os.path.exists(path) else []


@pytest.mark.parametrize("kind", ["none", "deep", "folder", "link"])
def test_files_come_together(tmp_path, kind):
    path = tmp_path / "new"
    if kind == "deep":
        path = tmp_path / "new" / "newer"
    if kind == "folder":
        path.mkdir()
    if kind == "link":  # as a mounted volume, it can't be replaced
        (tmp_path / "elsewhere").mkdir()
        path.symlink_to(tmp_path / "elsewhere")
    with new_folder(str(path)) as folder:
        fill(folder)
        assert not visible(path)
    assert sorted(os.listdir(path)) == sorted(NAMES)
    assert path.is_symlink() == (kind == "link")
    assert not [name for name in os.listdir(path.parent) if name.startswith(".")]
    (tmp_path / "usual").mkdir()
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("is_there", [False, True])
def test_nothing_is_left_of_what_fails(tmp_path, is_there):
    if is_there:
        (tmp_path / "new").mkdir()
    with pytest.raises(ZeroDivisionError), new_folder(str(tmp_path / "new")) as folder:
        fill(folder)
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["new"] * is_there and not list(tmp_path.glob("new/*"))


def test_what_is_there_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path, tmp_path / "file"):
        with (
            pytest.raises(InputError, match=r"holds something already|can't be written to \(Not a directory\)"),
            new_folder(str(path)),
        ):
            pass
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("is_there", [False, True])
def test_folder_is_written_by_one(tmp_path, is_there):
    if is_there:
        (tmp_path / "new").mkdir()
    script = f"from albert_tf.base.folders import new_folder\nwith new_folder({str(tmp_path / 'new')!r}): pass"
    with new_folder(str(tmp_path / "new")):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert f"{tmp_path}/new is in use by another command;" in done.stderr.splitlines()[-1]


def test_folder_that_somebody_fills_in_the_meantime_is_left_alone(tmp_path):
    with pytest.raises(OSError, match="not empty"), new_folder(str(tmp_path / "new")) as folder:
        fill(folder)
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "mine").touch()
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["new", "new/mine"]


@pytest.fixture(params=["{tmp_path}/run", "ram://{tmp_path.name}/run"])
def folder(request, tmp_path):
    """A folder on this machine's disk, or on a file system like Cloud Storage's."""
    path = request.param.format(tmp_path=tmp_path)
    tf.io.gfile.makedirs(path)
    return path


@pytest.mark.parametrize("moved", [0, 2, 3])
def test_files_of_which_some_have_come_are_refused_and_cleared_away(folder, monkeypatch, moved):
    """A process is killed after it has moved some files."""

    class KilledError(BaseException):
        pass

    def move(*paths, real=folders._move):
        if not counts:
            raise KilledError
        counts.pop()
        real(*paths)

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr("albert_tf.base.folders._move", move)
        counts = [None] * moved
        with new_folder(folder) as temporary:
            fill(temporary)
            if moved == 3:
                patch.setattr("shutil.rmtree", lambda *_, **__: move())
    with tf.io.gfile.GFile(f"{folder}/.unfinished") as file:
        assert sorted(json.loads(file.read())) == sorted(NAMES)
    for name in NAMES:
        with pytest.raises(InputError, match=f"{name} is unfinished output of a command that was killed"):
            read_text(f"{folder}/{name}", "the text")
    with new_folder(folder) as temporary:
        assert not os.listdir(temporary)
        fill(temporary)
    assert sorted(tf.io.gfile.listdir(folder)) == sorted(NAMES)
    assert read_text(f"{folder}/a.json", "the text") == "a.json"


def test_index_of_a_checkpoint_comes_last(tmp_path, monkeypatch):
    moved, move = [], os.replace
    monkeypatch.setattr(
        os, "replace", lambda source, target: (moved.append(os.path.basename(target)), move(source, target))
    )
    with hold(tmp_path), files_together(str(tmp_path)) as folder:
        fill(folder)
    assert moved[-1] == "model.index" and sorted(moved[-3:]) == sorted(NAMES)


def test_files_of_the_same_names_are_replaced_and_others_stay(folder):
    for text in ("old", "new"):
        with hold(folder), files_together(folder) as temporary:
            for name in ("a", text):
                with open(os.path.join(temporary, name), "w") as file:
                    file.write(text)
    assert sorted(tf.io.gfile.listdir(folder)) == ["a", "new", "old"]
    assert read_text(f"{folder}/a", "the text") == "new"


def test_folders_in_it_come_along(tmp_path):
    for folder in (str(tmp_path / "new"), f"ram://{tmp_path.name}/new"):
        with new_folder(folder) as temporary:
            os.makedirs(os.path.join(temporary, "assets", "deep"))
            fill(os.path.join(temporary, "assets", "deep"))
        assert read_text(f"{folder}/assets/deep/a.json", "the text") == "a.json"


@pytest.mark.parametrize("content", [b"{}", b"[1]", b"\xff", b"[" * 100_000], ids=range(4))
def test_list_of_unfinished_files_that_is_none_is_told(tmp_path, content):
    (tmp_path / UNFINISHED).write_bytes(content)
    (tmp_path / "vocab.txt").write_text("a")
    with pytest.raises(InputError, match="is not a list of files that a command left unfinished"):
        read_text(tmp_path / "vocab.txt", "the vocabulary")
