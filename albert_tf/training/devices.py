"""Choosing where to run, and telling it: what knows TPU from GPU from CPU, and one machine from several."""

import collections
import collections.abc
import contextlib
import glob
import json
import os
import socket
import threading
import typing

import tensorflow as tf
from tensorflow.python.distribute.one_device_strategy import OneDeviceExtended

from albert_tf.base.errors import InputError, first_line
from albert_tf.base.startup import num_usable_cores

_Result = typing.TypeVar("_Result")


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether this process writes checkpoints and results: of several machines only one does."""
    return not has_several_workers(strategy) or _leads(strategy.cluster_resolver)


def is_chief_by_environment() -> bool:
    """Returns the same before there is a strategy, by what TF_CONFIG says of this process."""
    return _leads(tf.distribute.cluster_resolver.TFConfigClusterResolver())


def is_alone_by_environment() -> bool:
    """Returns whether TF_CONFIG names no other process."""
    roles = tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec().as_dict()
    return sum(map(len, roles.values())) <= 1


def _leads(resolver):
    roles = resolver.cluster_spec().as_dict()
    is_first = resolver.task_type == ("chief" if "chief" in roles else "worker") and resolver.task_id == 0
    return is_first or not roles


def has_several_workers(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether processes on several machines run this same program together."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


class Agreement:
    """Lets the processes that run this program decide together; all of them must ask at the same points."""

    def __init__(self, strategy: tf.distribute.Strategy):
        self._is_alone, self._is_chief = not has_several_workers(strategy), is_chief(strategy)

        @tf.function(autograph=False)
        def add(value):
            return strategy.reduce("SUM", strategy.run(tf.identity, args=(value,)), axis=None)

        self._add = add

    def any(self, is_true: bool) -> bool:
        """Returns whether something is true in any of the processes."""
        return is_true if self._is_alone else int(self._add(tf.constant(int(is_true), tf.int64))) > 0

    def of_chief(self, value: int) -> int:
        """Returns the value that the chief has, less than 2**63; an InputError if another process is gone."""
        if self._is_alone:
            return value
        with _telling_who_is_gone():
            return int(self._add(tf.constant(value if self._is_chief else 0, tf.int64)))

    def run(self, action: collections.abc.Callable[[], _Result]) -> _Result:
        """Runs a function in all workers and returns its result; where it fails in one, or one is gone, all end."""
        result, error = None, None
        try:
            result = action()
        except InputError as failure:
            error = failure
        with _telling_who_is_gone():
            fails = self.any(error is not None)
        if fails:
            raise error or InputError("another worker can't continue; see its messages")
        return result


@contextlib.contextmanager
def _telling_who_is_gone():
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
        raise InputError(
            f"another worker of this run is gone ({first_line(error)}); see what it says, and start all of them again "
            "with the same command"
        ) from error


JIT_COMPILE_CHOICES = ("auto", "true", "false")

# Ampere, the first that computes in bfloat16 and that cuDNN's fused attention runs on.
_AMPERE = (8, 0)


class WholeStepStrategy(tf.distribute.Strategy):
    """Runs on one device, and has XLA compile the functions that `run` is given, each shape once, in up to a minute.

    Shapes should be few. TensorFlow's own runtime hands a GPU one operation after the other, each of which reads and
    writes a whole tensor; XLA fuses what stands between the matrix products, and has attention by cuDNN besides
    (`kernels.cudnn_attention`). `base.compilation` tells the model so.

    python -m benchmarks.gpu_step        (a step on a GPU, beside Hugging Face's)
    python -m benchmarks.train_step --only=albert_tf,albert_tf_xla        (on a CPU, beside operation by operation)
    """

    compiles_whole_steps = True

    def __init__(self, device: str):
        super().__init__(_WholeStepExtended(self, device))
        self.runs_cudnn_attention = has_ampere(device)


class _WholeStepExtended(OneDeviceExtended):
    def _call_for_each_replica(self, fn, args, kwargs):
        call_operations = super()._call_for_each_replica

        @tf.function(jit_compile=True, autograph=False)
        def compiled(args, kwargs):
            return call_operations(fn, args, kwargs)

        return compiled(args, kwargs)


def is_of_gpus(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether a strategy runs on GPUs."""
    mirrored = tf.distribute.MirroredStrategy, tf.distribute.MultiWorkerMirroredStrategy
    if not isinstance(strategy, (WholeStepStrategy, *mirrored)):
        return False
    return tf.DeviceSpec.from_string(strategy.extended.worker_devices[0]).device_type == "GPU"


def has_ampere(device: str) -> bool:
    """Returns whether a device is an NVIDIA GPU of the generation of Ampere (compute capability 8.0) or later."""
    spec = tf.DeviceSpec.from_string(device)
    if spec.device_type != "GPU":
        return False
    gpu = tf.config.list_physical_devices("GPU")[spec.device_index or 0]
    return tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0)) >= _AMPERE


