"""Averages that stay on the device: every metric is a sum and a weight, added up over examples and replicas.

An average is exact whatever the batch size and the number of replicas, because examples that only pad a batch carry
weight zero.
"""

import tensorflow as tf


class MetricSums:
    """Running sums of named metrics.

    Create it inside a strategy's scope. All replicas hold the same sums, so that a checkpoint of them is exact.

    Args:
        names: The metrics.

    Attributes:
        names: Likewise.
        variable: float32 [2, metrics]: the sums of the values and the sums of their weights.
    """

    def __init__(self, names: tuple[str, ...]):
        self.names = tuple(names)
        self.variable = tf.Variable(
            tf.zeros([2, len(self.names)]),
            trainable=False,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            name="metric_sums",
        )

    def update(self, values: dict[str, tuple[tf.Tensor, tf.Tensor]], is_counted: tf.Tensor | bool = True) -> None:
        """Adds what all replicas measured; call it inside a replica.

        Args:
            values: For each metric (sum, weight), two float32 scalars over the replica's own examples.
            is_counted: Scalar bool, the same on all replicas; if not, nothing is added.
        """
        sums, weights = zip(*(values[name] for name in self.names))
        context = tf.distribute.get_replica_context()
        measured = context.all_reduce("SUM", tf.stack([tf.stack(sums), tf.stack(weights)]))
        # A product would not do: 0 times infinity is not 0.
        counted = tf.where(is_counted, measured, tf.zeros_like(measured))
        context.merge_call(self._add_everywhere, args=(counted,))

    def _add_everywhere(self, strategy, measured):
        strategy.extended.update(self.variable, lambda variable, more: variable.assign_add(more), args=(measured,))

    def result(self) -> dict[str, float]:
        """Returns the averages since the last call, without those that nothing was added to, and starts anew."""
        sums, weights = self.variable.numpy()
        self.variable.assign(tf.zeros(self.variable.shape))
        return {name: float(s / w) for name, s, w in zip(self.names, sums, weights) if w}
