"""Moves finished shards into place and deletes those of an earlier build."""

import collections
import os

import tensorflow as tf

from albert_tf.corpus.reader import CorpusReader
from albert_tf.files import sha256_of, write_json
from albert_tf.pretraining_data.build.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.build.manifest_writer import make_manifest
from albert_tf.pretraining_data.build.work_folder import WorkFolder
from albert_tf.pretraining_data.manifest import MANIFEST_FILE, TRAIN, listed_shards, read_manifest
from albert_tf.tokenization import Tokenizer


def find_old_shards(folder: str, manifest_path: str | None = None) -> dict[str, tuple[int | None, str | None]]:
    """Returns the shards that the manifest of an earlier build lists, and the size and SHA-256 that it says of each.

    They are None where the manifest, of an early version, doesn't say so. The manifest may lie elsewhere.

    Raises:
        InputError: The manifest can't be read, or names something that is no file in the folder.
    """
    manifest_path = manifest_path or os.path.join(folder, MANIFEST_FILE)
    manifest = read_manifest(manifest_path)
    shards = {}
    for split, description in manifest.get("splits", {}).items():
        paths = listed_shards(manifest, folder, split)
        unknown = [None] * len(paths)
        told = zip(description.get("bytes_per_shard", unknown), description.get("sha256_per_shard", unknown))
        shards.update(zip(paths, told))
    return shards


def publish(
    reader: CorpusReader,
    tokenizer: Tokenizer,
    options: BuilderOptions,
    shards: dict[str, list[str]],
    work: WorkFolder,
    counts: collections.Counter,
    shard_counts: dict[str, list[dict]],
) -> dict:
    """Moves the shards to their places, deletes those of an earlier build, and returns the manifest.

    Old and new shards lie side by side for a moment: no manifest vouches for such a mixture. Arguments as for
    `make_manifest`; `work`, where the shards wait, is removed.
    """
    folder = os.path.dirname(shards[TRAIN][0])
    manifest_path, old_manifest_path = (os.path.join(place, MANIFEST_FILE) for place in (folder, work.path))
    if tf.io.gfile.exists(manifest_path):
        tf.io.gfile.rename(manifest_path, old_manifest_path, overwrite=True)
    old_shards = find_old_shards(folder, old_manifest_path)
    for split, paths in shards.items():
        for shard, path in enumerate(paths):
            if tf.io.gfile.exists(work.shard_path(split, shard)):  # a killed build may have moved it
                tf.io.gfile.rename(work.shard_path(split, shard), path, overwrite=True)
    for path in old_shards.keys() - {path for paths in shards.values() for path in paths}:
        size, digest = old_shards[path]
        # A file of other bytes is no longer the shard that the manifest lists.
        if tf.io.gfile.exists(path) and tf.io.gfile.stat(path).length == size and digest in (None, sha256_of(path)):
            tf.io.gfile.remove(path)
    tokenizer.save(folder)
    manifest = make_manifest(reader, tokenizer, options, work, counts, shards, shard_counts)
    write_json(manifest_path, manifest)
    work.remove()
    return manifest
