"""Telling what a run computes on, with made-up devices."""

import os
import types

import pytest
import tensorflow as tf
from tpu import NUM_CORES, make_tpu_strategy

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.training import attention_choice, devices
from albert_tf.training.batches import BatchLengths
from albert_tf.training.devices import describe_device, make_strategy, unused_device_warnings

H100 = "NVIDIA H100 80GB HBM3"


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """A machine with a CPU alone, whatever runs the test; returns its folder of PCI devices."""
    for name in ("TPU_NAME", "PJRT_DEVICE", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(devices, "_PCI_DEVICES", str(tmp_path / "pci"))
    monkeypatch.setattr(devices, "_TPU_FILES", (str(tmp_path / "accel0"),))
    monkeypatch.setattr(devices, "_NVIDIA_FILES", (str(tmp_path / "nvidia0"),))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 6 * 2**20, "SC_PAGE_SIZE": 4096}.__getitem__)
    return tmp_path / "pci"


def plug_in(folder, vendor, device):
    slot = folder / f"0000:00:0{len(list(folder.glob('*')))}.0"
    slot.mkdir(parents=True)
    (slot / "vendor").write_text(f"{vendor}\n")
    (slot / "device").write_text(f"{device}\n")


@pytest.fixture
def gpus(monkeypatch):
    """Gives the machine GPUs of these names."""

    def install(*names):
        found = {"GPU": list(names), "CPU": ["cpu"]}
        monkeypatch.setattr("tensorflow.config.list_physical_devices", found.__getitem__)
        monkeypatch.setattr(
            "tensorflow.config.experimental.get_device_details",
            lambda gpu: {"device_name": gpu, "compute_capability": (7, 5) if "T4" in gpu else (9, 0)} if gpu else {},
        )

    return install


def strategy_on(*worker_devices, machines=1):
    extended = types.SimpleNamespace(worker_devices=worker_devices)
    return types.SimpleNamespace(extended=extended, num_replicas_in_sync=machines * len(worker_devices))


def gpu_strategy(count, machines=1):
    job = "worker" if machines > 1 else "localhost"
    return strategy_on(*(f"/job:{job}/replica:0/task:0/device:GPU:{i}" for i in range(count)), machines=machines)


@pytest.mark.parametrize(("replicas", "suffix"), [(1, ""), (4, ", 4 replicas")])
def test_cpu_is_told_with_cores_and_memory(replicas, suffix):
    strategy = make_strategy(num_cpu_replicas=replicas)
    assert describe_device(strategy) == f"device: 1 CPU (2 cores, 24.0 GiB){suffix}"
    assert unused_device_warnings(strategy) == []


def test_gpus_are_counted_by_kind(gpus):
    gpus(*[H100] * 4)
    assert describe_device(gpu_strategy(4)) == f"device: 4 x {H100}, one operation after the other"
    several = describe_device(gpu_strategy(4, machines=3))
    assert several == f"device: 4 x {H100} on each of 3 machines, one operation after the other"
    assert unused_device_warnings(gpu_strategy(4)) == []
    gpus("Tesla T4", "NVIDIA A10", "Tesla T4")
    assert describe_device(gpu_strategy(3)) == "device: 2 x Tesla T4, 1 x NVIDIA A10, one operation after the other"


def test_tpu_of_this_machine_is_told_with_its_kind(machine):
    plug_in(machine, "0x8086", "0x0063")
    plug_in(machine, "0x1ae0", "0x0063")
    with tf.Graph().as_default():
        strategy = make_tpu_strategy()
    assert describe_device(strategy) == f"device: TPU v5e, {NUM_CORES} cores"
    assert unused_device_warnings(strategy) == []


def test_tpu_elsewhere_is_told_with_its_hosts(machine):
    plug_in(machine, "0x1ae0", "0x0063")
    cores = [f"/job:worker/replica:0/task:{task}/device:TPU:{i}" for task in range(2) for i in range(4)]
    assert describe_device(strategy_on(*cores)) == "device: TPU, 8 cores on 2 hosts"
    assert describe_device(strategy_on(*cores[:1])) == "device: TPU, 1 core"


