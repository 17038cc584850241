"""Averages that stay on the device: every metric is a sum and a weight, added up over examples and replicas.

So averages are exact for any batch size and number of replicas: examples that only pad a batch carry weight zero.
"""

import collections.abc
import types

import numpy as np
import tensorflow as tf


class MetricSums:
    """Running sums of named metrics, some of them vectors of a length; create it inside a strategy's scope.

    All replicas hold the same `variable`, so that a checkpoint is exact: float32 [2, numbers], the sums of the values
    and of their weights.
    """

    def __init__(self, names: tuple[str, ...], lengths: collections.abc.Mapping[str, int] = types.MappingProxyType({})):
        self.names = tuple(names)
        self._lengths = dict(lengths)
        self.variable = tf.Variable(
            tf.zeros([2, sum(self._lengths.get(name, 1) for name in self.names)]),
            trainable=False,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            name="metric_sums",
        )

    def update(self, values: dict[str, tuple[tf.Tensor, tf.Tensor]], is_counted: tf.Tensor | bool = True) -> None:
        """Adds what all replicas measured, unless not `is_counted`, the same on all; call it inside a replica.

        Each metric is (sum, weight), two float32 scalars over the replica's own examples, or two vectors.
        """
        sums, weights = zip(*(values[name] for name in self.names))
        context = tf.distribute.get_replica_context()
        measured = context.all_reduce("SUM", tf.stack([_joined(sums), _joined(weights)]))
        # A product would not do: 0 times infinity is not 0.
        counted = tf.where(is_counted, measured, tf.zeros_like(measured))
        context.merge_call(self._add_everywhere, args=(counted,))

    def _add_everywhere(self, strategy, measured):
        strategy.extended.update(self.variable, lambda variable, more: variable.assign_add(more), args=(measured,))

    def take(self) -> tuple[dict[str, float], dict[str, tuple[np.ndarray, np.ndarray]]]:
        """Returns averages, without those that nothing was added to, and sums and weights of vectors; starts anew."""
        values = self.variable.numpy()
        self.variable.assign(tf.zeros(self.variable.shape))
        averages, vectors, begin = {}, {}, 0
        for name in self.names:
            sums, weights = values[:, begin : begin + self._lengths.get(name, 1)]
            begin += len(sums)
            if name in self._lengths:
                vectors[name] = sums, weights
            elif weights[0]:
                averages[name] = float(sums[0] / weights[0])
        return averages, vectors


def _joined(values):
    """Returns scalars and vectors as one vector."""
    values = [tf.convert_to_tensor(value, tf.float32) for value in values]
    if all(value.shape.rank == 0 for value in values):
        return tf.stack(values)
    return tf.concat([tf.reshape(value, [-1]) for value in values], axis=0)
