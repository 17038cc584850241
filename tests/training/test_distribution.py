"""Choosing where to run."""

import json
import socket
import threading
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.training.batches import distribute_batches, distribute_host_batches, per_replica_batch_size, read_batches
from albert_tf.training.devices import (
    Agreement,
    has_several_workers,
    is_alone_by_environment,
    is_chief,
    is_chief_by_environment,
    make_strategy,
)

WORKERS = '{"cluster": {"worker": ["localhost:1", "localhost:2"]}, "task": {"type": "worker", "index": 0}}'


def test_cpu_replicas_are_as_many_as_asked_for():
    strategy = make_strategy(num_cpu_replicas=3)
    assert strategy.num_replicas_in_sync == 3
    with strategy.scope():
        variable = tf.Variable(1.0)
    devices = [copy.device for copy in strategy.experimental_local_results(variable)]
    assert [device.rsplit("/", 1)[-1] for device in devices] == [f"device:CPU:{i}" for i in range(3)]


def test_all_gpus_are_used(monkeypatch):
    monkeypatch.setattr("tensorflow.config.list_physical_devices", lambda kind: ["one", "two"] if kind == "GPU" else [])
    mirrored = mock.Mock()
    monkeypatch.setattr("tensorflow.distribute.MirroredStrategy", mirrored)
    assert make_strategy(num_cpu_replicas=4) is mirrored.return_value
    mirrored.assert_called_once_with(["/gpu:0", "/gpu:1"])


def test_machines_of_the_environment_train_together(monkeypatch):
    several = mock.Mock()
    monkeypatch.setattr("tensorflow.distribute.MultiWorkerMirroredStrategy", several)
    monkeypatch.setenv("TF_CONFIG", WORKERS)
    assert make_strategy() is several.return_value
    with pytest.raises(InputError, match="`num_cpu_replicas=2`: where TF_CONFIG names several machines, each is one"):
        make_strategy(num_cpu_replicas=2)


@pytest.mark.parametrize(
    "configuration",
    [
        *('{"cluster": ', "[]", "localhost:1", "{} {}", '{"cluster": 1}', '{"task": 0}'),
        WORKERS.replace('"cluster": {', '"cluster": {"ps": ["localhost:3"], '),
        WORKERS.split(', "task"')[0] + "}",
        WORKERS.replace(', "index": 0', ""),
        WORKERS.replace('"type": "worker"', '"type": "chief"'),
    ],
)
def test_environment_that_can_not_be_used_is_refused(monkeypatch, configuration):
    monkeypatch.setenv("TF_CONFIG", configuration)
    with pytest.raises(InputError) as error:
        make_strategy()
    message = str(error.value)
    assert message.startswith("the environment variable TF_CONFIG must be a JSON object whose ")
    assert message.endswith(f"Received: {configuration}")


def several_workers(roles, task_type, task_id):
    """Returns what looks like the strategy of one machine of several."""
    strategy = mock.Mock(spec=tf.distribute.MultiWorkerMirroredStrategy)
    strategy.cluster_resolver.task_type, strategy.cluster_resolver.task_id = task_type, task_id
    strategy.cluster_resolver.cluster_spec.return_value = tf.train.ClusterSpec(roles)
    return strategy


@pytest.mark.parametrize(
    ("roles", "task_type", "task_id", "expected"),
    [
        ({"worker": ["a:1", "b:1"]}, "worker", 0, True),
        ({"worker": ["a:1", "b:1"]}, "worker", 1, False),
        ({"chief": ["c:1"], "worker": ["a:1"]}, "worker", 0, False),
        ({"chief": ["c:1"], "worker": ["a:1"]}, "chief", 0, True),
    ],
)
def test_one_of_several_machines_is_chief(roles, task_type, task_id, expected, monkeypatch):
    strategy = several_workers(roles, task_type, task_id)
    assert has_several_workers(strategy)
    assert is_chief(strategy) == expected
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": roles, "task": {"type": task_type, "index": task_id}}))
    assert is_chief_by_environment() == expected and not is_alone_by_environment()


def test_machine_on_its_own_is_chief_and_agrees_with_itself():
    strategy = make_strategy(num_cpu_replicas=2)
    assert is_chief(strategy) and is_chief_by_environment() and not has_several_workers(strategy)
    assert is_alone_by_environment()
    assert [Agreement(strategy).any(vote) for vote in (True, False)] == [True, False]


@pytest.mark.parametrize("apart", [False, True])
def test_one_cpu_gets_batches_that_nothing_tunes(apart):
    strategy, rows = make_strategy(), tf.data.Dataset.range(8).map(tf.identity, num_parallel_calls=2).batch(4)
    distributed = distribute_host_batches(strategy, lambda *_: rows) if apart else distribute_batches(strategy, rows)
    assert [batch.numpy().tolist() for batch in distributed] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert distributed.options().autotune.enabled is False, "its thread would keep the program from ending"


@pytest.mark.parametrize("apart", [False, True])
def test_replicas_of_one_host_get_rows_that_follow_one_another(apart):
    strategy = make_strategy(num_cpu_replicas=2)
    rows = tf.data.Dataset.from_tensor_slices({"row": np.arange(16), "pair": np.arange(32).reshape(16, 2)}).batch(8)
    asked = []

    def make_dataset(host_index, num_hosts):
        asked.append((host_index, num_hosts))
        return rows

    distributed = distribute_host_batches(strategy, make_dataset) if apart else distribute_batches(strategy, rows)
    found = [strategy.experimental_local_results(batch["row"]) for batch in distributed]
    np.testing.assert_array_equal(found, np.arange(16).reshape(2, 2, 4))
    assert asked == [(0, 1)] * apart
    for batch in distributed:
        for row, pair in zip(*(strategy.experimental_local_results(batch[name]) for name in ("row", "pair"))):
            np.testing.assert_array_equal(pair[:, 0], 2 * row)


