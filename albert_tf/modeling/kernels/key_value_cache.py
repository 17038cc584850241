"""Keys and values of the tokens so far, so that each further token is computed alone.

Each application of a block has its own, whose columns are written as tokens come. A causal model's tokens see no later
ones, so the unwritten rest is never seen, and nothing has to be masked.

python -m benchmarks.generation      (time on a CPU, with it and without)
"""

import typing

import tensorflow as tf

from albert_tf.modeling.kernels.visible_keys import VisibleKeys


class KeyValueCache(typing.NamedTuple):
    """Keys and values of one application of a block, [B, N, S, head_size] each."""

    keys: tf.Tensor
    values: tf.Tensor

    @classmethod
    def empty(cls, shape: tuple[int, int, int, int], dtype: str) -> "KeyValueCache":
        return cls(tf.zeros(shape, dtype), tf.zeros(shape, dtype))

    def written(self, keys: tf.Tensor, values: tf.Tensor, columns: tf.Tensor) -> "KeyValueCache":
        """Returns the cache with others, [B, N, T, head_size], at columns int32 [B, T], no two of a row the same."""
        batch_size, num_heads, count, _ = keys.shape
        rows = tf.range(batch_size)[:, None, None, None]
        heads = tf.range(num_heads)[None, :, None, None]
        shape = [batch_size, num_heads, count, 1]
        places = [tf.broadcast_to(each, shape) for each in (rows, heads, columns[:, None, :, None])]
        indices = tf.concat(places, axis=-1)
        return KeyValueCache(
            tf.tensor_scatter_nd_update(self.keys, indices, keys),
            tf.tensor_scatter_nd_update(self.values, indices, values),
        )

    def visible_from(self, columns: tf.Tensor) -> VisibleKeys:
        """Returns the keys that columns int32 [B, T] see: themselves and those before them."""
        batch_size, _, length, _ = self.keys.shape
        return VisibleKeys(tf.zeros([batch_size, 1, length]), None, None, columns)
