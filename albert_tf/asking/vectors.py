"""A vector of each text, made of the states of its pieces."""

import collections.abc

import numpy as np

from albert_tf.base.errors import InputError

POOLINGS = ("mean", "first", "last", "all")

# So many texts, of about one length, are computed at once.
_TEXTS_AT_ONCE = 32


def groups_of_one_length(lengths: collections.abc.Sequence[int]) -> collections.abc.Iterator[np.ndarray]:
    """Yields the rows of texts of about one length, int [T] each, given the length of each text."""
    order = np.argsort(lengths, kind="stable")
    for begin in range(0, len(order), _TEXTS_AT_ONCE):
        yield order[begin : begin + _TEXTS_AT_ONCE]


def check_pooling(pooling: str, is_causal: bool) -> None:
    """Raises InputError if there is no such pooling, or it reads what in a causal model sees nothing of the text."""
    if pooling not in POOLINGS:
        raise InputError(f"pooling must be one of {', '.join(POOLINGS)}. Received: {pooling!r}")
    if is_causal and pooling == "first":
        raise InputError(
            "`pooling=first` reads a piece that in a model of is_causal=true sees no text; use `pooling=last`"
        )


def pool(states: np.ndarray, mask: np.ndarray, pooling: str) -> np.ndarray:
    """Returns a vector of each row, [T, H], of states [T, S, H] and mask [T, S]; `Model.encode` says how."""
    lengths, rows = mask.sum(axis=1), np.arange(len(mask))
    if pooling == "first":
        return states[:, 0]
    if pooling == "all":
        return np.einsum("tsh,ts->th", states, mask.astype(np.float32)) / lengths[:, None]
    if pooling == "last":
        return states[rows, np.maximum(0, lengths - 2)]
    weights = mask.astype(np.float32)
    weights[:, 0] = lengths == 2  # of a text without pieces there is but [CLS]
    weights[rows, lengths - 1] = 0
    return np.einsum("tsh,ts->th", states, weights) / weights.sum(axis=1, keepdims=True)


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Returns vectors [N, H] with a length of 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)


def cosines(vectors: np.ndarray) -> np.ndarray:
    """Returns the cosine of each vector and the one behind it, float32 [N], of [2 N, H]."""
    pairs = vectors.reshape(-1, 2, vectors.shape[-1])
    products = np.einsum("nth,nuh->ntu", pairs, pairs)  # of a text with itself too, so that equals give 1
    lengths = np.sqrt(products[:, 0, 0] * products[:, 1, 1])
    return (products[:, 0, 1] / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
