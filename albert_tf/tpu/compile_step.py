"""Compiles a TensorFlow function with the compiler inside libtpu, for TPUs that this machine doesn't have.

TensorFlow lowers the function to StableHLO, which goes to the TPU compiler through a client of JAX that only compiles.
Needs the extra `tpu-compile`.
"""

import dataclasses
import importlib.metadata
import json
import os
import re
import time

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError, first_line, with_extra

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
