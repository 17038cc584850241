"""Averages that stay on the device: every metric is a sum and a weight, added up over examples and replicas.

An average is exact whatever the batch size and the number of replicas, because examples that only pad a batch carry
weight zero.
"""

import tensorflow as tf


class MetricSums:
    """Running sums of named metrics.

    Create it inside a strategy's scope. Each replica adds to its own copy; reading adds the copies up.

    Args:
        names: The metrics.
    """

    def __init__(self, names: tuple[str, ...]):
        self.names = tuple(names)
        self._sums = tf.Variable(
            tf.zeros([2, len(self.names)]),
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
            name="metric_sums",
        )

    def add(self, values: dict[str, tuple[tf.Tensor, tf.Tensor]]) -> None:
        """Adds (sum, weight), two float32 scalars, for each metric; call it inside a replica."""
        sums, weights = zip(*(values[name] for name in self.names))
        self._sums.assign_add(tf.stack([tf.stack(sums), tf.stack(weights)]))

    def take(self) -> dict[str, float]:
        """Returns the averages since the last call (0 where nothing was added), and starts anew."""
        sums, weights = self._sums.read_value().numpy()
        self._sums.assign(tf.zeros_like(self._sums.read_value()))
        return {name: float(s / w) if w else 0.0 for name, s, w in zip(self.names, sums, weights)}


def weighted_cross_entropy(
    logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor
) -> tuple[tuple[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
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