def test_gpu_that_tensorflow_does_not_see_is_warned_of(gpus, tmp_path, monkeypatch):
    strategy = make_strategy()
    gpus()
    (tmp_path / "nvidia0").touch()
    (warning,) = unused_device_warnings(strategy)
    assert warning == (
        "warning: this machine has an NVIDIA GPU, but TensorFlow sees none; install what it needs: "
        f"pip install 'tensorflow[and-cuda]=={tf.__version__}'"
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert unused_device_warnings(strategy) == [], "it was turned off on purpose"


SHOW_TPU = {
    "chip": lambda folder, environment: plug_in(folder, "0x1ae0", "0x006f"),
    "driver": lambda folder, environment: (folder.parent / "accel0").touch(),
    "name": lambda folder, environment: environment("TPU_NAME", "mine"),
    "runtime": lambda folder, environment: environment("PJRT_DEVICE", "TPU"),
}


@pytest.mark.parametrize("by", SHOW_TPU)
def test_tpu_that_nobody_asked_for_is_warned_of(machine, monkeypatch, by):
    plug_in(machine, "0x1ae0", "0x0042")  # another device of its maker
    assert unused_device_warnings(make_strategy()) == []
    SHOW_TPU[by](machine, monkeypatch.setenv)
    expected = ["warning: there is a TPU, which is not used; pass `use_tpu` to train on it"]
    assert unused_device_warnings(make_strategy()) == unused_device_warnings(gpu_strategy(1)) == expected


@pytest.mark.parametrize(("name", "has_kernel"), [(H100, True), ("Tesla T4", False)])
def test_steps_on_one_gpu_are_compiled_whole(gpus, name, has_kernel):
    gpus(name)
    strategy = make_strategy()
    assert describe_device(strategy) == f"device: 1 x {name}, whole steps compiled by XLA"
    assert strategy.runs_cudnn_attention == has_kernel


def test_several_gpus_cannot_be_compiled_whole(gpus):
    gpus(H100, H100)
    with pytest.raises(InputError, match="`jit_compile=true` is for one GPU or one CPU, but there are 2 GPUs"):
        make_strategy(jit_compile="true")


CONFIG = AlbertConfig(vocab_size=9, hidden_size=128, num_attention_heads=2)


def choose(attention="auto", config=CONFIG, dtype="mixed_bfloat16", lengths=BatchLengths.ONE, **options):
    shapes = [(128, 21), (512, 78)]
    return attention_choice.choose_attention(make_strategy(), attention, config, dtype, shapes, lengths, **options)


def test_the_kernel_is_tried_on_a_gpu_that_has_it(gpus, trial):
    gpus(H100)
    tried = trial(None, None)
    assert choose() == ("auto", "attention: kernels of cuDNN, tried on this GPU")
    more = "bfloat16", False, {"knows_documents": False}
    assert tried == [(128, 128, 21, *more), (128, 512, 78, *more)]


def test_a_kernel_that_fails_is_passed_over_or_refused(gpus, trial):
    gpus(H100)
    trial(*["fail with InternalError: no cuDNN"] * 4)
    sentence = "on this GPU the kernels of cuDNN fail with InternalError: no cuDNN"
    assert choose() == ("plain", f"attention: plain operations, because {sentence}")
    with pytest.raises(InputError, match=f"`attention=flash`: {sentence}; use `attention=plain`"):
        choose("flash")


@pytest.mark.parametrize(
    ("options", "obstacle"),
    [
        ({"dtype": "float32"}, "products in float32"),
        ({"config": CONFIG.replace(attention_probs_dropout_prob=0.1)}, "dropout of attention probabilities"),
        ({"lengths": BatchLengths.FEW}, "batches of several lengths"),
        ({"has_documents": True}, "several documents in a sequence"),
        ({}, "a GPU before Ampere"),
    ],
)
def test_what_the_kernel_cannot_do_is_told_before_training(gpus, trial, options, obstacle):
    gpus(H100 if options else "Tesla T4")
    tried = trial(None)
    sentence = f"attention: plain operations, because cuDNN's kernels are not possible with {obstacle}"
    attention, line = choose(**options)
    assert attention == "plain" and line.startswith(sentence)
    with pytest.raises(InputError, match=f"`attention=flash` is not possible on a GPU with {obstacle}"):
        choose("flash", **options)
    assert not tried
