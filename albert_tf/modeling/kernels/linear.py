"""A matrix product with its bias, and a bias gradient written by hand.

On a CPU the input is reshaped to rows, so that TensorFlow's runtime passes product and bias to oneDNN as one operation;
a TPU's compiler would read and write half as much again for them. The bias gradient is a column sum (`sum_rows`).

python -m benchmarks.train_step --only=albert_tf,products    (the step against its matrix products alone)
"""

import tensorflow as tf

from albert_tf.base.compilation import is_compiled_whole, sum_rows
from albert_tf.modeling.kernels.shared_weights import Part, Weights, weights_of


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


# Queries, keys and values from one matrix product, whose kernel is concatenated once a step.
#
# One product of 3 H columns runs faster than three of H, and reads its input once. The flash kernels also want the
# columns in a certain order, which then costs nothing. Where no other block has the same weights, a CPU or GPU
# would copy all of them for one product each, which for a single text takes longer than it saves: there
# `SeparateProjections` serve.
#
# python -m benchmarks.tpu_step --without=query_key_value      (a TPU's compiler's figures for three products)
# python -m benchmarks.other_encoders                          (time on a CPU, blocks with weights of their own)


class QueryKeyValue:
    """The three projections of an attention layer, `Linear` layers of equal size, as one.

    `columns_together` columns of queries come before as many of keys and of values, and so on in turn; the hidden size
    puts the whole of each side by side.
    """

    def __init__(self, layers: list[tf.keras.layers.Layer], columns_together: int):
        self._layers = layers
        self._columns_together = columns_together

    def parts(self) -> list[Part]:
        return [self]

    def read_weights(self) -> Weights:
        """Returns float32 `kernel` [H, 3 H] and `bias` [3 H]."""
        merged = {}
        for part in ("kernel", "bias"):
            values = [layer.read_weights()[part] for layer in self._layers]
            split = [self._in_groups(value, 1) for value in values]
            merged[part] = _join_groups(tf.concat(split, axis=-2))
        return merged

    def __call__(self, queried: tf.Tensor, hidden_states: tf.Tensor) -> list[tf.Tensor]:
        """Returns queries, keys and values [B, S, 3 H], or queries [B, R, H], and keys and values [B, S, 2 H].

        `queried` are the `hidden_states` [B, S, H] themselves, or those of some positions [B, R, H].
        """
        dtype = self._layers[0].compute_dtype
        return [linear(inputs, **weights, dtype=dtype) for inputs, weights in self._operands(queried, hidden_states)]

    def products_and_biases(self, queried: tf.Tensor, hidden_states: tf.Tensor) -> tuple[list, list]:
        """Returns two lists as long as that of `__call__`: its results before the bias is added, and the biases."""
        dtype, operands = self._layers[0].compute_dtype, self._operands(queried, hidden_states)
        products = [linear(inputs, weights["kernel"], None, dtype) for inputs, weights in operands]
        return products, [weights["bias"] for _, weights in operands]

    def _operands(self, queried, hidden_states):
        weights = weights_of(self)
        if queried is hidden_states:
            return [(hidden_states, weights)]
        query, key_value = {}, {}
        for part, value in weights.items():
            groups = tf.split(self._in_groups(value, 3), [1, 2], axis=-2)
            query[part], key_value[part] = (_join_groups(group) for group in groups)
        return [(queried, query), (hidden_states, key_value)]

    def _in_groups(self, columns, count):
        """Reshapes [..., count H] to [..., groups, count, columns together]."""
        return tf.reshape(columns, [*columns.shape[:-1], -1, count, self._columns_together])


class SeparateProjections:
    """The three projections of an attention layer, `Linear` layers of equal size, one by one."""

    def __init__(self, layers: list[tf.keras.layers.Layer]):
        self._layers = layers

    def parts(self) -> list[Part]:
        return self._layers

    def __call__(self, queried: tf.Tensor, hidden_states: tf.Tensor) -> list[tf.Tensor]:
        """Returns queries [B, R, H], keys and values [B, S, H]; arguments as for `QueryKeyValue`."""
        query, key, value = self._layers
        return [query(queried), key(hidden_states), value(hidden_states)]


def _join_groups(groups):
    """Reshapes [..., groups, count, columns together] to [..., groups * count * columns together]."""
    return tf.reshape(groups, [*groups.shape[:-3], groups.shape[-3] * groups.shape[-2] * groups.shape[-1]])
