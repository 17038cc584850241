"""Value and gradient of what is differentiated by hand, against NumPy in float64."""

import math

import numpy as np
import pytest
import tensorflow as tf
from rounding import UNIT_ROUNDOFF, assert_within

from albert_tf.modeling.kernels.elementwise import gelu, gelu_erf
from albert_tf.modeling.layers import LayerNorm, named_variables
from albert_tf.runs.tpu_compiler import ReplicaStrategy


def value_and_gradients(function, inputs, upstream, variables=()):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = function(inputs)
    return outputs, *tape.gradient(outputs, [inputs, *variables], upstream)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_gelu_is_the_formula(dtype):
    inputs = tf.cast(tf.concat([tf.linspace(-8.0, 8.0, 1001), [-1e4, -50.0, 0.0, 50.0, 1e4]], 0), dtype)
    outputs, gradient = value_and_gradients(gelu, inputs, tf.fill(inputs.shape, tf.cast(2.0, dtype)))
    x = inputs.numpy().astype(np.float64)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    tanh = np.tanh(inner)
    slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    assert outputs.dtype == gradient.dtype == dtype
    # All is computed in float32 and rounded to the dtype in the end. The tanh of libraries is off by 5 roundings, and
    # where it rounds to 1 it is 1; its argument has 4. The gradient takes x slope times the difference of 1 and tanh^2.
    tanh_error = 8 * UNIT_ROUNDOFF["float32"] * (1 + np.abs(inner) * (1 - tanh**2))
    tanh_error = np.where(np.abs(inner) < 10, tanh_error, 1 - np.abs(tanh))
    share = UNIT_ROUNDOFF[dtype.name] + 8 * UNIT_ROUNDOFF["float32"]
    expected = 0.5 * x * (1 + tanh)
    assert_within(outputs, expected, share * np.abs(expected) + np.abs(x) * tanh_error + 1e-30)
    expected = 1 + tanh + x * (1 - tanh**2) * slope
    assert_within(gradient, expected, share * (np.abs(expected) + 1) + (1 + 2 * np.abs(x) * slope) * tanh_error)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_exact_gelu_is_the_normal_distribution(dtype):
    inputs = tf.cast(tf.concat([tf.linspace(-8.0, 8.0, 1001), [-1e4, -50.0, 0.0, 50.0, 1e4]], 0), dtype)
    outputs, gradient = value_and_gradients(gelu_erf, inputs, tf.fill(inputs.shape, tf.cast(2.0, dtype)))
    x = inputs.numpy().astype(np.float64)
    cdf = np.array([0.5 * (1 + math.erf(value / math.sqrt(2))) for value in x])
    density = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    assert outputs.dtype == gradient.dtype == dtype
    # erf of libraries is off by 5 roundings, which is all that is left where it is added to its opposite.
    share = UNIT_ROUNDOFF[dtype.name] + 8 * UNIT_ROUNDOFF["float32"]
    cdf_error = 8 * UNIT_ROUNDOFF["float32"]
    assert_within(outputs, x * cdf, share * np.abs(x * cdf) + np.abs(x) * cdf_error + 1e-30)
    expected = 2 * (cdf + x * density)
    # The exponent is as large as 32, and its rounding makes an error of the density so many times as large.
    density_error = 2 * np.abs(x) * density * (8 + x * x) * UNIT_ROUNDOFF["float32"]
    assert_within(gradient, expected, share * (np.abs(expected) + 1) + 4 * cdf_error + density_error)


def run_for_tpu(function):
    """Returns what the program that is traced for a TPU computes."""
    strategy = ReplicaStrategy(1)
    with strategy.scope():
        return tf.function(function, jit_compile=True, autograph=False)()


def test_layer_norm_of_equal_values_is_its_shift_on_a_tpu():
    # The difference of two sums that are the same but for rounding, which may be below 0.
    layer = LayerNorm(768, 1e-6)
    layer.beta.assign(tf.fill([768], 5.0))
    inputs = tf.tile(tf.linspace(-100.0, 100.0, 64)[:, None], [1, 768])
    np.testing.assert_allclose(run_for_tpu(lambda: layer(inputs)), np.full(inputs.shape, 5.0), atol=0.1)


# How often a term is rounded at most: in two means over 16 values, which are float32, or in a sum of 6 rows and before.
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("float32", 64 * UNIT_ROUNDOFF["float32"]), ("mixed_bfloat16", 8 * UNIT_ROUNDOFF["bfloat16"])],
    ids=["float32", "bfloat16"],
)
@pytest.mark.parametrize("shape", [[5, 16], [2, 3, 16]])
@pytest.mark.parametrize("run", [lambda function: function(), run_for_tpu], ids=["here", "for_tpu"])
def test_layer_norm_is_the_formula(dtype, tolerance, shape, run):
    draws = np.random.default_rng(0)
    layer = LayerNorm(16, 1e-3, dtype=dtype)
    gamma, beta = draws.normal(size=(2, 16))
    layer.gamma.assign(gamma)
    layer.beta.assign(beta)
    compute_dtype = tf.as_dtype(layer.compute_dtype)
    inputs, upstream = (tf.cast(draws.normal(1.0, 2.0, shape), compute_dtype) for _ in range(2))
    variables = named_variables(layer)
    weights = [variables["gamma"], variables["beta"]]
    results = run(lambda: value_and_gradients(layer, inputs, upstream, weights))

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
    sums_of_absolute_values = [
        np.abs(normalized * gamma) + np.abs(beta),
        (np.abs(scaled) + np.abs(scaled).mean(-1, keepdims=True)) / deviation
        + np.abs(normalized) * np.abs(scaled * normalized).mean(-1, keepdims=True) / deviation,
        np.abs(g * normalized).reshape(-1, 16).sum(0),
        np.abs(g).reshape(-1, 16).sum(0),
    ]
    for values, reference, size in zip(results, expected, sums_of_absolute_values):
        assert_within(values, reference, tolerance * size)