def make_strategy(
    use_tpu: bool = False,
    tpu_name: str | None = None,
    tpu_zone: str | None = None,
    gcp_project: str | None = None,
    num_cpu_replicas: int = 1,
    tpu_timeout: float = 300.0,
    jit_compile: str = "auto",
) -> tf.distribute.Strategy:
    """Returns the strategy to train with.

    A TPU if asked for; else the machines that the environment variable TF_CONFIG names; else all GPUs of this machine;
    else its CPU, as one replica or several. With several machines call it before TensorFlow has done anything else.

    Args:
        use_tpu: Whether to run on a TPU.
        tpu_name: Name or grpc:// address of a Cloud TPU, in `tpu_zone` of `gcp_project`; None or "local" for the TPU of
            this machine.
        num_cpu_replicas: More than one is for testing what several cores do.
        tpu_timeout: Seconds after which a TPU that doesn't answer is given up.
        jit_compile: Whether XLA compiles whole steps, "true" or "false"; "auto" for where there is one GPU. A TPU's
            always are, those of several GPUs, CPU replicas or machines never.

    Raises:
        InputError: The TPU can't be reached, one is named without `use_tpu`, TF_CONFIG can't be used, or
            `jit_compile` can't be had.
    """
    if use_tpu:
        if jit_compile == "false":
            raise InputError("`jit_compile=false`: what runs on a TPU is always compiled; leave it out")
        return _make_tpu_strategy(tpu_name, tpu_zone, gcp_project, tpu_timeout)
    for name, value in {"tpu_name": tpu_name, "tpu_zone": tpu_zone, "gcp_project": gcp_project}.items():
        if value:
            raise InputError(
                f"`{name}={value}` without `use_tpu` would train on this machine's own devices; add `use_tpu`, or "
                f"leave `{name}` out"
            )
    if names_several_machines():
        if num_cpu_replicas > 1:
            raise InputError(
                f"`num_cpu_replicas={num_cpu_replicas}`: where TF_CONFIG names several machines, each is one replica; "
                "leave it out"
            )
        _check_one_replica(jit_compile, "several machines")
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) == 1 and jit_compile != "false":
        return WholeStepStrategy("/gpu:0")
    if gpus:
        if len(gpus) > 1:
            _check_one_replica(jit_compile, f"{len(gpus)} GPUs")
        return tf.distribute.MirroredStrategy([f"/gpu:{index}" for index in range(len(gpus))])
    if num_cpu_replicas > 1:
        _check_one_replica(jit_compile, f"{num_cpu_replicas} CPU replicas")
    elif jit_compile == "true":
        return WholeStepStrategy("/cpu:0")
    cpu = tf.config.list_physical_devices("CPU")[0]
    if num_cpu_replicas > len(tf.config.get_logical_device_configuration(cpu) or [cpu]):
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * num_cpu_replicas)
    devices = [f"/cpu:{index}" for index in range(num_cpu_replicas)]
    # TensorFlow's collectives, the default, allow only one number of CPU replicas in the life of a process.
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())


def _check_one_replica(jit_compile, found):
    if jit_compile == "true":
        raise InputError(
            f"`jit_compile=true` is for one GPU or one CPU, but there are {found}; leave it out, or let TensorFlow see "
            "a single GPU (CUDA_VISIBLE_DEVICES=0)"
        )


def names_several_machines():
    """Returns whether TF_CONFIG names machines that train together."""
    text = os.environ.get("TF_CONFIG") or "{}"
    try:
        configuration = json.loads(text)
        roles, task = configuration.get("cluster", {}).keys(), dict(configuration.get("task", {}))
        is_usable = not roles or (roles <= {"chief", "worker"} and task["type"] in roles and "index" in task)
    except (ValueError, AttributeError, KeyError, TypeError):
        is_usable = False
    if not is_usable:
        raise InputError(
            'the environment variable TF_CONFIG must be a JSON object whose "cluster" gives every machine the role '
            'worker, or one of them the role chief, and whose "task" names this machine\'s type and index. Received: '
            f"{text[:200]}"
        )
    return bool(roles)


def _make_tpu_strategy(tpu_name, tpu_zone, gcp_project, timeout):
    name = tpu_name or os.environ.get("TPU_NAME") or "local"
    outcome = {}

    def connect():
        try:
            resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name, zone=tpu_zone, project=gcp_project)
            if name != "local":
                tf.config.experimental_connect_to_cluster(resolver)
            tf.tpu.experimental.initialize_tpu_system(resolver)
            outcome["resolver"] = resolver
        except Exception as error:  # the resolver raises whatever its many back ends do
            outcome["error"] = error

    advice = "check `tpu_name`, `tpu_zone` and `gcp_project`, or run without `use_tpu`"
    no_answer = f"`use_tpu`: the TPU {name!r} did not answer within `tpu_timeout={timeout:g}` seconds; {advice}"
    try:
        _knock(name, timeout)
    except TimeoutError as error:
        raise InputError(no_answer) from error
    except (OSError, ValueError) as error:
        raise InputError(f"`use_tpu`: can't reach the TPU {name!r} ({error}); {advice}") from error
    # In a thread of its own, because TensorFlow waits for a TPU without end.
    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(timeout)
    if not outcome:
        raise InputError(no_answer)
    if "error" in outcome:
        error = outcome["error"]
        raise InputError(f"`use_tpu`: can't reach the TPU {name!r} ({first_line(error)}); {advice}") from error
    return tf.distribute.TPUStrategy(outcome["resolver"])


