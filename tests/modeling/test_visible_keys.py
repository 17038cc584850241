"""What queries see, by every way of computing attention, against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf
from numpy_reference import attention_and_gradients

from albert_tf.modeling.kernels.attention_check import attention_functions
from albert_tf.modeling.kernels.positions import HIDDEN_SCORE, visible_keys

BATCH_SIZE, LENGTH, HIDDEN_SIZE, HEAD_SIZE = 2, 24, 256, 64
# The second example is padded at the right.
LENGTHS = [24, 17]


def draw(num_rows):
    """Returns queries, keys, values and the gradient of the context in float64, and positions of the queries."""
    random = np.random.default_rng(0)
    positions = np.tile(np.arange(LENGTH), [BATCH_SIZE, 1])
    if num_rows is not None:
        positions = random.integers(0, LENGTH, [BATCH_SIZE, num_rows])
    query, upstream = random.normal(size=[2, *positions.shape, HIDDEN_SIZE])
    key, value = random.normal(size=[2, BATCH_SIZE, LENGTH, HIDDEN_SIZE])
    return query, key, value, upstream, positions


def attend(way):
    plain, flash = attention_functions(HEAD_SIZE, 0.0)
    attention = {"plain": plain, "fused": tf.function(plain), "flash": flash}[way]

    def without_bias(projections, visible, seed):
        return attention(projections, [tf.zeros(array.shape[-1:]) for array in projections], visible, seed)

    return without_bias


@pytest.mark.slow
@pytest.mark.parametrize("way", ["plain", "fused", "flash"])
@pytest.mark.parametrize("num_rows", [None, 5])
@pytest.mark.parametrize(("is_causal", "has_documents"), [(True, False), (False, True), (True, True)], ids=str)
def test_context_and_gradients_are_those_of_the_formula(way, num_rows, is_causal, has_documents):
    if way == "flash":
        pytest.importorskip("jax")
    query, key, value, upstream, positions = draw(num_rows)
    documents = np.random.default_rng(1).integers(-1, 2, [BATCH_SIZE, LENGTH])
    # One of a single piece, one that padding cuts, and one of padding alone, which sees nothing.
    documents[1, 12:] = [5, *[6] * 7, *[7] * 4]
    keys = np.arange(LENGTH)
    may_see = np.tile((keys < np.array(LENGTHS)[:, None])[:, None], [1, positions.shape[1], 1])
    bias = np.where(may_see[:, :1], 0.0, HIDDEN_SCORE)
    if is_causal:
        may_see &= keys <= positions[:, :, None]
    if has_documents:
        may_see &= np.take_along_axis(documents, positions, axis=1)[:, :, None] == documents[:, None]
    sees_nothing = ~may_see.any(axis=-1)
    assert num_rows or has_documents == sees_nothing.any()
    counted = np.where(sees_nothing[..., None], 0.0, upstream)
    expected = attention_and_gradients(query, key, value, counted, np.where(may_see, 0.0, HIDDEN_SCORE), HEAD_SIZE)

    visible = visible_keys(
        tf.constant(bias, tf.float32),
        tf.constant(documents) if has_documents else None,
        is_causal,
        None if num_rows is None else tf.constant(positions),
    )
    arrays = [query, np.concatenate([key, value], -1)] if num_rows else [np.concatenate([query, key, value], -1)]
    projections = [tf.constant(array, tf.float32) for array in arrays]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(projections)
        context = attend(way)(projections, visible, None)
    for of_nothing in (0.0, 1.0):
        given = tf.constant(np.where(sees_nothing[..., None], of_nothing * upstream, upstream), tf.float32)
        gradients = tape.gradient(context, projections, given)
        assert all(np.isfinite(gradient).all() for gradient in gradients)
        if not of_nothing:
            found = (
                np.split(np.concatenate([array.numpy() for array in gradients], -1), 3, -1)
                if not num_rows
                else [gradients[0].numpy(), *np.split(gradients[1].numpy(), 2, -1)]
            )
            for gradient, right in zip(found, expected[1:]):
                np.testing.assert_allclose(gradient, right, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(context[~sees_nothing], expected[0][~sees_nothing], rtol=1e-4, atol=1e-5)
    # Of a score of -10000, float32 keeps three digits after the point.
    np.testing.assert_allclose(context[sees_nothing], expected[0][sees_nothing], atol=0.01)
