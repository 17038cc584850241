"""Dropout, GELU and LayerNorm with gradients of their own, which keep less for the way back."""

import collections.abc
import contextlib
import contextvars
import math

import tensorflow as tf

from albert_tf.base.compilation import fused, is_compiled_for_tpu, is_fused, optimization_barrier, sum_rows

# Dropout that a compiler can fuse into its neighbours, and that is the same everywhere.
#
# Whether an element is dropped follows from a seed and the element's number alone, by a few integer operations. So no
# mask is kept for the backward pass, and the Pallas kernels of `flash_attention_kernel` drop the same elements. Only
# where nothing is fused, because lengths differ from batch to batch, is a mask kept.
#
# python -m benchmarks.tpu_step        (a dropout of 0.1 adds 5% of the bytes)
# python -m benchmarks.other_encoders  (time on a CPU, with lengths that differ)


# Which of a batch's equal parts the code computes, a scalar int32; None for all of it.
_part = contextvars.ContextVar("part", default=None)


@contextlib.contextmanager
def part_of_batch(index: tf.Tensor) -> collections.abc.Iterator[None]:
    """Lets `dropout` drop in a part of a batch, the index-th of equal ones, what it would drop there in the whole."""
    token = _part.set(index)
    try:
        yield
    finally:
        _part.reset(token)


def dropout(inputs: tf.Tensor, rate: float, seed: tf.Tensor | None, has_examples: bool = True) -> tf.Tensor:
    """Drops a share of the elements and scales the rest up; equal seeds int32 [2] drop the same ones, None none.

    The first axis is that of the batch's examples, unless `has_examples` is False.
    """
    if seed is None or not rate:
        return inputs
    if has_examples and _part.get() is not None:
        # The seed's first number is added to that of each element.
        seed += tf.stack([_part.get() * tf.size(inputs), 0])

    @tf.custom_gradient
    def apply(inputs):
        if not is_fused(inputs):
            is_kept = _keeps(inputs, rate, seed)
            return _scale(inputs, rate, is_kept), lambda upstream: _scale(upstream, rate, is_kept)
        # Several products read the gradient. A TPU's compiler would compute the noise again for each.
        return _drop(inputs, rate, seed), lambda upstream: optimization_barrier([_drop(upstream, rate, seed)])

    return apply(inputs)


@fused
def _drop(inputs, rate, seed):
    return _scale(inputs, rate, _keeps(inputs, rate, seed))


def _keeps(inputs, rate, seed):
    shape = [size or tf.shape(inputs)[axis] for axis, size in enumerate(inputs.shape)]
    return random_bits(seed, shape) >= tf.constant(drop_threshold(rate), tf.uint32)


def _scale(inputs, rate, is_kept):
    # In float32, because the factor would be 0.2% too large in bfloat16.
    scaled = tf.cast(inputs, tf.float32) * (1.0 / (1.0 - rate))
    return tf.cast(tf.where(is_kept, scaled, 0.0), inputs.dtype)


def drop_threshold(rate: float) -> int:
    """Returns the number below which 32 random bits drop an element."""
    return int(rate * 2**32)


def resolve_dropout_seed(training: bool, dropout_seed: tf.Tensor | None) -> tf.Tensor | None:
    """Returns the seed int32 [2] to use: None outside training, and a random one where none was given."""
    if not training:
        return None
    if dropout_seed is None:
        return tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
    return dropout_seed


def split_dropout_seed(seed: tf.Tensor | None, count: int) -> list[tf.Tensor | None]:
    """Returns `count` seeds, each int32 [2] and different from the others, or Nones for None."""
    if seed is None:
        return [None] * count
    return tf.unstack(tf.bitcast(random_bits(seed, [count, 2]), tf.int32))


def fold_in(seed: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
    """Returns another seed int32 [2] for each number; `tf.random.fold_in` gives others under XLA than without."""
    # Mixed by itself first, so that seed 2 at step 0 is not seed 0 at step 2.
    mixed = _hash(tf.zeros([2], tf.int32), tf.bitcast(2 * number + tf.range(2), tf.uint32))
    return tf.bitcast(_hash(seed, mixed), tf.int32)


def random_bits(seed: tf.Tensor, shape: list[int | tf.Tensor]) -> tf.Tensor:
    """Returns uint32 noise of a shape, for a seed int32 [2]."""
    # The sum of one small range for each axis: compilers fuse that, but not a reshaped range.
    numbers = tf.constant(0, tf.uint32)
    for axis, size in enumerate(shape):
        stride = math.prod(shape[axis + 1 :])
        along_axis = tf.bitcast(tf.range(size, dtype=tf.int32) * stride, tf.uint32)
        numbers += tf.reshape(along_axis, [size] + [1] * (len(shape) - axis - 1))
    return _hash(seed, numbers)


def _hash(seed, numbers):
    """Returns uint32 noise, by constants of Wellons (2018, "Prospecting for hash functions") with the least bias."""
    first, second = tf.unstack(tf.bitcast(seed, tf.uint32))
    bits = _xor_shift(numbers + first, 16) * tf.constant(0x7FEB352D, tf.uint32)
    bits = _xor_shift(tf.bitwise.bitwise_xor(bits, second), 15) * tf.constant(0x846CA68B, tf.uint32)
    return _xor_shift(bits, 16)


def _xor_shift(bits, distance):
    return tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, tf.constant(distance, tf.uint32)))


