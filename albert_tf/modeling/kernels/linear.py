"""A matrix product with its bias, and a bias gradient written by hand.

On a CPU the input is reshaped to rows, so that TensorFlow's runtime passes product and bias to oneDNN as one operation;
a TPU's compiler would read and write half as much again for those rows, and gets the product as it is. The gradient of
the bias is a column sum: TensorFlow's own takes several times as long on a CPU (`sum_rows`).

python -m benchmarks.train_step --only=albert_tf,products    (the step against its matrix products alone)
"""

import tensorflow as tf

from albert_tf.compilation.fusion import sum_rows
from albert_tf.compilation.target import is_compiled_whole


def linear(inputs: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor, dtype: str) -> tf.Tensor:
    """Returns inputs kernel + bias in `dtype`, [..., output_size].

    Args:
        inputs: [..., input_size].
        kernel: [input_size, output_size].
        bias: [output_size].
        dtype: What the product is computed in.
    """
    kernel = tf.cast(kernel, dtype)
    inputs = tf.cast(inputs, dtype)
    if is_compiled_whole():
        return _add_bias(tf.tensordot(inputs, kernel, 1), bias)
    if inputs.shape.rank == 2:
        return _add_bias(tf.matmul(inputs, kernel), bias)
    rows = tf.reshape(inputs, [-1, inputs.shape[-1]])
    outputs = _add_bias(tf.matmul(rows, kernel), bias)
    return tf.reshape(outputs, tf.concat([tf.shape(inputs)[:-1], [kernel.shape[-1]]], axis=0))


@tf.custom_gradient
def _add_bias(inputs, bias):
    outputs = tf.nn.bias_add(inputs, tf.cast(bias, inputs.dtype))
    return outputs, lambda upstream: (upstream, tf.cast(sum_rows(upstream), bias.dtype))
