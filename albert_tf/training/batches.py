"""Global batches, split over replicas and hosts."""

import collections
import collections.abc
import enum
import glob
import os
import threading
import typing

import tensorflow as tf

from albert_tf.base.compilation import is_compiled_whole
from albert_tf.base.errors import InputError
from albert_tf.base.processes import num_usable_cores
from albert_tf.modeling.kernels.elementwise import part_of_batch
from albert_tf.objectives.objective import Batch
from albert_tf.training.devices import WholeStepStrategy

_Result = typing.TypeVar("_Result")


class BatchLengths(enum.Enum):
    """How many lengths batches may have."""

    ANY = enum.auto()  # each may be as short as its longest example
    FEW = enum.auto()  # each length is compiled once, so they should be few: powers of two
    ONE = enum.auto()  # all batches of a phase have one shape


def suitable_lengths(strategy: tf.distribute.Strategy) -> BatchLengths:
    """Returns how many lengths suit a strategy: a TPU compiles a step for one."""
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return BatchLengths.ONE
    return BatchLengths.FEW if isinstance(strategy, WholeStepStrategy) else BatchLengths.ANY


def has_any_length(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether a function of batches should be traced for any length: few lengths are compiled one by one."""
    return suitable_lengths(strategy) is BatchLengths.ANY


def per_replica_batch_size(
    strategy: tf.distribute.Strategy, global_batch_size: int, flag: str, gradient_accumulation_steps: int = 1
) -> int:
    """Returns each replica's share of a batch, of which it computes a micro-batch at a time."""
    replicas = strategy.num_replicas_in_sync
    if global_batch_size % replicas:
        raise InputError(f"`{flag}={global_batch_size}` must be a multiple of the number of replicas, {replicas}")
    if global_batch_size % (replicas * gradient_accumulation_steps):
        raise InputError(
            f"`{flag}={global_batch_size}` must be a multiple of {replicas * gradient_accumulation_steps}, the number "
            f"of replicas ({replicas}) times `gradient_accumulation_steps={gradient_accumulation_steps}`"
        )
    return global_batch_size // replicas


def distribute_batches(
    strategy: tf.distribute.Strategy, dataset: tf.data.Dataset
) -> tf.distribute.DistributedDataset | tf.data.Dataset:
    """Returns a data set of global batches with each batch split over all replicas.

    Each of several hosts reads all batches and keeps its share, so that the batches do not depend on the number of
    hosts. On one CPU nothing has to be split or moved, and tf.data's tuning is turned off, which the end of a program
    would wait for.
    """
    options = tf.data.Options()
    if _is_one_cpu(strategy):
        options.autotune.enabled = False
        return dataset.with_options(options)
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return strategy.experimental_distribute_dataset(dataset.with_options(options))


def _is_one_cpu(strategy):
    devices = [tf.DeviceSpec.from_string(device).device_type for device in strategy.extended.worker_devices]
    return devices == ["CPU"] and strategy.num_replicas_in_sync == 1


# A batch on the cores of a CPU.
#
# Between two products an operation takes too little time to be shared among threads, which wait for each other. So on a
# CPU each core computes a part of the batch, the whole way through the model.
#
# python -m benchmarks.train_step --cores=1,2 --only=albert_tf,products    (what each core adds)


def compute_in_parts(
    function: collections.abc.Callable[[Batch], _Result], batch: Batch, compares_examples: bool = False
) -> list[_Result]:
    """Returns the results of a function of a replica's batch for each of its parts, in order.

    These are as many equal parts as the cores of one CPU can compute at once; a single one on other devices, in what
    XLA compiles as a whole, and where the function compares examples. Dropout is that of the whole batch.
    """
    count = 1 if compares_examples else _count_parts(batch)
    if count == 1:
        return [function(batch)]

    @tf.function(autograph=False)  # so that it is traced once
    def compute(index, part):
        with part_of_batch(index):
            return function(part)

    cut = {name: tf.split(values, count) for name, values in batch.items()}
    return [compute(tf.constant(index), {name: cut[name][index] for name in cut}) for index in range(count)]


def _count_parts(batch):
    if is_compiled_whole() or not (tf.distribute.has_strategy() and _is_one_cpu(tf.distribute.get_strategy())):
        return 1
    size = next(iter(batch.values())).shape[0]
    if not size:
        return 1
    return max(count for count in range(1, num_usable_cores() + 1) if size % count == 0)


def distribute_host_batches(
    strategy: tf.distribute.Strategy, make_dataset: collections.abc.Callable[[int, int], tf.data.Dataset]
) -> tf.distribute.DistributedDataset | tf.data.Dataset:
    """Returns a data set of each host's own part of a batch, made by its index and the number of hosts."""

    if _is_one_cpu(strategy):
        return distribute_batches(strategy, make_dataset(0, 1))

    @tf.autograph.experimental.do_not_convert  # takes long, and nothing here needs it
    def make_replica_batches(context):
        dataset = make_dataset(context.input_pipeline_id, context.num_input_pipelines)
        replicas = context.num_replicas_in_sync // context.num_input_pipelines

        def split(batch):
            return {name: tf.reshape(values, [replicas, -1, *values.shape[1:]]) for name, values in batch.items()}

        return dataset.map(split).unbatch().prefetch(tf.data.AUTOTUNE)

    return strategy.distribute_datasets_from_function(make_replica_batches)


def read_batches(
    batches: tf.distribute.DistributedDataset | tf.data.Dataset,
    use: collections.abc.Callable[[collections.abc.Iterator], _Result],
) -> _Result:
    """Runs a function of an iterator over a data set, and does not wait until the iterator is gone.

    tf.data tunes itself in a thread that sleeps for up to a minute, and whoever frees the iterator waits for it: the
    signal to wake comes a moment before the flag that the thread looks at (`Model::OptimizeLoop` and
    `CancellationManager::StartCancel` of TensorFlow 2.21). A run that was told to stop might come too late to save. So
    another thread frees the iterator, which the function must not keep. It is no daemon: one that comes back from
    TensorFlow while Python ends would abort the process. If the function raises, the iterator is freed by whoever
    handles the exception.
    """
    iterators = [iter(batches)]
    result = use(iterators[0])
    threading.Thread(target=iterators.clear).start()
    return result


# The devices of a run in words, and the parts of its machine that it leaves unused.

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
    return bool(_find_tpu_chip() or _any_exists(_TPU_FILES) or _environment_names_tpu())


def unused_device_warnings(strategy: tf.distribute.Strategy) -> list[str]:
    """Returns a line for each faster device that this machine has and the strategy leaves unused, and what to do."""
    kind = _devices(strategy)[0].device_type
    warnings = []
    if kind != "TPU" and has_tpu():
        warnings.append("warning: there is a TPU, which is not used; pass `use_tpu` to train on it")
    # An empty list of visible devices is how GPUs are turned off on purpose.
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if kind == "CPU" and _any_exists(_NVIDIA_FILES) and not is_hidden and not tf.config.list_physical_devices("GPU"):
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


def _any_exists(paths):
    return any(os.path.exists(path) for path in paths)


def _environment_names_tpu():
    return bool(os.environ.get("TPU_NAME")) or os.environ.get("PJRT_DEVICE") == "TPU"
