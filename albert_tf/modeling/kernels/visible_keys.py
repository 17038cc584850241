"""Which keys a query sees, in few numbers that kernels compare: no [S, S] for each example is written to memory."""

import typing

import tensorflow as tf

from albert_tf.compilation.target import optimization_barrier

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
