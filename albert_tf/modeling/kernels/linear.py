"""A matrix product with its bias, and a bias gradient written by hand.

On a CPU the input is reshaped to rows, so that TensorFlow's runtime passes product and bias to oneDNN as one operation;
a TPU's compiler would read and write half as much again for them. The bias gradient is a column sum (`sum_rows`).

python -m benchmarks.train_step --only=albert_tf,products    (the step against its matrix products alone)
"""

import tensorflow as tf

from albert_tf.compilation.fusion import sum_rows
from albert_tf.compilation.target import is_compiled_whole


def linear(inputs: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor | None, dtype: str) -> tf.Tensor:
    """Returns inputs [..., input_size] times kernel [input_size, output_size], plus the bias if any, in `dtype`."""
    kernel = tf.cast(kernel, dtype)
    inputs = tf.cast(inputs, dtype)
    if is_compiled_whole():
        return _with_bias(tf.tensordot(inputs, kernel, 1), bias)
    if inputs.shape.rank == 2:
        return _with_bias(tf.matmul(inputs, kernel), bias)
    rows = tf.reshape(inputs, [-1, inputs.shape[-1]])
    outputs = _with_bias(tf.matmul(rows, kernel), bias)
    return tf.reshape(outputs, tf.concat([tf.shape(inputs)[:-1], [kernel.shape[-1]]], axis=0))


def add_bias(product: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    return tf.nn.bias_add(product, tf.cast(bias, product.dtype))


def _with_bias(product, bias):
    @tf.custom_gradient
    def apply(product, bias):
        return add_bias(product, bias), lambda upstream: (upstream, tf.cast(sum_rows(upstream), bias.dtype))

    return product if bias is None else apply(product, bias)
