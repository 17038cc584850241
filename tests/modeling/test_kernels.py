"""Value and gradient of what is differentiated by hand, against NumPy in float64, and pieces drawn as is probable."""

import math

import numpy as np
import pytest
import tensorflow as tf
from rounding import UNIT_ROUNDOFF, assert_within

from albert_tf.modeling.kernels import piece_sampling
from albert_tf.modeling.kernels import tied_cross_entropy as module
from albert_tf.modeling.kernels.elementwise import gelu, gelu_erf
from albert_tf.modeling.kernels.linear import repeat_weights
from albert_tf.modeling.kernels.piece_sampling import sample_pieces
from albert_tf.modeling.kernels.tied_cross_entropy import tied_cross_entropy
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
@pytest.mark.parametrize(
    ("run", "shape"), [(lambda function: function(), [2, 3, 16]), (run_for_tpu, [5, 16])], ids=["here", "for_tpu"]
)
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


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_of_all_uses_are_added_up_in_float32(dtype):
    kernel, bias = tf.ones([2, 3]), tf.ones([3])
    with tf.GradientTape() as tape:
        tape.watch([kernel, bias])
        uses = repeat_weights({"kernel": kernel, "bias": bias}, 301, dtype)
        assert {use["kernel"].dtype.name for use in uses} == {dtype}
        assert {use["bias"].dtype.name for use in uses} == {"float32"}
        loss = tf.add_n([tf.cast(tf.reduce_sum(use["kernel"]), tf.float32) + use["bias"][0] for use in uses])
    kernel_gradient, bias_gradient = tape.gradient(loss, [kernel, bias])
    # In bfloat16 301 doesn't exist, and 256 + 1 stays 256.
    assert kernel_gradient.dtype == tf.float32 and tf.reduce_all(kernel_gradient == 301.0)
    assert list(tf.convert_to_tensor(bias_gradient).numpy()) == [301.0, 0.0, 0.0]


def test_values_are_those_of_the_weight():
    kernel = tf.random.normal([4, 5], seed=0)
    first, second = repeat_weights({"kernel": kernel}, 2, "bfloat16")
    for use in (first, second):
        assert tf.reduce_all(use["kernel"] == tf.cast(kernel, tf.bfloat16))


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
@pytest.mark.parametrize("rows_in_a_chunk", [100, 5, 4])
def test_loss_and_gradients_are_those_of_all_logits(inputs, monkeypatch, rows_in_a_chunk):
    monkeypatch.setattr(module, "_ROWS_IN_A_CHUNK", rows_in_a_chunk)
    loss, right, gradients = tf.function(computed)(inputs)
    expected_loss, expected_right, expected_gradients = reference(*inputs)
    assert float(loss) == pytest.approx(expected_loss, rel=1e-6)
    assert float(right) == expected_right > 0
    for values, expected in zip(gradients, expected_gradients):
        np.testing.assert_allclose(values, 3 * expected, rtol=1e-5, atol=1e-6)


def test_products_are_computed_in_the_dtype_of_the_states_fused_or_not(inputs):
    for compute in (computed, tf.function(computed)):
        loss, right, gradients = compute(inputs, "bfloat16")
        assert loss.dtype == tf.float32 and float(right) > 0
        assert [gradient.dtype for gradient in gradients] == [tf.bfloat16, tf.float32, tf.float32]
        expected_loss, _, expected = reference(*inputs)
        assert float(loss) == pytest.approx(expected_loss, rel=0.02)
        for gradient, values in zip(gradients, expected):
            np.testing.assert_allclose(tf.cast(gradient, tf.float32), 3 * values, atol=0.03 * 3 * np.abs(values).max())


def draw(logits, count, dtype="float32"):
    """Draws pieces from logits [V], which the one unit of every state, of this dtype, multiplies."""
    table = tf.constant(logits, tf.float32)[:, None]
    draws = tf.random.stateless_uniform([count], [1, 2])
    return sample_pieces(tf.ones([count, 1], dtype), table, tf.zeros([len(logits)]), draws).numpy()


def p_value(pieces, probabilities):
    """Returns how likely so uneven counts are if pieces have these probabilities; rare ones are counted together."""
    scipy_stats = pytest.importorskip("scipy.stats")
    is_rare = probabilities * len(pieces) < 5
    counts = np.bincount(pieces, minlength=len(probabilities))
    observed, expected = (
        np.append(values[~is_rare], values[is_rare].sum()) for values in (counts, probabilities * len(pieces))
    )
    return scipy_stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue


@pytest.mark.parametrize(("vocab_size", "dtype"), [(5, "bfloat16"), (256, "float32"), (700, "bfloat16")])
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
