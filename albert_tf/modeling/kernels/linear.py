"""A matrix product with its bias: a bias gradient written by hand, and weights that are read and cast once a step.

On a CPU the input is reshaped to rows, so that TensorFlow's runtime passes product and bias to oneDNN as one operation
in float32; a TPU's compiler would read and write half as much again for them. The bias gradient is a column sum
(`sum_rows`).

python -m benchmarks.train_step --only=albert_tf,products    (the step against its matrix products alone)

Left to TensorFlow, every application of a block casts the kernels anew, and in bfloat16 their gradients are added up in
bfloat16, where 256 + 1 is 256. Here every application gets a copy of its own (`using`, much like `StatelessScope` of
Keras 3, which Keras 2 lacks), and one loop adds up the gradients of all copies in float32.

python -m benchmarks.tpu_step --without=shared_weights       (a TPU's compiler's figures without it)
"""

import collections
import collections.abc
import contextlib
import contextvars
import typing

import tensorflow as tf

from albert_tf.base.compilation import fused, is_compiled_whole, sum_rows

Weights = dict[str, tf.Tensor]


class Part(typing.Protocol):
    """A holder of weights: a layer, or several whose weights are used together."""

    def read_weights(self) -> Weights:
        """Returns float32 weights by name; those called "kernel" go into matrix products."""


# The graph for which weights are set, and the weights by the identity of their part.
_weights_in_use: contextvars.ContextVar[tuple[tf.Graph | None, dict[int, Weights]]] = contextvars.ContextVar(
    "weights_in_use", default=(None, {})
)


def weights_of(part: Part) -> Weights:
    """Returns a part's weights: those that `using` set, or else the values of its variables."""
    graph, weights = _weights_in_use.get()
    # Keras 2 saves a layer as a function of its own, which can't refer to tensors of the graph around it.
    if id(part) in weights and graph is tf.compat.v1.get_default_graph():
        return weights[id(part)]
    return part.read_weights()


@contextlib.contextmanager
def using(parts: list[Part], weights: list[Weights]) -> collections.abc.Iterator[None]:
    """Sets the results of `weights_of` for some parts."""
    by_part = {id(part): values for part, values in zip(parts, weights)}
    token = _weights_in_use.set((tf.compat.v1.get_default_graph(), by_part))
    try:
        yield
    finally:
        _weights_in_use.reset(token)


def read_once(blocks: list[list[Part]], dtype: str) -> list[list[Weights]]:
    """Returns the weights of each block's parts, in their order, read once; kernels in `dtype`, others in float32."""
    parts = {id(part): part for block in blocks for part in block}
    counts = collections.Counter(id(part) for block in blocks for part in block)
    copies = {key: iter(repeat_weights(part.read_weights(), counts[key], dtype)) for key, part in parts.items()}
    return [[next(copies[id(part)]) for part in block] for block in blocks]


def repeat_weights(weights: Weights, count: int, dtype: str) -> list[Weights]:
    """Returns copies of float32 weights, kernels cast once to `dtype`; gradients of kernels add up in float32."""
    copies = {
        name: _repeat_kernel(value, count, dtype) if name == "kernel" else [value] * count
        for name, value in weights.items()
    }
    return [{name: copies[name][use] for name in weights} for use in range(count)]


def _repeat_kernel(kernel, count, dtype):
    @tf.custom_gradient
    def apply(kernel):
        values = tf.cast(kernel, dtype)
        # The backward pass goes from the last use to the first.
        return [tf.identity(values) for _ in range(count)], lambda *upstream: _add_up(*reversed(upstream))

    return apply(kernel)


@fused
def _add_up(*gradients):
    return tf.add_n([tf.cast(gradient, tf.float32) for gradient in gradients])


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


# The runtime's one operation for product and bias is slower in bfloat16 than the product and a loop behind it: on a
# processor with AMX a step of H 256 takes 0.92 of the time with the loop, and a forward pass 0.81.
_add_bias_apart = fused(add_bias)


def _with_bias(product, bias):
    add = _add_bias_apart if product.dtype == tf.bfloat16 else add_bias

    @tf.custom_gradient
    def apply(product, bias):
        return add(product, bias), lambda upstream: (upstream, tf.cast(sum_rows(upstream), bias.dtype))

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
