"""Which positions are seen, kept and read."""

import typing

import tensorflow as tf

from albert_tf.base.compilation import optimization_barrier

# Which keys a query sees, in few numbers that kernels compare: no [S, S] for each example is written to memory.

# Added to the scores of keys that must not be seen (original modeling.py). It is finite, so that a query that may see
# nothing at all gets an average of keys and not NaN.
HIDDEN_SCORE = -10000.0


class VisibleKeys(typing.NamedTuple):
    """Which of S keys the R queries of each example see: those that all fields allow; None allows all."""

    bias: tf.Tensor  # float32 [B, 1, S] or [B, R, S], added to the scores: 0 for a key to be seen, else `HIDDEN_SCORE`
    query_documents: tf.Tensor | None = None  # int32 [B, R], each of which sees keys of the same document alone
    key_documents: tf.Tensor | None = None  # int32 [B, S], together with the former
    last_keys: tf.Tensor | None = None  # int32 [B, R] or [1, R], the last that each query sees


def visible_keys(
    bias: tf.Tensor,
    document_ids: tf.Tensor | None,
    is_causal: bool,
    output_positions: tf.Tensor | None,
) -> VisibleKeys:
    """Returns the keys that queries at positions int [B, R], or all, see; the bias is [B, 1, S] or [B, S, S]."""
    document_ids = document_ids if document_ids is None else tf.cast(document_ids, tf.int32)
    query_documents = document_ids
    last_keys = None
    if output_positions is not None:
        # Gathers are cheap here: nothing is differentiated through them.
        if bias.shape[1] != 1:
            bias = tf.gather(bias, output_positions, batch_dims=1)
        if document_ids is not None:
            query_documents = tf.gather(document_ids, output_positions, batch_dims=1)
    if is_causal:
        last_keys = tf.range(_length(bias))[None] if output_positions is None else tf.cast(output_positions, tf.int32)
    return VisibleKeys(bias, query_documents, document_ids, last_keys)


def bias_of(visible: VisibleKeys) -> tf.Tensor:
    """Returns the bias of the scores, float32 [B, 1, S] or [B, R, S]."""
    bias = visible.bias
    if visible.key_documents is not None:
        is_same = tf.equal(visible.query_documents[:, :, None], visible.key_documents[:, None])
        bias = tf.where(is_same, bias, HIDDEN_SCORE)
    if visible.last_keys is not None:
        # The barrier keeps the compiler from writing S^2 comparisons of constants into the program.
        (key_positions,) = optimization_barrier([tf.range(_length(bias))])
        bias = tf.where(key_positions <= visible.last_keys[:, :, None], bias, HIDDEN_SCORE)
    return bias


def _length(bias):
    return bias.shape[2] or tf.shape(bias)[2]


# Keys and values of the tokens so far, so that each further token is computed alone.
#
# Each application of a block has its own, whose columns are written as tokens come. A causal model's tokens see no
# later ones, so the unwritten rest is never seen, and nothing has to be masked.
#
# python -m benchmarks.generation      (time on a CPU, with it and without)


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


# The last block computes only the positions that are read afterwards, with keys and values of every position.
#
# For base at length 512 that saves 6% of a step's products.
#
# python -m benchmarks.tpu_step --without=output_positions     (a TPU's compiler's figures without it)


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
