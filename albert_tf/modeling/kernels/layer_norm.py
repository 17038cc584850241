"""Layer normalisation with a gradient written by hand, which keeps one tensor in `dtype` and one or two numbers a row.

On a CPU it runs as one loop forward and one backward. On a TPU its forward pass needs no pass over memory of its own:
the product before it gives the sums of each row, and every product that reads the result normalises its input.

python -m benchmarks.tpu_step                                (bytes and memory on a TPU)
python -m benchmarks.train_step --only=albert_tf,products    (time on a CPU)
"""

import tensorflow as tf

from albert_tf.compilation.fusion import fused, sum_rows
from albert_tf.compilation.target import is_compiled_for_tpu, optimization_barrier


def layer_norm(inputs: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float, dtype: str) -> tf.Tensor:
    """Returns (inputs - mean) / sqrt(variance + epsilon) gamma + beta over the last axis (Ba et al. 2016).

    Inputs are of any float dtype, gamma and beta float32 [size]; the result is computed in float32 and cast to `dtype`.
    """

    @tf.custom_gradient
    def apply(inputs, gamma, beta):
        forward = _forward_between_products if is_compiled_for_tpu() else _forward
        outputs, normalized, inverse_deviation = forward(inputs, gamma, beta, epsilon, dtype)

        def gradient(upstream):
            inputs_gradient, product = _backward(normalized, inverse_deviation, gamma, upstream, inputs.dtype)
            return inputs_gradient, sum_rows(product), tf.cast(sum_rows(upstream), tf.float32)

        return outputs, gradient

    return apply(inputs, gamma, beta)


@fused
def _forward(inputs, gamma, beta, epsilon, dtype):
    values = tf.cast(inputs, tf.float32)
    mean = tf.reduce_mean(values, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(values, mean), axis=-1, keepdims=True)
    inverse_deviation = tf.math.rsqrt(variance + epsilon)
    normalized = tf.cast((values - mean) * inverse_deviation, dtype)
    return tf.cast(tf.cast(normalized, tf.float32) * gamma + beta, dtype), normalized, inverse_deviation


def _forward_between_products(inputs, gamma, beta, epsilon, dtype):
    values = tf.cast(inputs, tf.float32)
    mean = tf.reduce_mean(values, axis=-1, keepdims=True)
    # Squared differences from the mean would be a second pass over the row.
    variance = tf.reduce_mean(tf.square(values), axis=-1, keepdims=True) - tf.square(mean)
    inverse_deviation = tf.math.rsqrt(tf.maximum(variance, 0.0) + epsilon)
    # Without the barrier the compiler computes the sums again for each product.
    inputs, mean, inverse_deviation = optimization_barrier([inputs, mean, inverse_deviation])
    normalized = (tf.cast(inputs, tf.float32) - mean) * inverse_deviation
    return tf.cast(normalized * gamma + beta, dtype), normalized, inverse_deviation


@fused
def _backward(normalized, inverse_deviation, gamma, upstream, dtype):
    normalized, upstream = tf.cast(normalized, tf.float32), tf.cast(upstream, tf.float32)
    scaled = upstream * gamma
    mean_scaled = tf.reduce_mean(scaled, axis=-1, keepdims=True)
    mean_product = tf.reduce_mean(scaled * normalized, axis=-1, keepdims=True)
    inputs_gradient = inverse_deviation * (scaled - mean_scaled - normalized * mean_product)
    return tf.cast(inputs_gradient, dtype), upstream * normalized
