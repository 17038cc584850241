"""Keys and values of the pieces so far, so that each further piece is computed alone.

One array of a fixed length for each application of a block, of which columns are written as they come: blocks that
share weights share no keys. A column holds the piece of that position, and a causal model's piece sees no later one, so
what stands behind is never seen, and nothing has to be masked.

python -m benchmarks.generation      (time on a CPU, with it and without)
"""

import typing

import tensorflow as tf

from albert_tf.modeling.kernels.visible_keys import VisibleKeys


class KeyValueCache(typing.NamedTuple):
    """What one application of a block has computed, [B, N, S, head_size] each."""

    keys: tf.Tensor
    values: tf.Tensor

    @classmethod
    def empty(cls, shape: tuple[int, int, int, int], dtype: str) -> "KeyValueCache":
        """Returns one of a shape, [B, N, S, head_size]."""
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
        """Returns what is seen from columns int32 [B, T]: themselves and those before them."""
        batch_size, _, length, _ = self.keys.shape
        return VisibleKeys(tf.zeros([batch_size, 1, length]), None, None, columns)
