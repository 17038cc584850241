"""run_pretraining.py and the state of its data, and in two processes that train together, as on two machines."""

import contextlib
import json
import re
import shutil
import socket

import numpy as np
import pytest
import tensorflow as tf
from runs import metrics_without_rates, variables_in

pytestmark = pytest.mark.slow


@pytest.fixture
def data(shards, tmp_path):
    """A copy of the shards, to break: training shards a, b and c with the same examples, and no manifest."""
    folder = shutil.copytree(shards, tmp_path / "data")
    (folder / "manifest.json").unlink()
    for name in "bc":
        shutil.copy(folder / "train.tfrecord", folder / f"train-{name}.tfrecord")
    (folder / "train.tfrecord").rename(folder / "train-a.tfrecord")
    return folder


@pytest.fixture
def pretrain_on_copies(pretrain, data):
    """Runs two steps on them; flags may be replaced."""
    lengths = {"max_seq_length": 32, "max_predictions_per_seq": 5}
    usual = {"input_file": data / "train*.tfrecord", "train_batch_size": 8, "num_train_steps": 2, "do_eval": False}
    return lambda **changes: pretrain(**{**lengths, **usual, **changes})


def count_records(path):
    return sum(1 for _ in tf.data.TFRecordDataset(str(path)))


def test_run_that_comes_upon_a_damaged_shard_can_go_on_without_it(pretrain_on_copies, data, tmp_path):
    assert pretrain_on_copies(num_train_steps=4, save_checkpoints_steps=2).code == 0
    for path in (tmp_path / "run").glob("model.ckpt-4.*"):
        path.unlink()
    number = count_records(data / "train-b.tfrecord")
    content = (data / "train-b.tfrecord").read_bytes()
    (data / "train-b.tfrecord").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    stopped = pretrain_on_copies(num_train_steps=4)
    assert stopped.code == 1
    named = f"{data}/train-b.tfrecord (record {number} can't be read)"
    assert stopped.errors.startswith(f"error: damaged: {named}; ")
    assert stopped.errors.count("\n") == 1

    (data / "train-b.tfrecord").write_bytes(content[:-1])
    shorter = pretrain_on_copies(num_train_steps=4)
    assert "the content of its training data is not what it was (train-b.tfrecord); put" in shorter.errors

    resumed = pretrain_on_copies(num_train_steps=4, on_damaged_shard="skip").succeeded()
    assert f"warning: training leaves out 1 of 3 shards, which are damaged: {named}\n" in resumed.output
    assert f"restored {tmp_path}/run/model.ckpt-2\n" in resumed.output
    assert (tmp_path / "run" / "model.ckpt-4.index").exists()


def test_hosts_read_shards_of_their_own_on_request(pretrain, without_training):
    assert pretrain(read_own_shards=True, do_eval=False).code == 0
    assert without_training[0].phases[0].hosts_read_apart


def free_addresses(count):
    """Returns addresses of this machine at which nobody listens."""
    with contextlib.ExitStack() as sockets:
        servers = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]


@pytest.fixture
def start_workers(start_process):
    """Starts the script in two processes that know of each other through TF_CONFIG; kills what is left of them."""
    started = []

    def start(**flag_values):
        addresses = free_addresses(2)
        processes = []
        for index in range(2):
            config = json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})
            processes.append(start_process("run_pretraining.py", {"TF_CONFIG": config}, **flag_values))
        started.extend(processes)
        return processes

    yield start
    for process in started:
        process.kill()
        process.communicate()


def finish(processes):
    """Returns what each of the processes prints from now on, once both have ended."""
    printed = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "\n---\n".join(printed)
    return printed


def assert_nearly_equal(variables, others):
    assert variables.keys() == others.keys()
    for name, values in variables.items():
        # The root mean square, because LAMB and Adam magnify rounding where a gradient is next to zero.
        if name.startswith("model/"):
            assert np.sqrt(np.mean((values - others[name]) ** 2)) < 5e-6, name


def test_two_workers_train_like_one_and_survive_the_loss_of_one(start_workers, pretrain, flag_values, tmp_path):
    run = tmp_path / "run"
    flag_values.update(num_train_steps=6, iterations_per_loop=1, learning_rate=1e-4)
    flag_values.update(ema_decay=0.5, eval_checkpoint="best")
    chief, other = start_workers(**flag_values)
    for line in chief.stdout:
        if line.startswith("step 3/"):
            other.kill()
            break
    printed, _ = chief.communicate(timeout=600)
    assert chief.returncode == 1, printed
    error = printed.splitlines()[-1]
    assert re.match(r"error: a TPU or another worker of this run is gone \(.*\); start all of them again with", error)
    assert "Traceback" not in printed

    printed = finish(start_workers(**flag_values))
    assert re.search(rf"^restored {run}/model\.ckpt-\d+$", printed[0], re.MULTILINE)
    assert printed[1] == "", "only the first worker reports"
    rows = metrics_without_rates(run)
    assert [row["step"] for row in rows if row["split"] == "train"] == list(range(1, 7))
    assert [row["step"] for row in rows if row["split"] == "held_out"] == [0, 2, 4, 6]

    alone = tmp_path / "alone"
    assert pretrain(output_dir=alone, save_checkpoints_steps=100, eval_every_steps=2).code == 0
    assert_nearly_equal(variables_in(run / "model.ckpt-6"), variables_in(alone / "model.ckpt-6"))
    others = metrics_without_rates(alone)
    assert [row["loss"] for row in rows] == pytest.approx([row["loss"] for row in others], rel=1e-4)
