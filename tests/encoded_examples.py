"""Made-up examples of several lengths, as a task encodes them."""

import numpy as np

LENGTH = 24


def make_features(count, length=LENGTH):
    """Returns so many examples of 2 to `length` pieces; the first id of each is its number."""
    draws = np.random.default_rng(0)
    input_mask = (np.arange(length) < draws.integers(2, length + 1, [count, 1])).astype(np.int32)
    input_ids = draws.integers(1, 30, [count, length]).astype(np.int32) * input_mask
    input_ids[:, 0] = np.arange(count)
    return {
        "input_ids": input_ids,
        "input_mask": input_mask,
        "segment_ids": np.zeros_like(input_ids),
        "label_ids": draws.integers(0, 3, count).astype(np.int32),
    }
