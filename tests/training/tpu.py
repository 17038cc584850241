"""The TPU path without a TPU: TPUStrategy over made-up cores, and the compiler that is inside libtpu."""

import dataclasses
from unittest import mock

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.tpu import topology_pb2
from tensorflow.python.tpu import topology as tpu_topology
from tensorflow.python.tpu import tpu_system_metadata
from tiny_training import never

from albert_tf.training.train_state import TrainState
from albert_tf.training.train_step import make_train_function

NUM_CORES = 4


@dataclasses.dataclass(frozen=True)
class _Device:
    device_type: str
    index: int

    @property
    def name(self):
        return f"/job:localhost/replica:0/task:0/device:{self.device_type}:{self.index}"


class _Resolver(tf.distribute.cluster_resolver.ClusterResolver):
    """Describes one host with four cores, on two chips, to TPUStrategy: each core has variables of its own to make.

    Args:
        embedding_feature: What the topology says of the TPU; "V1" on v2 and v3.
    """

    task_type, task_id, environment, rpc_layer, _tpu = "localhost", 0, "", None, "local"

    def __init__(self, embedding_feature):
        self.tpu_hardware_feature = topology_pb2.TPUHardwareFeature(embedding_feature=embedding_feature)
        cores = [(x, 0, 0, core) for x in range(2) for core in range(2)]
        self.topology = tpu_topology.Topology(mesh_shape=[2, 1, 1, 2], device_coordinates=np.array([cores], np.int32))
        self._devices = [_Device("TPU", core) for core in range(NUM_CORES)]
        self._devices += [_Device("CPU", 0), _Device("TPU_SYSTEM", 0)]

    def master(self, *_, **__):
        return ""

    get_master = master

    def cluster_spec(self):
        return tf.train.ClusterSpec({})

    def get_job_name(self):
        return self.task_type

    def num_accelerators(self, *_, **__):
        return {"TPU": NUM_CORES}

    def get_tpu_system_metadata(self):
        return tpu_system_metadata.TPUSystemMetadata(
            num_cores=NUM_CORES,
            num_hosts=1,
            num_of_cores_per_host=NUM_CORES,
            topology=self.topology,
            devices=self._devices,
        )


def make_tpu_strategy(embedding_feature: str = "UNSUPPORTED") -> tf.distribute.TPUStrategy:
    """Returns the real TPUStrategy with four replicas; usable inside a `tf.Graph`, where nothing is executed."""
    resolver = _Resolver(embedding_feature)
    with mock.patch("tensorflow.python.tpu.tpu_strategy_util._INITIALIZED_TPU_SYSTEMS", {"": resolver.topology}):
        return tf.distribute.TPUStrategy(resolver)


class FixedBatch:
    """Stands for the iterator of a distributed data set while a step is traced: always gives the same batch."""

    def __init__(self, batch: dict):
        self._batch = batch

    def __next__(self):
        return {name: tf.convert_to_tensor(values) for name, values in self._batch.items()}


def trace_training(state: TrainState, batch: dict, gradient_accumulation_steps: int = 1) -> list:
    """Returns the operations of a loop of training steps; call it in the `tf.Graph` that the state was made in."""
    train_steps = make_train_function(state, 0, never(), gradient_accumulation_steps)
    return operations(train_steps.get_concrete_function(FixedBatch(batch), tf.TensorSpec([], tf.int32)).graph)


def operations(graph: tf.Graph) -> list[tf.compat.v1.NodeDef]:
    """Returns the operations of a graph and of every function in it."""
    definition = graph.as_graph_def()
    return [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
