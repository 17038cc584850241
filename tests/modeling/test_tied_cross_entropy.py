"""The loss in chunks against the plain one, in value and gradient."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.modeling.kernels import tied_cross_entropy as module
from albert_tf.modeling.kernels.tied_cross_entropy import tied_cross_entropy

ROWS, SIZE, VOCABULARY = 10, 6, 9


@pytest.fixture
def inputs():
    """States, table, bias, labels and weights, of which three are 0."""
    draws = np.random.default_rng(0)
    states, table, bias = (draws.normal(size=shape) for shape in ([ROWS, SIZE], [VOCABULARY, SIZE], [VOCABULARY]))
    labels = draws.integers(0, VOCABULARY, ROWS)
    labels[:4] = (states @ table.T + bias)[:4].argmax(axis=1)  # so that some guesses are right
    weights = np.array([1, 0, 1, 1, 1, 0, 0.5, 1, 0, 1])
    return states, table, bias, labels, weights


def reference(states, table, bias, labels, weights):
    """Returns loss, right guesses and the gradients of the loss, in float64."""
    logits = states @ table.T + bias
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    loss = -(weights * np.log(probs[np.arange(ROWS), labels])).sum()
    logit_gradient = (probs - np.eye(VOCABULARY)[labels]) * weights[:, None]
    gradients = logit_gradient @ table, logit_gradient.T @ states, logit_gradient.sum(axis=0)
    return loss, (weights * (logits.argmax(axis=1) == labels)).sum(), gradients


def computed(inputs, dtype="float32"):
    """Returns loss, right guesses and the gradients of the loss, of states of a dtype."""
    states = tf.cast(inputs[0], dtype)
    table, bias, weights = (tf.cast(inputs[index], tf.float32) for index in (1, 2, 4))
    with tf.GradientTape() as tape:
        tape.watch([states, table, bias])
        loss, right = tied_cross_entropy(states, table, bias, tf.cast(inputs[3], tf.int32), weights)
        scaled = 3.0 * loss
    return loss, right, tape.gradient(scaled, [states, table, bias])


@pytest.mark.slow
@pytest.mark.parametrize("rows_in_a_chunk", [100, ROWS, 5, 4, 1])
def test_loss_and_gradients_are_those_of_all_logits(inputs, monkeypatch, rows_in_a_chunk):
    monkeypatch.setattr(module, "_ROWS_IN_A_CHUNK", rows_in_a_chunk)
    loss, right, gradients = tf.function(computed)(inputs)
    expected_loss, expected_right, expected_gradients = reference(*inputs)
    assert float(loss) == pytest.approx(expected_loss, rel=1e-6)
    assert float(right) == expected_right > 0
    for values, expected in zip(gradients, expected_gradients):
        np.testing.assert_allclose(values, 3 * expected, rtol=1e-5, atol=1e-6)


def test_products_are_computed_in_the_dtype_of_the_states(inputs):
    loss, _, gradients = computed(inputs, "bfloat16")
    assert loss.dtype == tf.float32
    assert [gradient.dtype for gradient in gradients] == [tf.bfloat16, tf.float32, tf.float32]
    assert float(loss) == pytest.approx(reference(*inputs)[0], rel=0.02)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_fused_passes_compute_what_separate_operations_do(inputs, dtype):
    separate, fused = computed(inputs, dtype), tf.function(computed)(inputs, dtype)
    assert float(fused[1]) == float(separate[1]) > 0
    for values, expected in zip(tf.nest.flatten(fused), tf.nest.flatten(separate)):
        values, expected = tf.cast(values, tf.float32), tf.cast(expected, tf.float32)
        np.testing.assert_allclose(values, expected, rtol=1e-5 if dtype == "float32" else 1e-2, atol=1e-6)
