"""What exported models have in common, whatever computes them: raw strings in, arrays or rows of JSON values out."""

import collections.abc
import os
import typing

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.cores import num_usable_cores
from albert_tf.errors import InputError, shorten
from albert_tf.files import sha256_of
from albert_tf.json_types import check_types
from albert_tf.pair_truncation import TRUNCATIONS

DEFAULT = "serving_default"

# The output, int [N], that says how many columns of each row are there where rows differ: all outputs with columns have
# the same ones, and what is behind is filler.
LENGTHS = "lengths"

# Outputs with filler: of entities, pieces and masks.
_WITH_FILLER = {"types", "pieces", "guesses"}

_LARGE_HIDDEN_SIZE = 512

# What is read of a model's card.
_CARD_TYPES = {
    "task": str,
    "labels": list[str],
    "thresholds": list[float],
    "signatures": dict[str, dict],
    "input_fields": list[str],
    "input_columns": list[str],
    "max_seq_length": int,
    "doc_stride": int,
    "encoder": {"pooling": str, "normalize": bool},
    "tokenizer": str,
    "config": dict[str, typing.Any],
    "metrics": dict[str, float | None],
    "files": dict[str, str],
    "special_tokens_in_text": bool,
    "truncation": str,
}
_REQUIRED = ("task", "labels", "signatures", "input_fields", "max_seq_length", "config", "files")
_SHORTEST = 3


class Export(typing.Protocol):
    """A model that `export_model.py` has written.

    Attributes:
        folder: Of the version.
        version: Its number.
        card: What model_card.json says of it.
    """

    folder: str
    version: int
    card: dict[str, typing.Any]

    @property
    def signatures(self) -> dict[str, dict[str, typing.Any]]:
        """The names of each signature's "inputs", and the "outputs" with dtype and shape."""

    def answer(
        self, signature: str, inputs: collections.abc.Mapping[str, collections.abc.Sequence[str | bytes]]
    ) -> dict[str, np.ndarray]:
        """Returns the outputs of a signature, arrays with one row for each text.

        Args:
            signature: One of `signatures`.
            inputs: N texts under the name of each input.
        """


def version_of(folder: str) -> int:
    """Returns the version that a folder is called after; 1 where it is called otherwise."""
    name = os.path.basename(os.path.normpath(folder))
    return int(name) if name.isdecimal() else 1


def check_card(card: typing.Any, source: str) -> dict[str, typing.Any]:
    """Returns what model_card.json says of a model, after checking what is read of it."""
    card = check_types(card, _CARD_TYPES, source, _REQUIRED)
    try:
        longest = AlbertConfig.from_dict(card["config"]).longest_sequence
    except InputError as error:
        raise InputError(f'{source}, "config": {error}') from error
    for name, signature in card["signatures"].items():
        place = f'{source}, signature "{shorten(name)}"'
        check_types(signature, {"inputs": list[str], "outputs": dict[str, list]}, place, ("inputs", "outputs"))
        if LENGTHS not in signature["outputs"] and _WITH_FILLER & signature["outputs"].keys():
            raise InputError(f'{place}: there is no output "{LENGTHS}" to tell filler by; export the model anew')
    labels, fields, thresholds = card["labels"], card["input_fields"], card.get("thresholds", [])
    rules = {
        f'"max_seq_length" must be from {_SHORTEST} to {longest}': _SHORTEST <= card["max_seq_length"] <= longest,
        '"files" must name those of the export': bool(card["files"]),
        '"doc_stride" must be at least 1': card.get("doc_stride", 1) >= 1,
        '"labels" must differ from each other': len(set(labels)) == len(labels),
        '"input_fields" must be names that differ': 0 < len(fields) == len(set(fields)),
        '"thresholds" must be from 0 to 1': all(0 <= value <= 1 for value in thresholds),
        '"thresholds" must be as many as "labels"': len(thresholds) == ("thresholds" in card) * len(labels),
        f'"truncation" must be one of {", ".join(TRUNCATIONS)}': card.get("truncation", TRUNCATIONS[0]) in TRUNCATIONS,
    }
    broken = next((rule for rule, holds in rules.items() if not holds), None)
    if broken is not None:
        raise InputError(f"{source}: {broken}; the file was changed, so export the model anew")
    return card


def hashes_of(folder: str) -> dict[str, str]:
    """Returns the SHA-256 of each file of a local folder, by its path there."""
    paths = sorted(os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)
    return {os.path.relpath(path, folder): sha256_of(path) for path in paths}


def check_files(card: dict[str, typing.Any], folder: str) -> None:
    """Raises InputError unless a folder holds the files that were exported with its card, whole and unchanged."""
    for name, digest in card["files"].items():
        path = os.path.join(folder, name)
        if sha256_of(path) != digest:
            raise InputError(f"{path} is damaged, or not the one that was exported with the model; export it anew")


def threads_per_batch(card: dict[str, typing.Any]) -> int:
    """Returns how many threads compute a batch best, given the model's card.

    Of a small model one: several wait for each other more than they compute, and are better used for several batches.
    """
    return 1 if card["config"]["hidden_size"] < _LARGE_HIDDEN_SIZE else num_usable_cores()


def batches_at_once(card: dict[str, typing.Any]) -> int:
    """Returns how many batches are best computed at the same time, given the model's card."""
    return max(1, num_usable_cores() // threads_per_batch(card))


def rows_of(outputs: dict[str, np.ndarray]) -> list[dict[str, typing.Any]]:
    """Returns what a model says of each text, JSON values by name.

    A text with fewer entities or pieces than others of its batch has filler behind them. It is left out, so that no
    answer depends on what else was computed with it; and so is `LENGTHS`, which tells where it begins.
    """
    outputs = dict(outputs)
    lengths = outputs.pop(LENGTHS, None)
    return [
        {
            name: _json_values(values[row][: lengths[row]] if lengths is not None and values.ndim > 1 else values[row])
            for name, values in outputs.items()
        }
        for row in range(len(next(iter(outputs.values()))))
    ]


def _json_values(value):
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [_json_values(each) for each in value]
    return value.tolist()
