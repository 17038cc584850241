"""Functions that run as one loop give what they give otherwise."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base import compilation


@pytest.fixture
def anew():
    """Forgets whether XLA works here, before and after."""
    compilation._xla_compiles_here.cache_clear()
    yield
    compilation._xla_compiles_here.cache_clear()


def test_result_is_that_of_the_function():
    fused = compilation.fused(lambda values, scale: tf.tanh(values) * scale)
    values = tf.random.normal([3, 4], seed=1)
    np.testing.assert_allclose(fused(values, 2.0), tf.tanh(values) * 2.0, rtol=1e-6)
    np.testing.assert_allclose(tf.function(fused)(values, 3.0), tf.tanh(values) * 3.0, rtol=1e-6)


@pytest.mark.parametrize(("shape", "is_compiled"), [([3, 4], True), ([None, 4], False)])
def test_only_shapes_that_are_known_are_compiled(shape, is_compiled):
    traced = tf.function(compilation.fused(tf.tanh), input_signature=[tf.TensorSpec(shape)])
    operations = traced.get_concrete_function().graph.as_graph_def().node
    assert any("_XlaMustCompile" in node.attr for node in operations) is is_compiled


@pytest.mark.usefixtures("anew")
def test_does_without_xla_where_it_does_not_work(monkeypatch):
    original = tf.function

    def failing(function=None, jit_compile=None, **options):
        def fail(*_):
            raise tf.errors.InvalidArgumentError(None, None, "could not find registered platform")

        return fail if jit_compile else original(function, **options)

    monkeypatch.setattr(tf, "function", failing)
    fused = compilation.fused(lambda values: values + 1.0)
    assert float(original(fused)(tf.constant(1.0))) == 2.0


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_rows_are_added_up(dtype):
    values = tf.cast(np.random.default_rng(0).integers(-4, 5, [3, 5, 7]), dtype)
    expected = values.numpy().astype(np.float64).sum(axis=(0, 1))
    np.testing.assert_array_equal(compilation.sum_rows(values).numpy().astype(np.float64), expected)
