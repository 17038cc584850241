"""Folders that appear with all of their files or not at all, also where a folder is there to be filled."""

import os

import pytest

from albert_tf.errors import InputError
from albert_tf.interchange.new_folder import new_folder


def fill(path):
    with new_folder(str(path)) as folder:
        for name in ("model.index", "a.json", "model.data"):
            with open(os.path.join(folder, name), "w") as file:
                file.write(name)
        assert not path.exists() or not [name for name in os.listdir(path) if not name.startswith(".")]


@pytest.mark.parametrize("kind", ["none", "folder", "link"])
def test_files_come_together(tmp_path, kind):
    path = tmp_path / "new"
    if kind == "folder":
        path.mkdir()
    if kind == "link":  # as a mounted volume, it can't be replaced
        (tmp_path / "elsewhere").mkdir()
        path.symlink_to(tmp_path / "elsewhere")
    fill(path)
    assert sorted(os.listdir(path)) == ["a.json", "model.data", "model.index"]
    assert path.is_symlink() == (kind == "link")
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".new-")]


@pytest.mark.parametrize("is_there", [False, True])
def test_nothing_is_left_of_what_fails(tmp_path, is_there):
    if is_there:
        (tmp_path / "new").mkdir()
    with pytest.raises(ZeroDivisionError), new_folder(str(tmp_path / "new")) as folder:
        open(os.path.join(folder, "half"), "w").close()
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["new"] * is_there and not list(tmp_path.glob("new/*"))


def test_what_is_there_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(InputError, match="holds something already"), new_folder(str(path)):
            pass
    assert os.listdir(tmp_path) == ["file"]
