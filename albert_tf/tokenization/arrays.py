"""Operations that take NumPy's arrays and tensors alike, so that a pass over texts is written once.

With tensors it is part of a graph; with arrays it needs neither tracing nor tables of all characters.
"""

import typing

import numpy as np
import tensorflow as tf

Array = typing.Any  # np.ndarray or tf.Tensor


def cast(values: Array, dtype: type = np.int32) -> Array:
    return tf.cast(values, dtype) if tf.is_tensor(values) else values.astype(dtype)


def gather(values: Array, places: Array) -> Array:
    return tf.gather(values, places) if tf.is_tensor(places) else np.asarray(values)[places]


def masked(values: Array, mask: Array) -> Array:
    return tf.boolean_mask(values, mask) if tf.is_tensor(mask) else values[mask]


def where(condition: Array, if_true: Array, if_false: Array) -> Array:
    return (tf.where if tf.is_tensor(condition) else np.where)(condition, if_true, if_false)


def concat(parts: list[Array]) -> Array:
    return tf.concat(parts, axis=0) if any(map(tf.is_tensor, parts)) else np.concatenate(parts)


def cumsum(values: Array) -> Array:
    return (tf.cumsum if tf.is_tensor(values) else np.cumsum)(values)


def indices(values: Array) -> Array:
    """Returns 0, 1, 2, ... for as many values [M], int32 [M]."""
    return tf.range(tf.size(values)) if tf.is_tensor(values) else np.arange(len(values), dtype=np.int32)


def searchsorted(ascending: Array, values: Array, side: str = "left") -> Array:
    return (tf.searchsorted if tf.is_tensor(values) else np.searchsorted)(ascending, values, side=side)


def stable_order(values: Array) -> Array:
    return tf.argsort(values, stable=True) if tf.is_tensor(values) else np.argsort(values, kind="stable")


def segment_max(values: Array, segments: Array) -> Array:
    """Returns the largest of the values, from 0 on, of each segment; segments ascend."""
    if tf.is_tensor(values):
        return tf.math.segment_max(values, segments)
    largest = np.zeros(segments[-1] + 1 if len(segments) else 0, values.dtype)
    np.maximum.at(largest, segments, values)
    return largest


def expanded(counts: Array) -> tuple[Array, Array]:
    """Returns for so many parts of each its number among them, and whose part it is, int32 [sum of counts] both."""
    if tf.is_tensor(counts):
        parts = tf.ragged.range(counts)
        return parts.values, tf.cast(parts.value_rowids(), tf.int32)
    sources = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    return np.arange(len(sources)) - np.repeat(np.cumsum(counts) - counts, counts), sources
