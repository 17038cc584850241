"""The manifest: what shards hold and how they were made."""

import collections.abc
import dataclasses
import hashlib
import json
import os

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.files import name_in_folder, read_json
from albert_tf.json_types import check_types
from albert_tf.pretraining_data.languages import LANGUAGES_FEATURE
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.pretraining_data.packing import DEFAULT_PACKING, Packing, find_packing, name_in_0_2
from albert_tf.pretraining_data.records import MENTIONS_FEATURE

MANIFEST_FILE = "manifest.json"
# Beside the shards while they are being built; without a manifest there too, they are not complete.
WORK_FOLDER = "create_pretraining_data.unfinished"

TRAIN, HELD_OUT = SPLITS = ("train", "held_out")

# What is read of it; an earlier version may lack anything.
_TYPES = {
    "version": str,
    "tokenizer": {"identity": str},
    "max_seq_length": int,
    "max_predictions_per_seq": int | None,
    "sha256_per_input_file": list[str],
    "options": {
        "masking_options": dict | None,
        "packing": str,
        "sentence_pair": str,
        "objective": str | None,
        "sources": list[str],
        "names_sha256": str,
        "num_names": int,
        "entity_markup": bool,
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
_WRITTEN_WHERE_SET = ("sources", "names_sha256", "num_names", "entity_markup")
# Those by which masking takes mentions of entities whole.
_OF_MENTIONS = ("names_sha256", "entity_markup")

# Said of all masking, because it once could be chosen: so data keep their identity.
_REPLACEMENT_UNIT, _PIECE = "replacement_unit", "piece"

# Of a split, what decides which examples are read.
_DECISIVE_OF_SPLIT = ("masking", "examples", "examples_per_shard", "bytes_per_shard", "sha256_per_shard")


def read_manifest(path: str) -> dict:
    """Returns what the builder wrote, empty if there is no manifest.

    Raises:
        InputError: The file can't be read.
    """
    if not tf.io.gfile.exists(path):
        return {}
    manifest = check_types(read_json(path, "the manifest"), _TYPES, path)
    for name in ("max_seq_length", "max_predictions_per_seq"):
        if (manifest.get(name) or 0) < 0:
            raise InputError(f'{path}: "{name}" must not be below 0. Received: {manifest[name]}')
    for name, split in manifest.get("splits", {}).items():
        check_types(split, _SPLIT_TYPES, f'{path}, split "{name}"')
    return manifest


def packing_of(manifest: dict, source: str) -> Packing:
    """Returns how the examples of shards were packed; where nothing says it, as the original does by default.

    Raises:
        InputError: The packing is unknown, or has other features than the manifest declares.
    """
    options = manifest.get("options", {})
    packing = find_packing(options.get("packing") or options.get("sentence_pair") or DEFAULT_PACKING, source)
    expected = features_of(packing, options.get("sources", ()))
    if any(mention_options(manifest)):
        expected[MENTIONS_FEATURE] = None
    declared = manifest.get("features", expected)
    if declared != expected:
        raise InputError(
            f"{source}, of version {manifest.get('version')}, declares the features {declared} for the packing "
            f"{packing.name}, which has {expected} in this version of albert_tf; use that version"
        )
    return packing


def features_of(packing: Packing, sources: collections.abc.Sequence[str]) -> dict[str, int | None]:
    """Returns what training reads of records: those of the packing, and languages where they are told."""
    return {**packing.features, **({LANGUAGES_FEATURE: 2} if sources else {})}


def mention_options(manifest: dict) -> tuple:
    """Returns by what masking was told which mentions of entities to take whole; all of it false where by nothing."""
    options = manifest.get("options", {})
    return tuple(options.get(name) for name in _OF_MENTIONS)


def masking_options(manifest: dict, source: str) -> MaskingOptions | None:
    """Returns how the builder was told to mask, None if the manifest doesn't say.

    Raises:
        InputError: An option is unknown, or pieces were replaced by span.
    """
    options = dict(manifest.get("options", {}).get("masking_options") or {})
    unit = options.pop(_REPLACEMENT_UNIT, _PIECE)
    if unit != _PIECE:
        raise InputError(
            f"{source} says {_REPLACEMENT_UNIT}={unit}, and this version of albert_tf draws for each masked piece "
            "alone what replaces it; make the shards anew"
        )
    try:
        return MaskingOptions(**options) if options else None
    except TypeError as error:
        raise InputError(
            f"{source}, of version {manifest.get('version')}, has masking_options that this version of albert_tf "
            "doesn't know; use that version"
        ) from error


def written_masking_options(options: MaskingOptions) -> dict:
    """Returns how the builder masks, as the manifest holds it."""
    return {**dataclasses.asdict(options), _REPLACEMENT_UNIT: _PIECE}


def manifest_identity(manifest: dict) -> str:
    """Returns a hash of what training sees of the data: two manifests with equal identity stand for the same examples.

    Names of files and what was only counted in the corpus don't matter. A manifest that holds no digests of the shards,
    made before there were any, is known by options, numbers and sizes.
    """
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
    """Returns what decides of the options of a build which examples it makes, as version 0.2 wrote them.

    So the same examples keep their identity.
    """
    if not options or "packing" not in options:
        return options
    others = {name: value for name, value in written_options(options).items() if name not in ("packing", "objective")}
    if "sources" in others:
        others["sources"] = list(others["sources"])
    return {**others, "sentence_pair": name_in_0_2(options["packing"])}


def listed_shards(manifest: dict, folder: str, split: str) -> list[str]:
    """Returns the paths of the shards of a split, none if the manifest doesn't know it.

    Raises:
        InputError: The manifest names something that is no file in its folder.
    """
    source = os.path.join(folder, MANIFEST_FILE)
    names = manifest.get("splits", {}).get(split, {}).get("files", [])
    return [name_in_folder(folder, name, source) for name in names]


def is_of_first_version(manifest: dict) -> bool:
    """Whether shards were made before version 0.2, whose pairs tell their labels by the lengths of the segments."""
    return manifest.get("version", "").startswith("0.1.")
