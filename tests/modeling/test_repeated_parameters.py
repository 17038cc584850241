"""Weights that many blocks share are read and cast once, and what they get back is added up in float32."""

import pytest
import tensorflow as tf

from albert_tf.modeling.kernels.linear import repeat_weights


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
