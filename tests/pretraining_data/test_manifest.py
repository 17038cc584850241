"""The manifest knows the bytes of its shards, and tells data that training sees alike from other data."""

import copy
import hashlib
import pathlib

import pytest

from albert_tf.pretraining_data.manifest import manifest_identity


def test_manifest_holds_the_digest_of_every_shard(dynamic_shards):
    shards = {"train": dynamic_shards.train_paths, "held_out": dynamic_shards.held_out_paths}
    for split, paths in shards.items():
        digests = [hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() for path in paths]
        assert dynamic_shards.manifest["splits"][split]["sha256_per_shard"] == digests


def changed(manifest, *keys, value):
    """A copy of a manifest with another value at a place, or what a function makes of it; None removes it."""
    manifest = copy.deepcopy(manifest)
    place = manifest
    for key in keys[:-1]:
        place = place[key]
    if value is None:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value(place[keys[-1]]) if callable(value) else value
    return manifest


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("splits", "train", "sha256_per_shard", 1), "0"),
        (("splits", "train", "sha256_per_shard"), lambda digests: digests[::-1]),
        (("splits", "train", "examples_per_shard", 0), 0),
        (("splits", "held_out"), None),
        (("options", "masking_options", "ngram"), 7),
        (("tokenizer", "identity"), "0"),
        (("max_seq_length",), 7),
    ],
)
def test_identity_changes_with_what_training_sees(dynamic_shards, keys, value):
    other = changed(dynamic_shards.manifest, *keys, value=value)
    assert manifest_identity(other) != manifest_identity(dynamic_shards.manifest)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("splits", "train", "files"), ["elsewhere.tfrecord"] * 3),
        (("input_files",), ["other.txt"]),
        (("version",), "7"),
        (("documents",), 7),
    ],
)
def test_identity_does_not_depend_on_names_and_counts(dynamic_shards, keys, value):
    other = changed(dynamic_shards.manifest, *keys, value=value)
    assert manifest_identity(other) == manifest_identity(dynamic_shards.manifest)


def test_manifest_without_digests_is_known_by_its_numbers(dynamic_shards):
    old = changed(dynamic_shards.manifest, "splits", "train", "sha256_per_shard", value=None)
    fewer = changed(old, "splits", "train", "examples_per_shard", 0, value=0)
    assert len({manifest_identity(manifest) for manifest in ({}, old, fewer, dynamic_shards.manifest)}) == 4
