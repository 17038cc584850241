"""The devices of a run in words, and the parts of its machine that it leaves unused."""

import collections
import glob
import os

import tensorflow as tf

from albert_tf.cores import num_usable_cores
from albert_tf.training.devices.whole_step import WholeStepStrategy

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
