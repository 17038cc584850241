"""Batches to mask, and what was chosen in them, for the tests of masking."""

import dataclasses
import itertools

import numpy as np
import tensorflow as tf

from albert_tf.pretraining_data.masking import MaskingTokens, mask_batch

PAD_ID, UNK_ID, CLS_ID, SEP_ID, MASK_ID = range(5)
VOCAB_SIZE = 50
REAL_IDS = np.arange(10, VOCAB_SIZE, dtype=np.int32)  # 5 to 9 play the part of [unused] slots
TOKENS = MaskingTokens(MASK_ID, (CLS_ID, SEP_ID), REAL_IDS)


def make_batch(rows, length=48, seed=0, times=1):
    """Features of rows of random pieces, each row repeated `times` times.

    A row is a list of stretches, each followed by [SEP], and a stretch a list of the sizes of its words. Two stretches
    are two segments; otherwise everything is segment 0, as in records of full sentences.
    """
    random = np.random.default_rng(seed)
    names = ("input_ids", "input_mask", "segment_ids", "token_boundary")
    features = {name: np.zeros([len(rows), length], np.int32) for name in names}
    for row, stretches in enumerate(rows):
        ids, starts = [CLS_ID], [1]
        for sizes in stretches:
            ids += [*random.choice([UNK_ID, *REAL_IDS], sum(sizes)), SEP_ID]
            starts += [*itertools.chain.from_iterable([1] + [0] * (size - 1) for size in sizes), 1]
        features["input_ids"][row, : len(ids)] = ids
        features["input_mask"][row, : len(ids)] = 1
        if len(stretches) == 2:
            features["segment_ids"][row, sum(stretches[0]) + 2 : len(ids)] = 1
        features["token_boundary"][row, : len(ids)] = starts
    return {name: np.repeat(values, times, axis=0) for name, values in features.items()}


def mask(features, options, seed=(1, 2), tokens=TOKENS):
    features = {name: tf.constant(values) for name, values in features.items()}
    masked = mask_batch(features, dataclasses.replace(options, tokens=tokens), tf.constant(seed))
    return {name: values.numpy() for name, values in masked.items()}


def chosen_positions(masked):
    """The chosen pieces as bool [B, S], from the positions that have weight 1."""
    chosen = np.zeros(masked["input_ids"].shape, bool)
    rows, columns = np.nonzero(masked["masked_lm_weights"])
    chosen[rows, masked["masked_lm_positions"][rows, columns]] = True
    return chosen