def test_environment_without_a_cluster_is_passed_over(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"environment": "cloud"}')
    assert make_strategy().num_replicas_in_sync == 1


def test_batch_is_shared_evenly_or_refused():
    for batch_size, replicas, parts, expected in ((8, 1, 1, 8), (12, 4, 1, 3), (12, 2, 3, 6)):
        strategy = make_strategy(num_cpu_replicas=replicas)
        assert per_replica_batch_size(strategy, batch_size, "train_batch_size", parts) == expected
    with pytest.raises(InputError, match="`eval_batch_size=6` must be a multiple of the number of replicas, 4"):
        per_replica_batch_size(make_strategy(num_cpu_replicas=4), 6, "eval_batch_size")
    sentence = r"`train_batch_size=12` must be a multiple of 8, the number of replicas \(2\) times .*_steps=4`"
    with pytest.raises(InputError, match=sentence):
        per_replica_batch_size(make_strategy(num_cpu_replicas=2), 12, "train_batch_size", 4)


@pytest.fixture
def tpu_calls(monkeypatch):
    """Replaces what reaches for a TPU; returns the mocks by name."""
    monkeypatch.delenv("TPU_NAME", raising=False)
    names = {
        "resolver": "distribute.cluster_resolver.TPUClusterResolver",
        "connect": "config.experimental_connect_to_cluster",
        "initialize": "tpu.experimental.initialize_tpu_system",
        "strategy": "distribute.TPUStrategy",
    }
    calls = {}
    for name, path in names.items():
        calls[name] = mock.Mock(name=name)
        monkeypatch.setattr(f"tensorflow.{path}", calls[name])
    return calls


def test_tpu_of_this_machine_is_initialized(tpu_calls):
    assert make_strategy(use_tpu=True) is tpu_calls["strategy"].return_value
    tpu_calls["resolver"].assert_called_once_with(tpu="local", zone=None, project=None)
    tpu_calls["initialize"].assert_called_once_with(tpu_calls["resolver"].return_value)
    tpu_calls["connect"].assert_not_called()


def test_cloud_tpu_is_connected_to(tpu_calls, monkeypatch):
    make_strategy(use_tpu=True, tpu_name="mine", tpu_zone="us-central1-a", gcp_project="project")
    tpu_calls["resolver"].assert_called_once_with(tpu="mine", zone="us-central1-a", project="project")
    tpu_calls["connect"].assert_called_once_with(tpu_calls["resolver"].return_value)
    monkeypatch.setenv("TPU_NAME", "of the environment")
    make_strategy(use_tpu=True)
    assert tpu_calls["resolver"].call_args.kwargs["tpu"] == "of the environment"


@pytest.mark.parametrize("flag", ["tpu_name", "tpu_zone", "gcp_project"])
def test_tpu_that_is_not_to_be_used_is_refused(tpu_calls, flag):
    sentence = f"`{flag}=mine` without `use_tpu` would train on this machine's own devices; add `use_tpu`, or leave"
    with pytest.raises(InputError, match=sentence):
        make_strategy(**{flag: "mine"})


@pytest.mark.parametrize(
    ("name", "failure", "reason"),
    [
        ("resolver", ValueError("Please provide a TPU Name.\nMore lines."), "Please provide a TPU Name."),
        ("initialize", tf.errors.NotFoundError(None, None, "TPUs not found."), "TPUs not found."),
        ("initialize", RuntimeError(), "RuntimeError"),
    ],
)
def test_unreachable_tpu_gives_one_sentence(tpu_calls, name, failure, reason):
    tpu_calls[name].side_effect = failure
    with pytest.raises(InputError) as error:
        make_strategy(use_tpu=True, tpu_name="mine")
    assert str(error.value) == (
        f"`use_tpu`: can't reach the TPU 'mine' ({reason}); check `tpu_name`, `tpu_zone` and `gcp_project`, "
        "or run without `use_tpu`"
    )


def test_closed_port_is_told_at_once():
    with socket.create_server(("localhost", 0)) as server:
        address = f"grpc://localhost:{server.getsockname()[1]}"
    # Other than this message, that of a TPU that doesn't answer comes only after the timeout.
    with pytest.raises(InputError, match=rf"^`use_tpu`: can't reach the TPU '{address}' \(.*refused.*\); check"):
        make_strategy(use_tpu=True, tpu_name=address, tpu_timeout=60)


@pytest.mark.parametrize("address", ["grpc://localhost", "grpc://localhost:port"])
def test_address_without_port_is_refused(address):
    with pytest.raises(InputError, match=rf"^`use_tpu`: can't reach the TPU '{address}' \("):
        make_strategy(use_tpu=True, tpu_name=address, tpu_timeout=5)


class SlowToFree:
    """Batches whose iterator, like tf.data's, keeps whoever frees it waiting."""

    def __init__(self):
        self.may_go, self.is_gone = threading.Event(), threading.Event()

    def __iter__(self):
        try:
            yield 1
            yield 2
        finally:
            self.may_go.wait(60)
            self.is_gone.set()


def test_result_of_reading_does_not_wait_until_the_iterator_is_gone():
    batches = SlowToFree()
    assert read_batches(batches, next) == 1
    assert not batches.is_gone.is_set()
    batches.may_go.set()
    assert batches.is_gone.wait(60)
