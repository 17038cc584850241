"""Choosing where to run."""

from unittest import mock

import pytest
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.training.distribution import make_strategy, per_replica_batch_size


@pytest.mark.parametrize("num_cpu_replicas", [1, 3, 4])
def test_cpu_replicas_are_as_many_as_asked_for(num_cpu_replicas):
    strategy = make_strategy(num_cpu_replicas=num_cpu_replicas)
    assert strategy.num_replicas_in_sync == num_cpu_replicas
    with strategy.scope():
        variable = tf.Variable(1.0)
    devices = [copy.device for copy in strategy.experimental_local_results(variable)]
    assert [device.rsplit("/", 1)[-1] for device in devices] == [f"device:CPU:{i}" for i in range(num_cpu_replicas)]


def test_all_gpus_are_used(monkeypatch):
    monkeypatch.setattr("tensorflow.config.list_physical_devices", lambda kind: ["one", "two"] if kind == "GPU" else [])
    mirrored = mock.Mock()
    monkeypatch.setattr("tensorflow.distribute.MirroredStrategy", mirrored)
    assert make_strategy(num_cpu_replicas=4) is mirrored.return_value
    mirrored.assert_called_once_with(["/gpu:0", "/gpu:1"])


def test_several_machines_are_refused(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["localhost:1", "localhost:2"]}}')
    with pytest.raises(InputError, match="TF_CONFIG names a cluster"):
        make_strategy()


@pytest.mark.parametrize("configuration", ["{}", '{"environment": "cloud"}'])
def test_environment_without_a_cluster_is_passed_over(monkeypatch, configuration):
    monkeypatch.setenv("TF_CONFIG", configuration)
    assert make_strategy().num_replicas_in_sync == 1


@pytest.mark.parametrize(("batch_size", "replicas", "expected"), [(8, 1, 8), (8, 2, 4), (12, 4, 3)])
def test_batch_is_shared_evenly(batch_size, replicas, expected):
    strategy = make_strategy(num_cpu_replicas=replicas)
    assert per_replica_batch_size(strategy, batch_size, "train_batch_size") == expected


def test_batch_that_can_not_be_shared_evenly_is_refused():
    with pytest.raises(InputError) as error:
        per_replica_batch_size(make_strategy(num_cpu_replicas=4), 6, "eval_batch_size")
    assert str(error.value) == "--eval_batch_size=6 must be a multiple of the number of replicas, 4"


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


@pytest.mark.parametrize("name", ["resolver", "initialize"])
@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (
            ValueError("Please provide a TPU Name to connect to.\nMore lines."),
            "Please provide a TPU Name to connect to.",
        ),
        (tf.errors.NotFoundError(None, None, "TPUs not found in the cluster."), "TPUs not found in the cluster."),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_unreachable_tpu_gives_one_sentence(tpu_calls, name, failure, reason):
    tpu_calls[name].side_effect = failure
    with pytest.raises(InputError) as error:
        make_strategy(use_tpu=True, tpu_name="mine")
    assert str(error.value) == (
        f"--use_tpu: can't reach the TPU 'mine' ({reason}); check --tpu_name, --tpu_zone and --gcp_project, "
        "or run without --use_tpu"
    )


def test_machine_without_tpu_gives_one_sentence():
    with pytest.raises(InputError, match=r"^--use_tpu: can't reach the TPU 'local' \(.+\); check --tpu_name"):
        make_strategy(use_tpu=True)
