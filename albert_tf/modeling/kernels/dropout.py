"""Dropout that a compiler can fuse into its neighbours, and that is the same everywhere.

Whether an element is dropped follows from a seed and the element's number alone, by a few integer operations. So no
mask is kept for the backward pass, and the Pallas kernels of `flash_attention_kernel` drop the same elements. Only
where nothing is fused, because lengths differ from batch to batch, is a mask kept.

python -m benchmarks.tpu_step        (a dropout of 0.1 adds 5% of the bytes)
python -m benchmarks.other_encoders  (time on a CPU, with lengths that differ)
"""

import math

import tensorflow as tf

from albert_tf.compilation.fusion import fused, is_fused
from albert_tf.compilation.target import optimization_barrier


def dropout(inputs: tf.Tensor, rate: float, seed: tf.Tensor | None) -> tf.Tensor:
    """Drops a share of the elements and scales the rest up; equal seeds int32 [2] drop the same ones, None none."""
    if seed is None or not rate:
        return inputs

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
