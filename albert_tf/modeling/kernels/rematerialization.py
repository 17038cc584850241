"""Computing again in the backward pass what would otherwise be kept in memory.

`tf.recompute_grad` does not do it under XLA, which finds that the second computation is the first one and merges them.
Here the second one starts from tensors that have passed an optimization barrier together with the incoming gradient, so
that it neither looks the same nor can begin earlier.
"""

import collections.abc

import tensorflow as tf

from albert_tf.compilation.target import is_compiled_for_tpu, optimization_barrier

REMATERIALIZATION_CHOICES = ("none", "attention", "block")


def rematerialize(function: collections.abc.Callable) -> collections.abc.Callable:
    """Returns a function of the same result whose gradient computes it again.

    Args:
        function: Takes nested structures of tensors and returns a tensor. It must be pure: read no variable, and draw
            no random numbers but from a seed among its arguments.
    """

    def rematerialized(*arguments):
        flat = tf.nest.flatten(arguments)

        @tf.custom_gradient
        def apply(*tensors):
            def gradient(upstream):
                *again, delayed = _barrier([*tensors, upstream])
                differentiable = [tensor for tensor in again if tensor.dtype.is_floating]
                with tf.GradientTape() as tape:
                    tape.watch(differentiable)
                    outputs = function(*tf.nest.pack_sequence_as(arguments, again))
                gradients = iter(tape.gradient(outputs, differentiable, delayed))
                return [next(gradients) if tensor.dtype.is_floating else None for tensor in again]

            return function(*tf.nest.pack_sequence_as(arguments, tensors)), gradient

        return apply(*flat)

    return rematerialized


def _barrier(tensors):
    """Returns the same tensors, of which the compiler takes none for what it was before."""
    if is_compiled_for_tpu():
        return optimization_barrier(tensors)
    *values, upstream = tensors
    with tf.control_dependencies([upstream]):
        return [*(tf.identity(value) for value in values), upstream]
