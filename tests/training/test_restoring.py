"""The start of a run: what is told and loaded of it, and that files and checkpoints are told by their content."""

import hashlib
import itertools
import shutil
import types

import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.checkpoint_files import write_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.training.run_folder.checkpoints import Checkpointer
from albert_tf.training.run_folder.guard import (
    absolute_path,
    checkpoint_identity,
    file_identity,
    is_same_checkpoint,
    shard_identity,
)
from albert_tf.training.run_folder.restoring import describe_alignment, load_further_models

STATES = {False: "the state of a masked piece", True: "the state before the next piece"}


def describe(folder, was_causal, is_causal, complete_for=None):
    """Describes how a model begins with another one."""
    write_json(str(folder / "albert_config.json"), tiny_config(is_causal=was_causal).to_dict())
    model = types.SimpleNamespace(config=tiny_config(is_causal=is_causal), masked_lm_head=object())
    return describe_alignment(str(folder), model, [], complete_for)


@pytest.mark.parametrize(("then", "now"), itertools.product(STATES, repeat=2))
def test_head_that_reads_another_state_is_told(tmp_path, then, now):
    told = f"has learnt to read {STATES[then]}, and learns now to read {STATES[now]}"
    expected = f"initial checkpoint: its masked-LM head {told}" if then != now else None
    assert describe(tmp_path, then, now) == expected


def test_head_that_reads_another_state_is_not_used_as_it_is(tmp_path):
    with pytest.raises(InputError) as error:
        describe(tmp_path, False, True, "run")
    assert str(error.value) == (
        f"`output_dir=run` holds no run, and the head in `init_checkpoint={tmp_path}` reads {STATES[False]}, where "
        f"this model reads {STATES[True]}; check is_causal in `albert_config_file`, or pass `do_train`"
    )


TABLE, KERNEL = "generator/encoder/embeddings/word_embeddings", "generator/encoder/kernel"


@pytest.fixture
def write(tmp_path):
    """Writes a checkpoint of ones; returns its folder."""

    def write_ones(*names):
        write_checkpoint(str(tmp_path / "model.ckpt-1"), dict.fromkeys(names, tf.ones([2])) | {"global_step": 1})
        return str(tmp_path)

    return write_ones


def variables_of(*names):
    return {name: tf.Variable(tf.zeros([2])) for name in names}


def test_what_is_followed_keeps_its_values_where_the_checkpoint_shares_the_other_models(write):
    variables = variables_of(TABLE, KERNEL)
    line = load_further_models(write("model/bias", KERNEL), variables, followed={TABLE})
    assert line == "initial checkpoint: loaded 1 variables of the generator"
    assert [float(value[0]) for value in variables.values()] == [0, 1]
    line = load_further_models(write(TABLE, KERNEL), variables, followed={TABLE})
    assert line == "initial checkpoint: loaded 2 variables of the generator" and float(variables[TABLE][0]) == 1
    line = load_further_models(write("model/bias", KERNEL), variables)
    assert line.endswith("the generator in it has another size or lacks a part, and so begins at random")


def test_what_further_models_would_do_without_is_told_or_refused(write):
    folder, variables = write("model/bias", TABLE, KERNEL), variables_of(KERNEL)
    line = load_further_models(folder, variables)
    assert line.endswith("1 variables of the generator; left, because the model's take their place: encoder/embeddings")
    with pytest.raises(InputError, match="has encoder/embeddings of its generator, which this run would do without"):
        load_further_models(folder, variables, complete_for="run")


def test_checkpoint_with_more_than_the_models_have_is_not_restored(write):
    folder = write("model/bias", TABLE, KERNEL)
    state = {**variables_of("model/bias", KERNEL), "global_step": tf.Variable(0, dtype=tf.int64)}
    with pytest.raises(InputError, match=f"has {TABLE}, which this command does not use"):
        Checkpointer(folder, state).restore(f"{folder}/model.ckpt-1")
    assert float(state["model/bias"][0]) == 0
    Checkpointer(folder, {**state, **variables_of(TABLE)}).restore(f"{folder}/model.ckpt-1")
    assert float(state["model/bias"][0]) == 1


def test_path_is_spelled_in_one_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = {"/a/../b//c/": "/b/c", "/data/train[1]-*.tfrecord": "/data/train[1]-*.tfrecord"}
    paths |= {"gs://bucket//run/": "gs://bucket/run", "ram://a/b": "ram://a/b", "./run/": f"{tmp_path}/run"}
    assert {path: absolute_path(path) for path in paths} == paths


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
