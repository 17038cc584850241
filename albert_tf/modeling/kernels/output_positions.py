"""The last block computes only the positions that are read afterwards, with keys and values of every position.

For base at length 512 that saves 6% of a step's products.

python -m benchmarks.tpu_step --without=output_positions     (a TPU's compiler's figures without it)
"""

import tensorflow as tf


def first_position(inputs: tf.Tensor) -> tf.Tensor:
    """Returns position 0, int32 zeros [B, 1], for inputs [B, S, ...]."""
    return tf.zeros([inputs.shape[0] or tf.shape(inputs)[0], 1], tf.int32)


def last_position(inputs: tf.Tensor, input_mask: tf.Tensor | None) -> tf.Tensor:
    """Returns the position of the last token, int32 [B, 1]; the mask is as for `mean_state`."""
    places = tf.range(inputs.shape[1] or tf.shape(inputs)[1])
    if input_mask is None:
        return first_position(inputs) + places[-1]
    mask = tf.linalg.diag_part(input_mask) if input_mask.shape.rank == 3 else input_mask
    return tf.reduce_max(places * tf.cast(mask, tf.int32), axis=1, keepdims=True)


def with_first_position(positions: tf.Tensor) -> tf.Tensor:
    """Returns [B, 1 + P]: position 0, and then int [B, P]."""
    return tf.concat([tf.zeros_like(positions[:, :1]), positions], axis=1)


def select_positions(states: tf.Tensor, positions: tf.Tensor | None) -> tf.Tensor:
    """Returns the states [B, S, H] at positions [B, P], [B, P, H]; for None the very same tensor."""
    if positions is None:
        return states
    # A product with one-hot rows, because the gradient of a gather is a scatter, which is slow on a TPU.
    length = states.shape[1] or tf.shape(states)[1]
    return tf.matmul(tf.one_hot(positions, length, dtype=states.dtype), states)
