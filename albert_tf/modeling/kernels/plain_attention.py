"""Attention by TensorFlow's own operations, with a hand-written softmax that keeps only the probabilities.

python -m benchmarks.train_step --only=albert_tf,products    (time on a CPU)
"""

import tensorflow as tf

from albert_tf.base.compilation import fused
from albert_tf.modeling.kernels.elementwise import dropout
from albert_tf.modeling.kernels.positions import VisibleKeys, bias_of
from albert_tf.modeling.kernels.relative_scores import Distances, relative_scores


def plain_attention(
    projections: list[tf.Tensor],
    visible: VisibleKeys,
    seed: tf.Tensor | None,
    head_size: int,
    dropout_rate: float,
    distances: Distances | None = None,
) -> tf.Tensor:
    """Returns the weighted mean of the values that each head's queries see, [B, R, H].

    Projections are queries, keys and values side by side [B, S, 3 H], or queries [B, R, H] and the other two, side by
    side [B, S, 2 H] or one by one. `visible` gets no gradient; no seed means no dropout. With distances R is S.
    """
    return context_and_probabilities(projections, visible, seed, head_size, dropout_rate, distances)[0]


def context_and_probabilities(projections, visible, seed, head_size, dropout_rate, distances=None) -> list[tf.Tensor]:
    """Returns the result of `plain_attention`, and the probabilities after dropout, [B, N, R, S]."""
    return attend_by_heads(*heads_of(projections, head_size), visible, seed, dropout_rate, distances)


def attend_by_heads(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    visible: VisibleKeys,
    seed: tf.Tensor | None = None,
    dropout_rate: float = 0.0,
    distances: Distances | None = None,
) -> list[tf.Tensor]:
    """Returns the weighted mean of visible values, [B, R, H], and the probabilities after dropout, [B, N, R, S].

    Takes queries [B, N, R, head_size], keys and values [B, N, S, head_size].
    """
    num_heads, head_size = query.shape[1], query.shape[-1]
    scores, num_terms = tf.matmul(query, key, transpose_b=True), 1
    if distances is not None:
        scores += relative_scores(query, key, distances)
        num_terms += distances.num_terms
    probs = _scaled_softmax(scores, (num_terms * head_size) ** -0.5, visible)
    probs = dropout(probs, dropout_rate, seed)
    context = tf.transpose(tf.matmul(probs, value), [0, 2, 1, 3])
    return [tf.reshape(context, [*tf.unstack(tf.shape(context))[:2], num_heads * head_size]), probs]


def heads_of(projections: list[tf.Tensor], head_size: int) -> list[tf.Tensor]:
    """Returns queries, keys and values of projections as for `plain_attention`, each [B, N, S, head_size]."""
    hidden_size = sum(projection.shape[-1] for projection in projections) // 3
    return [heads for projection in projections for heads in split_heads(projection, hidden_size, head_size)]


def split_heads(projection: tf.Tensor, hidden_size: int, head_size: int) -> list[tf.Tensor]:
    """Splits one array [B, S, count H] of queries, keys or values into arrays [B, N, S, head_size]."""
    batch_size, length = tf.unstack(tf.shape(projection))[:2]
    count = projection.shape[-1] // hidden_size
    split = tf.reshape(projection, [batch_size, length, count, hidden_size // head_size, head_size])
    return tf.unstack(tf.transpose(split, [2, 0, 3, 1, 4]), count)


def _scaled_softmax(scores, scale, visible):
    """Returns softmax(scale scores + bias of the visible keys), computed in float32."""

    @tf.custom_gradient
    def apply(scores):
        probs = _softmax_forward(scores, scale, visible)
        return probs, lambda upstream: _softmax_backward(probs, upstream, scale)

    return apply(scores)


@fused
def _softmax_forward(scores, scale, visible):
    bias = bias_of(visible)[:, None]
    return tf.cast(tf.nn.softmax(tf.cast(scores, tf.float32) * scale + bias), scores.dtype)


@fused
def _softmax_backward(probs, upstream, scale):
    dtype = probs.dtype
    probs, upstream = tf.cast(probs, tf.float32), tf.cast(upstream, tf.float32)
    mean = tf.reduce_sum(probs * upstream, axis=-1, keepdims=True)
    return tf.cast(probs * (upstream - mean) * scale, dtype)
