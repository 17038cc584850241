"""What exported models have in common, whatever computes them: raw strings in, arrays or rows of JSON values out."""

import collections.abc
import os
import typing

import numpy as np

from albert_tf.errors import InputError
from albert_tf.json_types import check_types

DEFAULT = "serving_default"

_LARGE_HIDDEN_SIZE = 512

# What is read of a model's card.
_CARD_TYPES = {
    "task": str,
    "labels": list[str],
    "signatures": dict[str, dict],
    "input_fields": list[str],
    "input_columns": list[str],
    "max_seq_length": int,
    "tokenizer": str,
    "config": {"hidden_size": int},
    "fast_tokenizer_sha256": str,
}
_REQUIRED = ("task", "labels", "signatures", "input_fields", "max_seq_length", "config")
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
    """Returns what model_card.json says of a model, after checking what is read of it.

    Args:
        card: The JSON value.
        source: The file; named in errors.

    Raises:
        InputError: It was not written by `export_model.py`, or was changed.
    """
    card = check_types(card, _CARD_TYPES, source, _REQUIRED)
    check_types(card["config"], {}, source, ("hidden_size",))
    for name, signature in card["signatures"].items():
        place = f'{source}, signature "{name}"'
        check_types(signature, {"inputs": list[str], "outputs": dict[str, list]}, place, ("inputs", "outputs"))
    if card["max_seq_length"] < _SHORTEST:
        raise InputError(f'{source}: "max_seq_length" must be at least {_SHORTEST}. Received: {card["max_seq_length"]}')
    return card


def threads_per_batch(card: dict[str, typing.Any]) -> int:
    """Returns how many threads compute a batch best, given the model's card.

    Of a small model one: several wait for each other more than they compute, and are better used for several batches.
    """
    return 1 if card["config"]["hidden_size"] < _LARGE_HIDDEN_SIZE else os.cpu_count()


def rows_of(outputs: dict[str, np.ndarray]) -> list[dict[str, typing.Any]]:
    """Returns what a model says of each text, JSON values by name.

    A text with fewer entities or pieces than others of its batch has filler there, "" among the strings; it is left
    out, so that no answer depends on what else was computed with it.
    """
    strings = {name: values for name, values in outputs.items() if values.dtype == object and values.ndim > 1}
    is_there = [(values != b"").any(axis=tuple(range(2, values.ndim))) for values in strings.values()]
    sizes = [_last(np.any(places, axis=0)) for places in zip(*is_there)]
    # What has as many columns as the strings have filler in the same places.
    width = next((values.shape[1] for values in strings.values()), None)
    rows = []
    for number in range(len(next(iter(outputs.values())))):
        row = {}
        for name, values in outputs.items():
            has_filler = width is not None and values.ndim > 1 and values.shape[1] == width
            row[name] = _json_values(values[number][: sizes[number]] if has_filler else values[number])
        rows.append(row)
    return rows


def _last(are_there):
    """Returns the number of places up to the last one that is there."""
    return int(np.max(np.flatnonzero(are_there), initial=-1)) + 1


def _json_values(value):
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [_json_values(each) for each in value]
    return value.tolist()
