"""What GPT-2 of transformers says otherwise than the families of BERT.

Its layers hold query, key and value as one matrix, whose columns are theirs one after the other; and its tokenizer is
byte-level BPE, which albert_tf doesn't have. GPT-2s with the WordPiece vocabulary of BERT, as Korean and Chinese ones
may have it, can be converted.
"""

import collections.abc
import functools
import os
import typing

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError, shorten
from albert_tf.interchange.portable_model import Weight
from albert_tf.tokenization.tokenizer import VOCABULARY_FILE

_FUSED, _PARTS = ".attn.c_attn", ("query", "key", "value")
_BPE_FILES = ("merges.txt", "vocab.json")


def split_fused(found: collections.abc.Mapping[str, Weight]) -> dict[str, Weight]:
    """Returns weights by name with each fused one as three, whose names go on with query, key and value."""
    split = {}
    for name, weight in found.items():
        layer, _, kind = name.rpartition(".")
        size, rest = divmod(weight.shape[-1] if weight.shape else 1, len(_PARTS))
        if not layer.endswith(_FUSED) or rest:
            split[name] = weight
            continue
        for number, part in enumerate(_PARTS):
            columns = functools.partial(_columns, weight, slice(number * size, (number + 1) * size))
            split[f"{layer}.{part}.{kind}"] = Weight((*weight.shape[:-1], size), columns)
    return split


def join_fused(weights: collections.abc.Mapping[str, Weight]) -> dict[str, Weight]:
    """Returns what `split_fused` made three of as one again."""
    joined = {}
    for name, weight in weights.items():
        layer, _, rest = name.partition(f"{_FUSED}.")
        part, _, kind = rest.partition(".")
        if not rest:
            joined[name] = weight
        elif part == _PARTS[0]:
            parts = [weights[f"{layer}{_FUSED}.{each}.{kind}"] for each in _PARTS]
            shape = (*weight.shape[:-1], len(parts) * weight.shape[-1])
            joined[f"{layer}{_FUSED}.{kind}"] = Weight(shape, functools.partial(_side_by_side, parts))
    return joined


def _columns(weight, columns):
    return weight.read()[..., columns]


def _side_by_side(parts):
    return np.concatenate([part.read() for part in parts], axis=-1)


def known_settings(values: dict[str, typing.Any], source: str) -> dict[str, typing.Any]:
    """Returns a config without what says nothing about the model itself, with the size of its feed-forward network."""
    rates = values.get("embd_pdrop", 0.1), values.get("resid_pdrop", 0.1)
    if rates[0] != rates[1]:
        raise InputError(
            f"{source}: embd_pdrop={shorten(rates[0])} and resid_pdrop={shorten(rates[1])} are one rate in models of "
            "albert_tf; make them equal"
        )
    values = {name: value for name, value in values.items() if not name.startswith("summary_")}
    if values.get("n_inner") is None and isinstance(values.get("n_embd", 768), int):
        values["n_inner"] = 4 * values.get("n_embd", 768)
    return values


def refuse_bpe(folder: str, family: str = "GPT2") -> None:
    """Raises InputError if a folder has a BPE tokenizer and no vocabulary of WordPieces."""
    is_gpt2 = family == "GPT2"
    exists = [name for name in (*_BPE_FILES, VOCABULARY_FILE) if tf.io.gfile.exists(os.path.join(folder, name))]
    if exists and VOCABULARY_FILE not in exists:
        kind, name = ("byte-level BPE", "a GPT-2") if is_gpt2 else ("BPE", f"an {family}")
        raise InputError(
            f"{os.path.join(folder, exists[0])} is of a {kind} tokenizer, which albert_tf doesn't have; only {name} "
            f"with WordPieces ({VOCABULARY_FILE}) can be converted"
        )
