"""The TPU path without a TPU: TPUStrategy over made-up cores, and the compiler that is inside libtpu."""

import dataclasses
import os
import re
from unittest import mock

import numpy as np
import tensorflow as tf
from tensorflow.python.tpu import topology as tpu_topology
from tensorflow.python.tpu import tpu_system_metadata
from tiny_training import never

from albert_tf.training.train_step import TrainState, make_train_function

NUM_CORES = 8


@dataclasses.dataclass(frozen=True)
class _Device:
    device_type: str
    index: int

    @property
    def name(self):
        return f"/job:localhost/replica:0/task:0/device:{self.device_type}:{self.index}"


class _Resolver(tf.distribute.cluster_resolver.ClusterResolver):
    """Describes one host with eight cores, on a mesh of four chips, to TPUStrategy."""

    task_type, task_id, environment, rpc_layer, _tpu = "localhost", 0, "", None, "local"

    def __init__(self):
        chips = [(x, y, 0, core) for x in range(2) for y in range(2) for core in range(2)]
        self.topology = tpu_topology.Topology(mesh_shape=[2, 2, 1, 2], device_coordinates=np.array([chips], np.int32))
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


def make_tpu_strategy() -> tf.distribute.TPUStrategy:
    """Returns the real TPUStrategy with eight replicas; usable inside a `tf.Graph`, where nothing is executed."""
    resolver = _Resolver()
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


def compile_for_tpu(function, arguments: list[tf.Tensor], topology: str = "v5e:2x2"):
    """Compiles a TensorFlow function with the compiler that runs on a TPU, for one chip.

    Args:
        function: Takes tensors; may read and assign variables.
        arguments: Concrete tensors.
        topology: Which TPU.

    Returns:
        The executable's memory statistics and its cost analysis.
    """
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")  # a machine without TPU has nobody to ask about itself
    # The lock is for those who share a TPU; tests in two processes only share the compiler.
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax.experimental import topologies
    from jaxlib import xla_client

    traced = tf.function(function, jit_compile=True)
    program = traced.experimental_get_compiler_ir(*arguments)(stage="stablehlo", platform_name="CPU")
    # The TPU compiler does not know this way of saying "the same value".
    program = re.sub(r"mhlo\.copy (%[\w#.]+) :", r"stablehlo.optimization_barrier \1 :", program)
    device = topologies.get_topology_desc(topology_name=topology, platform="tpu").devices[0]
    options = xla_client.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    options.device_assignment = xla_client.DeviceAssignment.create(np.array([[device.id]]))
    with mlir.make_ir_context():
        module = ir.Module.parse(program)
        executable = device.client.compile(module, xla_client.DeviceList((device,)), options)
    return executable.get_compiled_memory_stats(), executable.cost_analysis()
