"""The manifest: what shards hold and how they were made."""

import collections.abc
import dataclasses
import hashlib
import json
import os

import tensorflow as tf

from albert_tf.base.errors import InputError, shorten
from albert_tf.base.files import name_in_folder, read_json
from albert_tf.base.settings import check_types
from albert_tf.pretraining_data import DEFAULT_PACKING, PACKINGS, find_packing
from albert_tf.pretraining_data.languages import LANGUAGES_FEATURE
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.pretraining_data.packing import Packing
from albert_tf.pretraining_data.records import MENTIONS_FEATURE

MANIFEST_FILE = "manifest.json"
# Beside the shards while they are being built; without a manifest there too, they are not complete.
WORK_FOLDER = "create_pretraining_data.unfinished"

TRAIN, HELD_OUT = SPLITS = ("train", "held_out")

# What is read of it; where there is no manifest, all of it is missing.
_TYPES = {
    "version": str,
    "tokenizer": {"identity": str},
    "max_seq_length": int,
    "max_predictions_per_seq": int | None,
    "sha256_per_input_file": list[str],
    "options": {
        "masking_options": dict | None,
        "packing": str,
        "objective": str | None,
        "sources": list[str],
        "names_sha256": str,
        "num_names": int,
    },
    "features": dict[str, int | None],
    "splits": dict[str, dict],
}
_SPLIT_TYPES = {
    "files": list[str],
    "examples": int,
    "examples_per_shard": list[int],
    "bytes_per_shard": list[int],
    "sha256_per_shard": list[str],
    "tokens_per_source": dict[str, int],
}

# Options of a build that are not written where they say nothing.
_WRITTEN_WHERE_SET = ("sources", "names_sha256", "num_names")

# Said of all masking, because it once could be chosen: so data keep their identity.
_REPLACEMENT_UNIT, _PIECE = "replacement_unit", "piece"

# Of a split, what decides which examples are read.
_DECISIVE_OF_SPLIT = ("masking", "examples", "examples_per_shard", "bytes_per_shard", "sha256_per_shard")


def read_manifest(path: str) -> dict:
    """Returns the manifest, empty if there is none."""
    if not tf.io.gfile.exists(path):
        return {}
    manifest = check_types(read_json(path, "the manifest"), _TYPES, path)
    for name in ("max_seq_length", "max_predictions_per_seq"):
        if (manifest.get(name) or 0) < 0:
            raise InputError(f'{path}: "{name}" must not be below 0. Received: {manifest[name]}')
    for name, split in manifest.get("splits", {}).items():
        check_types(split, _SPLIT_TYPES, f'{path}, split "{shorten(name)}"')
    return manifest


def packing_of(manifest: dict, source: str) -> Packing:
    """Returns how the examples of shards were packed; without a manifest, as the original does by default.

    Raises InputError if the manifest doesn't say it, the packing is unknown, or its features aren't those declared.
    """
    options = manifest.get("options", {})
    if "version" in manifest and "packing" not in options:
        raise InputError(
            f"{source}, of version {manifest['version']}, doesn't say how its examples are packed, which this "
            "version of albert_tf needs; make the shards again with create_pretraining_data.py"
        )
    packing = find_packing(options.get("packing", DEFAULT_PACKING), source)
    expected = features_of(packing, options.get("sources", ()))
    declared = manifest.get("features", expected)
    if MENTIONS_FEATURE in declared:
        expected[MENTIONS_FEATURE] = None
    if declared != expected:
        raise InputError(
            f"{source}, of version {manifest.get('version')}, declares the features {shorten(declared)} for the "
            f"packing {packing.name}, which has {expected} in this version of albert_tf; use that version"
        )
    return packing


def features_of(packing: Packing, sources: collections.abc.Sequence[str]) -> dict[str, int | None]:
    """Returns the features of records that training reads: those of the packing, and languages where they are told."""
    return {**packing.features, **({LANGUAGES_FEATURE: 2} if sources else {})}


def mention_options(manifest: dict) -> tuple[str | None, bool]:
    """Returns the hash of the names that masking takes whole, and whether records mark mentions, of whatever origin."""
    return manifest.get("options", {}).get("names_sha256"), MENTIONS_FEATURE in manifest.get("features", {})


def masking_options(manifest: dict, source: str) -> MaskingOptions | None:
    """Returns how the builder was told to mask, None if unknown; raises InputError for options of other versions."""
    options = dict(manifest.get("options", {}).get("masking_options") or {})
    unit = options.pop(_REPLACEMENT_UNIT, _PIECE)
    if unit != _PIECE:
        raise InputError(
            f"{source} says {_REPLACEMENT_UNIT}={shorten(unit)}, but each piece is replaced alone; make the shards anew"
        )
    try:
        return MaskingOptions(options.pop("max_predictions_per_seq"), **options, tokens=None) if options else None
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{source}, of version {manifest.get('version')}, has masking_options that this version of albert_tf "
            "doesn't know; use that version"
        ) from error


def written_masking_options(options: MaskingOptions) -> dict:
    """Returns the masking options as the manifest holds them: without the tokens, which lie beside it."""
    written = {**dataclasses.asdict(options), _REPLACEMENT_UNIT: _PIECE}
    del written["tokens"]
    return written


def manifest_identity(manifest: dict) -> str:
    """Returns a hash of all that training sees of the data, without names of files and mere counts of the corpus."""
    splits = manifest.get("splits", {})
    decisive = {
        "tokenizer": manifest.get("tokenizer", {}).get("identity"),
        **{name: manifest.get(name) for name in ("max_seq_length", "max_predictions_per_seq")},
        "options": decisive_options(manifest.get("options")),
        "splits": {name: {key: split.get(key) for key in _DECISIVE_OF_SPLIT} for name, split in splits.items()},
    }
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def written_options(options: dict) -> dict:
    """Returns the options of a build as the manifest holds them, without those of later versions that say nothing."""
    return {name: value for name, value in options.items() if value or name not in _WRITTEN_WHERE_SET}


def decisive_options(options: dict | None) -> dict | None:
    """Returns the options of a build that decide which examples it makes, by the names that identities hash."""
    if not options:
        return options
    others = {name: value for name, value in written_options(options).items() if name not in ("packing", "objective")}
    if "sources" in others:
        others["sources"] = list(others["sources"])
    name = options.get("packing")
    own = PACKINGS[name].name_in_identity if name in PACKINGS else None
    return {**others, "sentence_pair": own or name}


def listed_shards(manifest: dict, folder: str, split: str) -> list[str]:
    """Returns the paths of the shards of a split, none if the manifest doesn't know it."""
    source = os.path.join(folder, MANIFEST_FILE)
    names = manifest.get("splits", {}).get(split, {}).get("files", [])
    return [name_in_folder(folder, name, source) for name in names]


def find_old_shards(folder: str, manifest_path: str | None = None) -> dict[str, tuple[int | None, str | None]]:
    """Returns the shards that the manifest of an earlier build lists, with size and SHA-256, None where not told."""
    manifest_path = manifest_path or os.path.join(folder, MANIFEST_FILE)
    manifest = read_manifest(manifest_path)
    shards = {}
    for split, description in manifest.get("splits", {}).items():
        paths = listed_shards(manifest, folder, split)
        unknown = [None] * len(paths)
        told = zip(description.get("bytes_per_shard", unknown), description.get("sha256_per_shard", unknown))
        shards.update(zip(paths, told))
    return shards
