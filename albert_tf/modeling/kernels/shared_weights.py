"""Weights that are read and cast once a step, however many blocks share them, and whose gradients add up in float32.

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

from albert_tf.base.compilation import fused

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
