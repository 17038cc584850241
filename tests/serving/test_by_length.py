"""Groups of texts of about one length give what the whole batch gives, in its order."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.serving.signatures.base import compute_by_length


def batch_of(lengths, padded_to):
    ids = np.arange(len(lengths) * padded_to, dtype=np.int32).reshape([len(lengths), padded_to])
    mask = (np.arange(padded_to) < np.array(lengths, int).reshape([-1, 1])).astype(np.int32)
    return {"input_ids": tf.constant(ids * mask), "input_mask": tf.constant(mask)}


def outputs_of(batch):
    """Returns a number for each text, two for each piece, and how long the group is."""
    ids = tf.cast(batch["input_ids"], tf.float32)
    sizes = tf.fill([tf.shape(ids)[0]], tf.shape(ids)[1])
    return {"sum": tf.reduce_sum(ids, axis=1), "of_pieces": tf.stack([ids, -ids], axis=2), "length": sizes}


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 40])
def test_outputs_are_those_of_the_whole_batch(count):
    lengths = np.random.default_rng(count).integers(1, 30, count)
    batch = batch_of(lengths, max(lengths, default=2))
    # An export is traced for any number of texts of any length.
    specs = {name: tf.TensorSpec([None, None], tf.int32, name) for name in batch}
    traced = tf.function(lambda batch: compute_by_length(outputs_of, batch), autograph=False, input_signature=[specs])
    found, expected = traced(batch), outputs_of(batch)
    for name in ("sum", "of_pieces"):
        np.testing.assert_array_equal(found[name], expected[name])
    assert traced.get_concrete_function().structured_outputs["of_pieces"].shape.as_list() == [None, None, 2]
    # No text shares a group with much longer ones: in order of length, each group is as long as its longest.
    group_lengths = np.sort(found["length"])
    longest = [max(np.sort(lengths)[begin : begin + 8]) for begin in range(0, count, 8)]
    assert group_lengths.tolist() == np.repeat(longest, 8)[:count].tolist()
