"""Stands for one of many replicas while its program is compiled, where no replicas are there to run it."""

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.distribute.one_device_strategy import OneDeviceExtended


class ReplicaStrategy(tf.distribute.Strategy):
    """Runs one replica's program; where it would talk to the others, it puts XLA's all-reduce into the program.

    TPUStrategy's own operation for that, CrossReplicaSum, is known only to the compiler of a TPU that is there.
    """

    is_compiled_for_tpu = True

    def __init__(self, num_replicas: int, runs_pallas_kernels: bool = True):
        super().__init__(_ReplicaExtended(self, num_replicas))
        self.runs_pallas_kernels = runs_pallas_kernels


class _ReplicaExtended(OneDeviceExtended):
    def __init__(self, container_strategy, num_replicas):
        super().__init__(container_strategy, "/cpu:0")
        self._num_replicas = num_replicas

    @property
    def _num_replicas_in_sync(self):
        return self._num_replicas

    def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
        return [self._reduce_to(reduce_op, value, None, options) for value, _ in value_destination_pairs]

    def _reduce_to(self, reduce_op, value, destinations, options):
        if self._num_replicas == 1:
            return value
        total = gen_xla_ops.xla_all_reduce(
            input=tf.convert_to_tensor(value),
            group_assignment=np.arange(self._num_replicas, dtype=np.int32)[None],
            reduce_op="Add",
            mode="CrossReplica",
        )
        return total / self._num_replicas if reduce_op == tf.distribute.ReduceOp.MEAN else total
