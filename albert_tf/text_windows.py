"""Texts that are longer than a sequence, read in several windows; nothing here imports TensorFlow."""

import collections.abc

import numpy as np


def window_borders(num_pieces: int, room: int, stride: int) -> collections.abc.Iterator[tuple[int, int]]:
    """Yields where the windows of a text begin and end, in pieces; the last ends where the text does.

    One begins every `stride`, at most half of `room`, so that the pieces at its border stand well inside another.
    """
    stride, begin = min(stride, max(1, room // 2)), 0
    while True:
        yield begin, min(begin + room, num_pieces)
        if begin + room >= num_pieces:
            return
        begin += stride


def mean_over_windows(values: np.ndarray, text_indices: np.ndarray) -> np.ndarray:
    """Returns each text's mean of values [N, ...], float32 [T, ...]; `text_indices`, int [N], ascend without gaps."""
    begins = np.flatnonzero(np.diff(text_indices, prepend=-1))
    sums = np.add.reduceat(values.astype(np.float64), begins, axis=0)
    counts = np.diff(begins, append=len(values)).reshape([-1, *[1] * (values.ndim - 1)])
    return (sums / counts).astype(np.float32)


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Returns the probability of each of several labels, float32 of the shape of logits."""
    return (0.5 * (1 + np.tanh(0.5 * logits.astype(np.float64)))).astype(np.float32)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Returns the probabilities of labels, float32 of the shape of logits [..., labels]."""
    exponentials = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return (exponentials / exponentials.sum(axis=-1, keepdims=True)).astype(np.float32)
