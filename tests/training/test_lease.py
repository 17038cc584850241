"""Two processes never hold one folder, and a holder that is gone doesn't keep it."""

import json
import os
import re
import subprocess
import sys
import threading
import time

import pytest
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.training.run_folder import lease as lease_module
from albert_tf.training.run_folder.lease import LEASE_FILE, Lease


@pytest.fixture(params=["local", "ram"])
def folder(request, tmp_path):
    """A folder that is not there yet, on this machine's disk or on a file system like Cloud Storage's."""
    return str(tmp_path / "run") if request.param == "local" else f"ram://{tmp_path.name}/run"


@pytest.fixture(autouse=True)
def short_times(monkeypatch):
    """Leases are dead after half a second."""
    for name, seconds in (("RENEW", 0.1), ("DEAD", 0.5), ("_POLL", 0.02), ("_SETTLE", 0.05)):
        monkeypatch.setattr(lease_module, f"{name}_SECONDS", seconds)


def read(folder):
    with tf.io.gfile.GFile(f"{folder}/{LEASE_FILE}") as file:
        return json.loads(file.read())


def write(folder, lease):
    tf.io.gfile.makedirs(folder)
    with tf.io.gfile.GFile(f"{folder}/new", "w") as file:
        file.write(json.dumps(lease))
    tf.io.gfile.rename(f"{folder}/new", f"{folder}/{LEASE_FILE}", overwrite=True)


def lease_of_another(**changes):
    """Returns a lease of a process on another machine, renewed a moment ago."""
    own = {"purpose": "training", "host": "elsewhere", "machine": "other", "pid": 7, "process_started": 1}
    return {**own, "token": "theirs", "started": time.time() - 90, "renewed": time.time(), **changes}


def lease_of_this_machine(**changes):
    """Returns a lease of this very process."""
    with Lease(changes.pop("folder"), "training") as lease:
        return {**lease._lease, "token": "theirs", **changes}


def test_folder_is_held_by_one_and_free_afterwards(folder):
    with Lease(folder, "training") as held:
        held.check()
        with pytest.raises(InputError) as error, Lease(folder, "training"):
            pass
        assert re.fullmatch(
            rf"{folder} is in use \(training, by process {os.getpid()} on .+, started \d+ s ago and last alive \d+ s "
            r"ago\); wait until that process has ended, stop it, or choose another folder",
            str(error.value),
        )
        held.check()
        assert tf.io.gfile.listdir(folder) == [LEASE_FILE]
    with Lease(folder, "training"):
        pass


def test_folder_that_stays_empty_is_removed(folder):
    with Lease(folder, "training"):
        assert tf.io.gfile.isdir(folder)
    assert not tf.io.gfile.exists(folder)


def test_folder_with_something_in_it_stays(tmp_path):
    with Lease(str(tmp_path / "run"), "training"):
        (tmp_path / "run" / "file").touch()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["file"]
    (tmp_path / "empty").mkdir()
    with Lease(str(tmp_path / "empty"), "training"):
        pass
    assert (tmp_path / "empty").is_dir(), "it was there before"


def test_holder_on_this_machine_that_is_gone_is_known_at_once(folder, monkeypatch):
    monkeypatch.setattr(lease_module, "DEAD_SECONDS", 1000.0)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    write(folder, lease_of_this_machine(folder=folder, pid=gone.pid))
    with Lease(folder, "training") as lease:
        lease.check()
        assert read(folder)["token"] != "theirs"


def test_number_of_a_process_that_was_given_again_is_no_sign_of_life(folder, monkeypatch):
    monkeypatch.setattr(lease_module, "DEAD_SECONDS", 1000.0)
    write(folder, lease_of_this_machine(folder=folder, process_started=1))
    with Lease(folder, "training") as lease:
        lease.check()


def test_holder_on_this_machine_that_lives_keeps_the_folder_however_slow(folder):
    write(folder, lease_of_this_machine(folder=folder, renewed=0.0))
    with pytest.raises(InputError, match="is in use"), Lease(folder, "training"):
        pass
    assert read(folder)["token"] == "theirs"


def test_lease_of_another_machine_ends_some_time_after_its_last_renewal(folder, capsys):
    write(folder, lease_of_another(renewed=time.time() - 1))
    with Lease(folder, "training"):
        pass
    told = capsys.readouterr().err
    assert told.startswith(f"{folder}: takes over from a process that is gone (training, by process 7 on elsewhere, ")


@pytest.mark.slow
def test_young_lease_of_another_machine_is_watched(folder, capsys):
    write(folder, lease_of_another())
    begin = time.monotonic()
    with Lease(folder, "training") as lease:
        assert time.monotonic() - begin >= 0.5
        lease.check()
    assert "waits for a sign of life" in capsys.readouterr().err


def test_lease_that_is_renewed_while_it_is_watched_is_kept(folder):
    write(folder, lease_of_another())
    timer = threading.Timer(0.2, lambda: write(folder, lease_of_another(renewed=time.time() + 1)))
    timer.start()
    with pytest.raises(InputError, match="is in use"), Lease(folder, "training"):
        pass
    timer.join()
    assert read(folder)["token"] == "theirs"


@pytest.mark.slow
def test_file_that_is_no_lease_is_watched_and_replaced(folder):
    tf.io.gfile.makedirs(folder)
    with tf.io.gfile.GFile(f"{folder}/{LEASE_FILE}", "w") as file:
        file.write('{"host": ')
    with Lease(folder, "training") as lease:
        lease.check()


def test_lease_is_renewed(folder):
    with Lease(folder, "training"):
        before = read(folder)["renewed"]
        end = time.monotonic() + 30
        while read(folder)["renewed"] == before and time.monotonic() < end:
            time.sleep(0.02)
        assert read(folder)["renewed"] > before


def test_process_that_lost_the_folder_is_told_and_leaves_it_alone(folder):
    with Lease(folder, "training") as lease:
        write(folder, lease_of_another())
        time.sleep(0.3)  # longer than between two looks
        with pytest.raises(InputError) as error:
            lease.check()
        assert "was taken over by another process (training, by process 7 on elsewhere, " in str(error.value)
    assert read(folder)["token"] == "theirs"


def test_process_that_was_stopped_for_long_looks_before_it_goes_on(folder, monkeypatch):
    monkeypatch.setattr(lease_module, "RENEW_SECONDS", 1000.0)  # the thread has not come to it yet
    with Lease(folder, "training") as lease:
        write(folder, lease_of_another())
        lease._lease["renewed"] -= 3000
        with pytest.raises(InputError, match="was taken over"):
            lease.check()


def test_of_two_that_take_a_dead_lease_at_once_one_has_it(folder):
    outcomes, start = [], threading.Barrier(2)

    def take():
        start.wait()
        try:
            with Lease(folder, "training") as lease:
                time.sleep(0.3)
                lease.check()
                outcomes.append("held")
        except InputError as error:
            outcomes.append(str(error))

    write(folder, lease_of_another(renewed=0.0))
    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("held") == 1, outcomes
