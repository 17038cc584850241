"""Shards that are cut, changed or something else altogether: named, and left out of training on request."""

import pytest
import tensorflow as tf
from refusals import refuses


def without_sizes(manifest):
    """Makes a manifest that does not tell the sizes of shards."""
    for split in manifest["splits"].values():
        del split["bytes_per_shard"]


def change_byte(path, position):
    """Changes a byte; a negative position counts from the end."""
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("manifest.json", b"{", "manifest.json, line 1: not valid JSON"),
        ("manifest.json", b"[]", "manifest.json must hold one JSON object"),
        ("train-00001-of-00003.tfrecord", b"", "train-00001-of-00003.tfrecord contains no records"),
        ("train-00001-of-00003.tfrecord", b"text" * 20, "train-00001-of-00003.tfrecord is not a TFRecord file"),
        ("held_out.tfrecord", b"text" * 20, "held_out.tfrecord is not a TFRecord file"),
    ],
)
def test_damaged_file_is_named(find, folder, edit_manifest, name, content, message):
    edit_manifest(without_sizes)
    (folder / name).write_bytes(content)
    refuses(message, find, folder / "train*")


@pytest.mark.parametrize("on_damaged_shard", ["fail", "skip"])
def test_shard_of_another_size_is_damaged(find, folder, on_damaged_shard):
    path = folder / "train-00001-of-00003.tfrecord"
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    size = path.stat().st_size
    with tf.io.TFRecordWriter(str(path)) as writer:  # cut between two records, which no checksum tells
        for record in records[:-1]:
            writer.write(record)
    reason = f"{path.stat().st_size:,} bytes instead of {size:,}"
    if on_damaged_shard == "fail":
        refuses(f"damaged: {path} \\({reason}\\); .*--on_damaged_shard=skip", find, folder / "train*")
    else:
        assert find(folder / "train*", on_damaged_shard="skip").damage == {str(path): reason}


def test_shard_of_another_build_is_told_by_its_hash_where_all_are_read(find, folder):
    path = folder / "train-00001-of-00003.tfrecord"
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    with tf.io.TFRecordWriter(str(path)) as writer:  # of the same size, and every checksum right
        for record in reversed(records):
            writer.write(record)
    reason = "changed since it was made, by its SHA-256"
    assert find(folder / "train*", on_damaged_shard="skip").damage == {str(path): reason}


@pytest.mark.slow
@pytest.mark.parametrize("with_sizes", [True, False])
def test_damaged_shards_are_left_out_on_request(find, folder, edit_manifest, with_sizes):
    if not with_sizes:
        edit_manifest(without_sizes)
    paths = sorted(folder.glob("train*"))
    number = sum(1 for _ in tf.data.TFRecordDataset(str(paths[2])))
    change_byte(paths[2], -1)
    found = find(folder / "train*", on_damaged_shard="skip")
    assert found.damage == {str(paths[2]): f"record {number} can't be read"}
    assert found.train_paths == list(map(str, paths[:2]))
    assert found.examples_per_shard == found.manifest["splits"]["train"]["examples_per_shard"][:2]

    change_byte(paths[0], 30)
    change_byte(paths[1], 30)
    message = f"damaged: {paths[0]} .record 1 can't be read., {paths[1]} .* {paths[2]} "
    refuses(message, find, folder / "train*", on_damaged_shard="skip")


def test_bare_shards_are_read_through_on_request(find, bare_folder):
    (path,) = bare_folder.iterdir()
    change_byte(path, -1)
    lengths = {"max_seq_length": 32, "max_predictions_per_seq": 5}
    assert find(path, **lengths), "only the first record is read"
    refuses(f"damaged: {path} .record ", find, path, **lengths, on_damaged_shard="skip")


@pytest.mark.parametrize("on_damaged_shard", ["fail", "skip"])
def test_evaluation_leaves_no_shard_out(find, folder, on_damaged_shard):
    path = folder / "held_out.tfrecord"
    path.write_bytes(path.read_bytes()[:-3])
    refuses(f"damaged: {path} \\(", find, folder / "train*", on_damaged_shard=on_damaged_shard)
