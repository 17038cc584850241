"""The data of a pre-training run is told by its content."""

import types

import tensorflow as tf

from albert_tf.runs.phases import train_identity


def bare_shards(folder, records):
    """Writes shards without a manifest, a record each, and returns what `find_shards` would of them."""
    paths = [folder / name for name in records]
    for path, record in zip(paths, records.values()):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tf.io.TFRecordWriter(str(path)) as writer:
            writer.write(record)
    return types.SimpleNamespace(manifest={}, train_paths=list(map(str, paths)), damage={})


def test_shards_of_one_name_in_several_folders_are_told_apart(tmp_path):
    names = "news/train.tfrecord", "wiki/train.tfrecord"
    before = train_identity(bare_shards(tmp_path / "a", dict(zip(names, (b"first", b"second")))))
    assert before.keys() == set(names)
    assert before == train_identity(bare_shards(tmp_path / "b", dict(zip(names, (b"first", b"second")))))
    assert before != train_identity(bare_shards(tmp_path / "a", dict(zip(names, (b"FIRST", b"second")))))
    assert before != train_identity(bare_shards(tmp_path / "a", dict(zip(names, (b"second", b"first")))))


def test_shards_of_several_names_are_told_by_these_wherever_they_lie(tmp_path):
    shards = bare_shards(tmp_path, {"news/1.tfrecord": b"first", "wiki/2.tfrecord": b"second"})
    shards.damage[str(tmp_path / "wiki" / "3.tfrecord")] = "damaged"
    identity = train_identity(shards)
    assert identity.keys() == {"1.tfrecord", "2.tfrecord", "3.tfrecord"} and identity["3.tfrecord"] is None
