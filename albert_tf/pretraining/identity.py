"""The identity of a pre-training run's data, so that it is resumed and measured with the same."""

import hashlib
import json
import os

from albert_tf.pretraining_data.manifest import MANIFEST_FILE, manifest_identity, read_manifest
from albert_tf.pretraining_data.shards import ShardSet
from albert_tf.training import RunSettings
from albert_tf.training.run_folder.identity import shard_identity


def data_settings(data: list[ShardSet], end_steps: list[int]) -> dict:
    """Returns the part of the data in a run's identity, which `TrainingRun.train` compares when it resumes."""
    return {
        "max_seq_length": data[0].train_options.max_seq_length,
        "phase2_start_step": end_steps[0] if len(data) > 1 else None,
        # Those left out as well, so that a run that comes upon a damaged shard can go on without it.
        "input_files": [
            sorted(os.path.basename(path) for path in [*shards.train_paths, *shards.damage]) for shards in data
        ],
        "data": [train_identity(shards) for shards in data],
    }


def train_identity(shards: ShardSet):
    """Returns the identity of training data: the hash of their manifest, or else the identity of each shard by name."""
    if shards.manifest:
        return manifest_identity(shards.manifest)
    paths = list(map(os.path.abspath, [*shards.train_paths, *shards.damage]))
    names = list(map(os.path.basename, paths))
    if len(set(names)) < len(names):  # then they lie in several folders
        names = [os.path.relpath(path, os.path.commonpath(paths)) for path in paths]
    return dict(zip(names, [*map(shard_identity, shards.train_paths), *(None for _ in shards.damage)]))


def held_out_identity(shards: ShardSet, settings: RunSettings) -> dict[str, str]:
    """Returns "name" and "sha256" of the held-out data; with fewer batches it is other data."""
    folders = {os.path.dirname(path) for path in shards.held_out_paths}
    digests = {folder: _held_out_digests(folder) for folder in folders}
    parts = []
    for path in shards.held_out_paths:
        folder, name = os.path.split(path)
        parts.append(digests[folder].get(name) or shard_identity(path))
    options = shards.held_out_options
    parts += [options.max_seq_length, options.max_predictions_per_seq]
    if settings.max_eval_steps is not None:
        parts.append(settings.max_eval_steps * settings.eval_batch_size)
    name = os.path.basename(shards.held_out_paths[0])
    return {"name": name, "sha256": hashlib.sha256(json.dumps(parts).encode()).hexdigest()}


def _held_out_digests(folder):
    split = read_manifest(os.path.join(folder, MANIFEST_FILE)).get("splits", {}).get("held_out", {})
    return dict(zip(split.get("files", []), split.get("sha256_per_shard", [])))
