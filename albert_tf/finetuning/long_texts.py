"""Encoding texts that are longer than a sequence in several windows."""

import itertools

import numpy as np
import tensorflow as tf

from albert_tf.finetuning.task import Features
from albert_tf.rows.bad_rows import counted
from albert_tf.text_windows import window_borders
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.model_inputs import pack_segments

NUM_SPECIAL = 2  # [CLS] and [SEP]

# Of features: the text that each window is of, int32 [N], ascending; and what a window counts in the loss, so that all
# windows of a text together count as one, float32 [N].
TEXT_INDICES, WINDOW_WEIGHTS = "text_indices", "window_weights"


def encode_in_windows(tokenizer: Tokenizer, texts: list[str], max_seq_length: int, stride: int) -> Features:
    """Encodes texts as windows, `[CLS] part [SEP]`, those of one text one after the other, at least one of each.

    Args:
        tokenizer: Its vocabulary must hold the special tokens.
        texts: The texts.
        max_seq_length: Length S.
        stride: As for `window_borders`.

    Returns:
        Arrays of N windows: int32 [N, S] `input_ids`, `input_mask`, `segment_ids`; `TEXT_INDICES`; `WINDOW_WEIGHTS`.
    """
    ids = tokenizer.encode_ids(texts)
    pieces, starts = ids.values.numpy(), ids.row_splits.numpy()
    parts, indices, weights = [], [], []
    for index, (start, end) in enumerate(itertools.pairwise(starts)):
        borders = list(window_borders(int(end - start), max_seq_length - NUM_SPECIAL, stride))
        parts += [pieces[start + first : start + last] for first, last in borders]
        indices += [index] * len(borders)
        weights += [1 / len(borders)] * len(borders)
    windows = tf.RaggedTensor.from_row_lengths(np.concatenate(parts), [len(part) for part in parts])
    features = pack_segments([windows], tokenizer.vocabulary, max_seq_length)
    return {
        **{name: values.numpy() for name, values in features.items()},
        TEXT_INDICES: np.array(indices, np.int32),
        WINDOW_WEIGHTS: np.array(weights, np.float32),
    }


def describe_windows(text_indices: np.ndarray, where: str) -> str | None:
    """Returns how many texts are read in more than one window, None if none is; `where` as in "in train.tsv"."""
    counts = np.bincount(text_indices)
    if counts.max() == 1:
        return None
    count = int((counts > 1).sum())
    texts = f"{counted(count, 'text')}{where and f' {where}'} {'are' if count > 1 else 'is'}"
    return f"{texts} read in windows, up to {counts.max():,} of one"