# GELU (Hendrycks & Gimpel 2016, section 2) and its tanh approximation, with gradients that keep only the input.
#
# One loop forward and one backward: 2.6 ms a block of base on a CPU in bfloat16, with TensorFlow's operations 10.7 ms.
#
# python -m benchmarks.train_step --only=albert_tf,products --dtype=mixed_bfloat16

_SCALE = math.sqrt(2.0 / math.pi)
_CUBIC = 0.044715


@tf.custom_gradient
def gelu(inputs: tf.Tensor) -> tf.Tensor:
    """Returns 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) of every element, computed in float32."""
    return _gelu_forward(inputs), lambda upstream: _gelu_backward(inputs, upstream)


@fused
def _gelu_forward(inputs):
    values = tf.cast(inputs, tf.float32)
    return tf.cast(0.5 * values * (1.0 + _inner_tanh(values)), inputs.dtype)


@fused
def _gelu_backward(inputs, upstream):
    values = tf.cast(inputs, tf.float32)
    tanh = _inner_tanh(values)
    slope = values * (1.0 - tanh * tanh) * (_SCALE + 3.0 * _SCALE * _CUBIC * values * values)
    return tf.cast(0.5 * tf.cast(upstream, tf.float32) * (1.0 + tanh + slope), inputs.dtype)


def _inner_tanh(values):
    return tf.tanh(values * (_SCALE + _SCALE * _CUBIC * values * values))


@tf.custom_gradient
def gelu_erf(inputs: tf.Tensor) -> tf.Tensor:
    """Returns x P(X <= x), X standard normal, of every element, computed in float32."""
    return _forward_erf(inputs), lambda upstream: _backward_erf(inputs, upstream)


@fused
def _forward_erf(inputs):
    values = tf.cast(inputs, tf.float32)
    # In the order that the converter of LiteRT, which has no erf by itself, knows as GELU.
    return tf.cast((0.5 * values) * (1.0 + tf.math.erf(values * math.sqrt(0.5))), inputs.dtype)


@fused
def _backward_erf(inputs, upstream):
    values = tf.cast(inputs, tf.float32)
    density = math.sqrt(0.5 / math.pi) * tf.exp(-0.5 * values * values)
    return tf.cast(tf.cast(upstream, tf.float32) * (_normal_cdf(values) + values * density), inputs.dtype)


def _normal_cdf(values):
    return 0.5 * (1.0 + tf.math.erf(values * math.sqrt(0.5)))


# Layer normalisation with a gradient written by hand, which keeps one tensor in `dtype` and one or two numbers a row.
#
# On a CPU it runs as one loop forward and one backward. On a TPU its forward pass needs no pass over memory of its own:
# the product before it gives the sums of each row, and every product that reads the result normalises its input.
#
# python -m benchmarks.tpu_step                                (bytes and memory on a TPU)
# python -m benchmarks.train_step --only=albert_tf,products    (time on a CPU)


def layer_norm(inputs: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float, dtype: str) -> tf.Tensor:
    """Returns (inputs - mean) / sqrt(variance + epsilon) gamma + beta over the last axis (Ba et al. 2016).

    Inputs are of any float dtype, gamma and beta float32 [size]; the result is computed in float32 and cast to `dtype`.
    """

    @tf.custom_gradient
    def apply(inputs, gamma, beta):
        forward = _forward_between_products if is_compiled_for_tpu() else _layer_norm_forward
        outputs, normalized, inverse_deviation = forward(inputs, gamma, beta, epsilon, dtype)

        def gradient(upstream):
            inputs_gradient, product = _layer_norm_backward(
                normalized, inverse_deviation, gamma, upstream, inputs.dtype
            )
            return inputs_gradient, sum_rows(product), tf.cast(sum_rows(upstream), tf.float32)

        return outputs, gradient

    return apply(inputs, gamma, beta)


@fused
def _layer_norm_forward(inputs, gamma, beta, epsilon, dtype):
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
def _layer_norm_backward(normalized, inverse_deviation, gamma, upstream, dtype):
    normalized, upstream = tf.cast(normalized, tf.float32), tf.cast(upstream, tf.float32)
    scaled = upstream * gamma
    mean_scaled = tf.reduce_mean(scaled, axis=-1, keepdims=True)
    mean_product = tf.reduce_mean(scaled * normalized, axis=-1, keepdims=True)
    inputs_gradient = inverse_deviation * (scaled - mean_scaled - normalized * mean_product)
    return tf.cast(inputs_gradient, dtype), upstream * normalized
