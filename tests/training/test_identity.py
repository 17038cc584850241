"""Files and checkpoints are told by their content, wherever they lie."""

import hashlib
import shutil

import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.training.run_folder.guard import (
    absolute_path,
    checkpoint_identity,
    file_identity,
    is_same_checkpoint,
    shard_identity,
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/../b//c/", "/b/c"),
        ("/data/train[1]-*.tfrecord", "/data/train[1]-*.tfrecord"),
        ("gs://bucket//run/", "gs://bucket/run"),
        ("ram://a/b", "ram://a/b"),
    ],
)
def test_path_is_spelled_in_one_way(path, expected):
    assert absolute_path(path) == expected


def test_path_does_not_depend_on_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute_path("./run/") == f"{tmp_path}/run"


def test_file_is_told_by_name_and_bytes(tmp_path):
    (tmp_path / "a.tsv").write_bytes("가".encode() * 1_000_000)
    assert file_identity(str(tmp_path / "a.tsv")) == {
        "name": "a.tsv",
        "sha256": hashlib.sha256("가".encode() * 1_000_000).hexdigest(),
    }
    with pytest.raises(InputError, match=r"can.t read .*b\.tsv"):
        file_identity(str(tmp_path / "b.tsv"))


def test_folder_is_told_by_the_names_and_bytes_of_its_files(tmp_path):
    folder = tmp_path / "train"
    for name in ("middle/2.txt", "middle/10.txt", "high/1.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    names = ("high/1.txt", "middle/10.txt", "middle/2.txt")
    listing = "".join(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in names)
    expected = {"name": "train", "sha256": hashlib.sha256(listing.encode()).hexdigest()}
    assert file_identity(str(folder)) == expected
    (folder / "middle" / ".DS_Store").write_text("hidden")
    assert file_identity(str(shutil.copytree(folder, tmp_path / "elsewhere" / "train"))) == expected
    (folder / "high" / "1.txt").rename(folder / "high" / "2.txt")
    assert file_identity(str(folder)) != expected


def write_records(path, records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return shard_identity(str(path))


def test_shard_is_told_by_size_and_first_record(tmp_path):
    first = write_records(tmp_path / "a", [b"first", b"second"])
    assert first == write_records(tmp_path / "b", [b"first", b"SECOND"])
    assert first != write_records(tmp_path / "c", [b"FIRST", b"second"])
    assert first != write_records(tmp_path / "d", [b"first", b"second", b"third"])
    (tmp_path / "damaged").write_bytes(b"\xff" * 100)
    assert shard_identity(str(tmp_path / "damaged")).startswith("100-")


@pytest.fixture
def folder(tmp_path):
    """A folder with the checkpoints of two steps."""
    for step in (3, 5):
        tf.train.Checkpoint(value=tf.Variable(float(step))).write(str(tmp_path / "run" / f"model.ckpt-{step}"))
    return tmp_path / "run"


def test_checkpoint_is_the_newest_of_a_folder(folder):
    identity = checkpoint_identity(f"{folder}/")
    assert identity == checkpoint_identity(str(folder / "model.ckpt-5"))
    assert identity["path"] == f"{folder}/model.ckpt-5"
    assert checkpoint_identity(None) is None


def test_checkpoint_is_the_same_wherever_it_lies(folder, tmp_path):
    began_with = checkpoint_identity(str(folder / "model.ckpt-3"))
    (tmp_path / "link").symlink_to(folder)
    shutil.copytree(folder, tmp_path / "copy")
    for other in ("link", "copy"):
        assert is_same_checkpoint(began_with, checkpoint_identity(str(tmp_path / other / "model.ckpt-3")))
        assert not is_same_checkpoint(began_with, checkpoint_identity(str(tmp_path / other)))
    assert not is_same_checkpoint(began_with, None)
    assert is_same_checkpoint(None, None)


def test_checkpoint_that_is_gone_is_told_by_its_path(folder, tmp_path):
    began_with = checkpoint_identity(str(folder / "model.ckpt-3"))
    shutil.rmtree(folder)
    for path, expected in ((folder / "model.ckpt-3", True), (folder, True), (tmp_path / "other", False)):
        assert is_same_checkpoint(began_with, checkpoint_identity(str(path))) == expected
