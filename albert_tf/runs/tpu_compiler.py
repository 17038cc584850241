"""Compiles a TensorFlow function with the compiler inside libtpu, for TPUs that this machine doesn't have.

TensorFlow lowers the function to StableHLO, which goes to the TPU compiler through a client of JAX that only compiles.
Needs the extra `tpu-compile`.
"""

import collections.abc
import dataclasses
import importlib.metadata
import json
import os
import re
import time
import types
import typing

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.distribute.one_device_strategy import OneDeviceExtended

from albert_tf.base.errors import InputError, first_line, with_extra
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import TASKS
from albert_tf.objectives import OBJECTIVES, Objective, make_objective
from albert_tf.objectives.objective import BatchSpec, with_batch_size
from albert_tf.optimization import LearningRateSchedule, make_optimizer
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.training.train_state import MAIN_MODEL, TrainState, learnt_variables
from albert_tf.training.train_step import make_replica_step

_LIBTPU_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",  # a machine without TPU has nobody to ask about itself
    # Nor does it know these, and libtpu complains. What is compiled for follows from the topology alone.
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    # The lock is for those who share a TPU; two processes only share the compiler.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


class OutOfMemoryError(InputError):
    """A step takes more memory than the TPU has."""


class UnsupportedOperationError(InputError):
    """A step holds something that XLA can't compile."""


@dataclasses.dataclass(frozen=True)
class CompiledStep:
    argument_bytes: int  # HBM that variables and the batch take
    temporary_bytes: int  # HBM that is needed while it runs, besides
    code_bytes: int  # HBM of the program itself
    output_bytes: int  # HBM of the results, those included that take the place of arguments
    alias_bytes: int  # how much of the results does that
    flops: float  # the body of a loop is counted once
    bytes_accessed: float  # what all operations together read and write, counted likewise
    compile_seconds: float
    # The optimized program in XLA's notation. None where XLA can't write down what it made: it fails for some programs
    # that add gradients up while they compute.
    text: str | None = dataclasses.field(repr=False)


def lower(function, arguments: list[tf.Tensor]) -> str:
    """Returns a function of tensors as StableHLO text; of the arguments only shape and dtype matter.

    It may read and assign variables. An UnsupportedOperationError if an operation, named in the message, or a shape
    that depends on values can't be compiled.
    """
    traced = tf.function(function, jit_compile=True, autograph=False)
    try:
        program = traced.experimental_get_compiler_ir(*arguments)(stage="stablehlo", platform_name="CPU")
    except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError, TypeError, ValueError) as error:
        raise UnsupportedOperationError(f"XLA can't compile the step: {_sentence(error)}") from error
    dynamic = re.search(r"tensor<[^>]*\?[^>]*>", program)
    if dynamic:
        raise UnsupportedOperationError(f"XLA can't compile the step: a shape depends on values ({dynamic[0]})")
    # The TPU compiler does not know this way of saying "the same value".
    program = re.sub(r"mhlo\.copy (%[\w#.]+) :", r"stablehlo.optimization_barrier \1 :", program)
    return re.sub(r'dense<"0x([0-9A-Fa-f]+)"> : tensor<([0-9x]+)xi1>', _spell_booleans, program)


def _spell_booleans(found):
    """Spells out each boolean of a long constant: the two libraries pack bits in other ways."""
    digits, shape = found.groups()
    sizes = [int(size) for size in shape.split("x")]
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(digits), np.uint8), bitorder="little")[: np.prod(sizes)]
    return f"dense<{json.dumps(bits.astype(bool).reshape(sizes).tolist())}> : tensor<{shape}xi1>"


