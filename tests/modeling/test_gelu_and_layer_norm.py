"""Value and gradient of what is differentiated by hand, against NumPy in float64."""

import math

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.modeling.gelu import gelu
from albert_tf.modeling.layers import LayerNorm, named_variables


def value_and_gradients(function, inputs, upstream, variables=()):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = function(inputs)
    return outputs, *tape.gradient(outputs, [inputs, *variables], upstream)


@pytest.mark.parametrize(("dtype", "tolerance"), [(tf.float32, 3e-6), (tf.bfloat16, 8e-3)])
def test_gelu_is_the_formula(dtype, tolerance):
    inputs = tf.cast(tf.concat([tf.linspace(-8.0, 8.0, 1001), [-1e4, -50.0, 0.0, 50.0, 1e4]], 0), dtype)
    outputs, gradient = value_and_gradients(gelu, inputs, tf.fill(inputs.shape, tf.cast(2.0, dtype)))
    x = inputs.numpy().astype(np.float64)
    tanh = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    assert outputs.dtype == gradient.dtype == dtype
    np.testing.assert_allclose(outputs.numpy().astype(np.float64), 0.5 * x * (1 + tanh), rtol=tolerance, atol=tolerance)
    expected = 1 + tanh + x * (1 - tanh**2) * slope
    np.testing.assert_allclose(gradient.numpy().astype(np.float64), expected, rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-5), ("mixed_bfloat16", 2e-2)])
@pytest.mark.parametrize("shape", [[5, 16], [2, 3, 16]])
def test_layer_norm_is_the_formula(dtype, tolerance, shape):
    draws = np.random.default_rng(0)
    layer = LayerNorm(16, 1e-3, dtype=dtype)
    gamma, beta = draws.normal(size=(2, 16))
    layer.gamma.assign(gamma)
    layer.beta.assign(beta)
    compute_dtype = tf.as_dtype(layer.compute_dtype)
    inputs, upstream = (tf.cast(draws.normal(1.0, 2.0, shape), compute_dtype) for _ in range(2))
    variables = named_variables(layer)
    results = value_and_gradients(layer, inputs, upstream, [variables["gamma"], variables["beta"]])

    x, g = inputs.numpy().astype(np.float64), upstream.numpy().astype(np.float64)
    deviation = np.sqrt(x.var(-1, keepdims=True) + 1e-3)
    normalized = (x - x.mean(-1, keepdims=True)) / deviation
    scaled = g * gamma
    expected = [
        normalized * gamma + beta,
        (scaled - scaled.mean(-1, keepdims=True) - normalized * (scaled * normalized).mean(-1, keepdims=True))
        / deviation,
        (g * normalized).reshape(-1, 16).sum(0),
        g.reshape(-1, 16).sum(0),
    ]
    for values, reference in zip(results, expected):
        np.testing.assert_allclose(values.numpy().astype(np.float64), reference, rtol=tolerance, atol=tolerance)
