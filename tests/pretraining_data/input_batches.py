"""What tests of the reader compare."""

import numpy as np


def assert_equal(batch, other):
    assert batch.keys() == other.keys()
    for name, values in batch.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def originals(batches):
    """The pieces of each example before masking, as tuples, and the positions of its masks."""
    for batch in batches:
        for ids, positions, labels in zip(batch["input_ids"], batch["masked_lm_positions"], batch["masked_lm_ids"]):
            used = positions > 0
            restored = ids.copy()
            restored[positions[used]] = labels[used]
            yield tuple(restored.tolist()), tuple(positions.tolist())


def assert_goes_on(batches, start_step, whole):
    """Checks that a reader that starts at a step gives the batches that one that came from before gave."""
    for batch, same in zip(batches, whole[start_step : start_step + len(batches)], strict=True):
        assert_equal(batch, same)
