"""The cards of exported models: what is said there is checked before it is used."""

import os
import typing

from albert_tf.asking.answers import ANSWERS, LENGTHS, Answer
from albert_tf.base.errors import InputError, shorten
from albert_tf.base.files import sha256_of
from albert_tf.base.settings import check_types
from albert_tf.base.startup import num_usable_cores
from albert_tf.base.texts import TRUNCATIONS
from albert_tf.config import AlbertConfig

# Outputs with filler: of entities, pieces and masks.
_WITH_FILLER = {"types", "pieces", "guesses"}

_LARGE_HIDDEN_SIZE = 512

# What is read of a model's card.
_CARD_TYPES = {
    "task": str,
    "answer": str,
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


CARD_FILE = "model_card.json"
# The tokenizer once more, as the `tokenizers` library reads it, beside models that read ids.
FAST_TOKENIZER_FILE = "fast_tokenizer.json"


def answer_of(card: dict[str, typing.Any]) -> Answer | None:
    """Returns how a model spells its predictions, given its card; None for a pre-trained one."""
    if "answer" not in card:
        return None
    return ANSWERS[card["answer"]](card["labels"], card.get("thresholds", ()))


def version_of(folder: str) -> int:
    """Returns the version that a folder is called after; 1 where it is called otherwise."""
    name = os.path.basename(os.path.normpath(folder))
    return int(name) if name.isdecimal() else 1


def check_card(card: typing.Any, source: str) -> dict[str, typing.Any]:
    """Returns a model card after checking the parts that are read."""
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
    kind = card.get("answer")
    needs_thresholds = kind in ANSWERS and ANSWERS[kind].needs_thresholds
    rules = {
        f'"answer" must be one of {", ".join(ANSWERS)}': kind is None or kind in ANSWERS,
        f'"max_seq_length" must be from {_SHORTEST} to {longest}': _SHORTEST <= card["max_seq_length"] <= longest,
        '"files" must name those of the export': bool(card["files"]),
        '"doc_stride" must be at least 1': card.get("doc_stride", 1) >= 1,
        '"labels" must differ from each other': len(set(labels)) == len(labels),
        '"input_fields" must be names that differ': 0 < len(fields) == len(set(fields)),
        '"thresholds" must be from 0 to 1': all(0 <= value <= 1 for value in thresholds),
        '"thresholds" must be as many as "labels"': len(thresholds) == needs_thresholds * len(labels),
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
