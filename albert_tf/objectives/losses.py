"""Losses and metrics that several objectives share."""

import tensorflow as tf

from albert_tf.objectives.objective import WeightedSum


def weighted_cross_entropy(logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor) -> tuple[WeightedSum, WeightedSum]:
    """Returns loss and accuracy, each as (sum, weight).

    Args:
        logits: float32 [..., classes].
        labels: int [...].
        weights: float32 [...], 0 for what doesn't count.
    """
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    is_right = tf.cast(tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels), tf.float32)
    total = tf.reduce_sum(weights)
    return (tf.reduce_sum(losses * weights), total), (tf.reduce_sum(is_right * weights), total)