def _knock(name, timeout):
    """Connects to the address of a TPU: where nobody listens, TensorFlow would only try again."""
    if name.startswith("grpc://"):
        host, _, port = name.removeprefix("grpc://").rpartition(":")
        socket.create_connection((host, int(port)), timeout=timeout).close()


def strategy_of(variables: dict[str, tf.Variable]) -> tf.distribute.Strategy:
    """Returns the strategy that variables were created under; without one, a strategy of the one device they are on."""
    variable = next(iter(variables.values()))
    if isinstance(variable, tf.distribute.DistributedValues):
        return variable.distribute_strategy
    # What TensorFlow keeps there is how a strategy of one device, whose variables are ordinary ones, is found again.
    return getattr(variable, "_distribute_strategy", None) or tf.distribute.OneDeviceStrategy(variable.device)


_PCI_DEVICES = "/sys/bus/pci/devices"
_GOOGLE = "0x1ae0"
# Chips by their PCI number, as JAX knows them.
_TPU_CHIPS = {
    "0x0027": "v2 or v3",
    "0x005e": "v4",
    "0x0062": "v5p",
    "0x0063": "v5e",
    "0x006f": "v6e",
    "0x0076": "7x",
}
# There where the drivers are.
_TPU_FILES = ("/dev/accel0",)
_NVIDIA_FILES = ("/proc/driver/nvidia/version", "/dev/nvidia0")


def describe_device(strategy: tf.distribute.Strategy) -> str:
    """Returns one line that tells kind and number of what a strategy computes on."""
    devices = _devices(strategy)
    if devices[0].device_type == "TPU":
        return f"device: {_describe_tpu(devices)}"
    machines = strategy.num_replicas_in_sync // len(devices)
    is_gpu = devices[0].device_type == "GPU"
    description = _describe_gpus(len(devices)) if is_gpu else _describe_cpu(len(devices))
    if machines > 1:
        description += f" on each of {machines} machines"
    if isinstance(strategy, WholeStepStrategy):
        description += ", whole steps compiled by XLA"
    elif is_gpu:
        description += ", one operation after the other"
    return f"device: {description}"


def has_tpu() -> bool:
    """Returns whether this machine has a TPU, or its environment names one, whether or not TensorFlow sees it."""
    is_named = bool(os.environ.get("TPU_NAME")) or os.environ.get("PJRT_DEVICE") == "TPU"
    return is_named or bool(_find_tpu_chip()) or any(map(os.path.exists, _TPU_FILES))


def unused_device_warnings(strategy: tf.distribute.Strategy) -> list[str]:
    """Returns a line for each faster device that this machine has and the strategy leaves unused, and what to do."""
    kind = _devices(strategy)[0].device_type
    warnings = []
    if kind != "TPU" and has_tpu():
        warnings.append("warning: there is a TPU, which is not used; pass `use_tpu` to train on it")
    # An empty list of visible devices is how GPUs are turned off on purpose.
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    has_gpu = any(map(os.path.exists, _NVIDIA_FILES)) and not is_hidden
    if kind == "CPU" and has_gpu and not tf.config.list_physical_devices("GPU"):
        warnings.append(
            "warning: this machine has an NVIDIA GPU, but TensorFlow sees none; install what it needs: "
            f"pip install 'tensorflow[and-cuda]=={tf.__version__}'"
        )
    return warnings


def _devices(strategy):
    return [tf.DeviceSpec.from_string(device) for device in strategy.extended.worker_devices]


def _describe_cpu(num_replicas):
    cores = num_usable_cores()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    replicas = f", {num_replicas} replicas" if num_replicas > 1 else ""
    return f"1 CPU ({cores} core{'s' * (cores > 1)}, {memory:.1f} GiB){replicas}"


def _describe_gpus(count):
    gpus = tf.config.list_physical_devices("GPU")[:count]
    names = [tf.config.experimental.get_device_details(gpu).get("device_name", "GPU") for gpu in gpus]
    return ", ".join(f"{number} x {name}" for name, number in collections.Counter(names).items())


def _describe_tpu(devices):
    hosts = len({(device.job, device.task) for device in devices})
    # A TPU that is reached over the network is none of this machine's.
    chip = _find_tpu_chip() if devices[0].job == "localhost" else None
    cores = f"{len(devices)} core{'s' * (len(devices) > 1)}"
    return f"TPU{f' {chip}' if chip else ''}, {cores}{f' on {hosts} hosts' if hosts > 1 else ''}"


def _find_tpu_chip():
    """Returns the kind of the TPU chips in this machine, None if there are none."""
    for vendor_file in sorted(glob.glob(f"{_PCI_DEVICES}/*/vendor")):
        if _read(vendor_file) == _GOOGLE:
            chip = _TPU_CHIPS.get(_read(os.path.join(os.path.dirname(vendor_file), "device")))
            if chip:
                return chip
    return None


def _read(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()
