"""Pieces are drawn as often as they are probable."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.modeling.kernels import piece_sampling
from albert_tf.modeling.kernels.piece_sampling import sample_pieces

scipy_stats = pytest.importorskip("scipy.stats")


def draw(logits, count, dtype="float32"):
    """Draws pieces from logits [V], which the one unit of every state, of this dtype, multiplies."""
    table = tf.constant(logits, tf.float32)[:, None]
    draws = tf.random.stateless_uniform([count], [1, 2])
    return sample_pieces(tf.ones([count, 1], dtype), table, tf.zeros([len(logits)]), draws).numpy()


def p_value(pieces, probabilities):
    """Returns how likely so uneven counts are if pieces have these probabilities; rare ones are counted together."""
    is_rare = probabilities * len(pieces) < 5
    counts = np.bincount(pieces, minlength=len(probabilities))
    observed, expected = (
        np.append(values[~is_rare], values[is_rare].sum()) for values in (counts, probabilities * len(pieces))
    )
    return scipy_stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("vocab_size", [5, 256, 700])
def test_frequencies_are_the_probabilities(vocab_size, dtype):
    logits = np.random.default_rng(vocab_size).normal(scale=2.0, size=vocab_size)
    logits = tf.cast(tf.cast(logits, dtype), tf.float64).numpy()  # what a model that computes in it predicts
    probabilities = np.exp(logits) / np.exp(logits).sum()
    pieces = draw(logits, 100_000, dtype)
    assert p_value(pieces, probabilities) > 1e-3
    warmer = np.exp(logits / 1.05) / np.exp(logits / 1.05).sum()
    assert p_value(pieces, warmer) < 1e-3


def test_draws_decide_by_the_running_sum():
    table, bias = tf.constant(np.log([[0.25], [0.5], [0.25]]), tf.float32), tf.zeros([3])
    draws = tf.constant([0.0, 0.24, 0.26, 0.74, 0.76, 1.0 - 2.0**-24])
    assert sample_pieces(tf.ones([6, 1]), table, bias, draws).numpy().tolist() == [0, 0, 1, 1, 2, 2]


def test_impossible_pieces_are_never_drawn():
    logits = np.full(600, -1e4)
    logits[[300, 599]] = 0.0
    assert set(draw(logits, 10_000)) == {300, 599}


def test_chunks_change_nothing(monkeypatch):
    random = np.random.default_rng(3)
    states, table, bias = (random.normal(size=size).astype(np.float32) for size in ([23, 8], [700, 8], [700]))
    inputs = [tf.constant(values) for values in (states, table, bias, random.random(23, np.float32))]
    expected = sample_pieces(*inputs)
    monkeypatch.setattr(piece_sampling, "_ROWS_IN_A_CHUNK", 5)
    np.testing.assert_array_equal(tf.function(lambda: sample_pieces(*inputs))(), expected)


def test_no_gradient_passes():
    states = tf.Variable(tf.ones([2, 3]))
    with tf.GradientTape() as tape:
        pieces = sample_pieces(states, tf.random.normal([9, 3]), tf.zeros([9]), tf.constant([0.3, 0.9]))
        total = tf.reduce_sum(tf.cast(pieces, tf.float32))
    assert tape.gradient(total, states) is None