def compile_program(program: str, topology: str, num_replicas: int = 1) -> CompiledStep:
    """Compiles the result of `lower` for one of several equal chips of a topology such as "v5e:2x2".

    An OutOfMemoryError if it does not fit the chip's memory, an UnsupportedOperationError if the compiler refuses it.
    """
    for name, value in _LIBTPU_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import libtpu  # noqa: F401  (JAX looks for it only when it is too late for a sentence)
        from jax._src.interpreters import mlir
        from jax._src.lib.mlir import ir
        from jax.errors import JaxRuntimeError
        from jax.experimental import topologies
        from jaxlib import xla_client
    except ImportError as error:
        raise InputError(f"the TPU compiler is missing ({error}); pip install {with_extra('tpu-compile')}") from error

    devices = topologies.get_topology_desc(topology_name=topology, platform="tpu").devices[:num_replicas]
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = num_replicas, 1
    options.device_assignment = xla_client.DeviceAssignment.create(np.array([[device.id] for device in devices]))
    started_at = time.monotonic()
    with mlir.make_ir_context():
        module = ir.Module.parse(program)
        try:
            executable = devices[0].client.compile(module, xla_client.DeviceList(tuple(devices)), options)
        except JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" in str(error):
                raise OutOfMemoryError(first_line(error)) from error
            raise UnsupportedOperationError(f"the TPU compiler refuses the step: {_sentence(error)}") from error
    compile_seconds = time.monotonic() - started_at
    try:
        text = executable.hlo_modules()[0].to_string()
    except JaxRuntimeError:
        text = None
    memory, cost = executable.get_compiled_memory_stats(), executable.cost_analysis()
    return CompiledStep(
        memory.argument_size_in_bytes,
        memory.temp_size_in_bytes,
        memory.generated_code_size_in_bytes,
        memory.output_size_in_bytes,
        memory.alias_size_in_bytes,
        cost.get("flops", 0.0),
        cost.get("bytes accessed", 0.0),
        compile_seconds,
        text,
    )


def compiler_version() -> str | None:
    """Returns libtpu's version, None if it is not installed."""
    try:
        return importlib.metadata.version("libtpu")
    except importlib.metadata.PackageNotFoundError:
        return None


def _sentence(error):
    """Returns the line of an error that names the operation, or else its first."""
    naming = [line.strip() for line in str(error).splitlines() if "unsupported operation" in line.lower()]
    return naming[0] if naming else first_line(error)


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


def planned_names() -> list[str]:
    """Returns the names of everything that can be planned: objectives of pre-training, and tasks."""
    return sorted([*OBJECTIVES, *TASKS])


def planned_objective(
    name: str,
    config: AlbertConfig,
    max_predictions_per_seq: int | None = None,
    settings: collections.abc.Mapping[str, typing.Any] = types.MappingProxyType({}),
) -> Objective:
    """Returns the objective of one of `planned_names`; by default predictions are 15% of a length."""
    if name in TASKS:
        if settings:
            raise InputError(f"`{next(iter(settings))}` has no meaning for `task={name}`; leave it out")
        return TASKS[name](config)
    return make_objective(name, config, settings=settings, masking=MaskingOptions(max_predictions_per_seq))


def lower_step(
    objective: Objective,
    batch_size: int,
    max_seq_length: int,
    optimizer: str = "lamb",
    dtype: str = "mixed_bfloat16",
    remat: str = "none",
    attention: str = "auto",
    gradient_accumulation_steps: int = 1,
    num_replicas: int = 1,
    runs_pallas_kernels: bool = True,
    strategy: tf.distribute.Strategy | None = None,
) -> str:
    """Returns one replica's training step, with gradient all-reduce, as StableHLO text, for a TPU or `strategy`."""
    strategy = strategy or ReplicaStrategy(num_replicas, runs_pallas_kernels)
    with strategy.scope():
        models = objective.make_models(remat=remat, attention=attention, dtype=dtype)
        variables = learnt_variables(objective, models)
        compute_dtype = models[MAIN_MODEL].compute_dtype
        schedule = LearningRateSchedule(1e-3, 1000, 10)
        made_optimizer = make_optimizer(
            optimizer, variables, schedule, compute_dtype=compute_dtype, followers=objective.followers(models)
        )
    state = TrainState.create(strategy, objective, models, made_optimizer)
    replica_step = make_replica_step(state, 0, gradient_accumulation_steps)
    batch = zeros(with_batch_size(objective.batch_spec(max_seq_length), batch_size))

    def step(number, *values):
        strategy.run(replica_step, args=(dict(zip(batch, values)), number))

    return lower(step, [tf.constant(0), *batch.values()])


def uncounted_flops(objective: Objective, batch_size: int, max_seq_length: int) -> int:
    """Returns how many operations of a step the compiler leaves out, because it counts the body of a loop once."""
    return objective.uncounted_flops(with_batch_size(objective.batch_spec(max_seq_length), batch_size))


def zeros(batch_spec: BatchSpec) -> dict[str, tf.Tensor]:
    return {name: tf.zeros(spec.shape, spec.dtype) for name, spec in batch_spec.items()}
