"""All workers of a run have one folder; a worker that sees another ends the run for all of them."""

import json
import threading

import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.training.devices import Agreement
from albert_tf.training.run_folder import held_folder


class ThreadsAgreement(Agreement):
    """Two threads of this process instead of processes that exchange numbers over the network."""

    def __init__(self, barrier, numbers, index):
        self._barrier, self._numbers, self._index = barrier, numbers, index

    def _exchange(self, number):
        """Returns the numbers of all threads."""
        self._numbers[self._index] = number
        self._barrier.wait(timeout=30)
        numbers = list(self._numbers)
        self._barrier.wait(timeout=30)
        return numbers

    def any(self, is_true):
        return any(self._exchange(is_true))

    def of_chief(self, value):
        return self._exchange(value)[0]


@pytest.fixture
def hold(monkeypatch):
    """Lets two workers hold a folder each, for a moment; returns the error of each, None without one."""
    monkeypatch.setattr(held_folder, "_SECONDS_UNTIL_SEEN", 1.0)

    def run(*folders):
        barrier, numbers, errors = threading.Barrier(2), [0, 0], ["did not come to its end"] * 2

        def hold_one(index):
            agreement = ThreadsAgreement(barrier, numbers, index)
            try:
                with held_folder.hold_folder(str(folders[index]), agreement, is_chief=index == 0) as check:
                    check()
                    barrier.wait(timeout=30)  # neither leaves before the other has come in
                errors[index] = None
            except InputError as error:
                errors[index] = str(error)

        threads = [threading.Thread(target=hold_one, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return errors

    return run


def test_workers_hold_one_folder(hold, tmp_path):
    assert hold(tmp_path / "run", tmp_path / "run") == [None, None]


def test_workers_with_folders_of_their_own_are_refused(hold, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert hold(first, second) == [
        "another worker can't continue; see its messages",
        f"`output_dir={second}` is not the folder that the first worker writes to; give one that all workers can read, "
        "such as gs://...",
    ]
    assert not first.exists() and not second.exists()


def test_folder_that_the_first_worker_can_not_write_to_ends_all(hold, tmp_path):
    (tmp_path / "file").write_text("in the way")
    errors = hold(tmp_path / "file" / "run", tmp_path / "file" / "run")
    assert errors[0].startswith(f"`output_dir={tmp_path}/file/run` can't be written to (")
    assert errors[1] == "another worker can't continue; see its messages"


@pytest.fixture(params=["{tmp_path}/run", "ram://{tmp_path.name}/run"])
def folder(request, tmp_path):
    """A folder that is not there yet, on this machine's disk or on a file system like Cloud Storage's."""
    return request.param.format(tmp_path=tmp_path)


@pytest.fixture
def hold_alone(monkeypatch):
    """Holds a folder for a run of one worker, which looks at the owner whenever it is asked."""
    monkeypatch.setattr(held_folder, "_SECONDS_BETWEEN_LOOKS", 0.0)
    return lambda folder: held_folder.hold_folder(folder, Agreement(tf.distribute.get_strategy()), is_chief=True)


def owner_of(folder):
    path = f"{folder}/{held_folder.OWNER_FILE}"
    return json.loads(tf.io.gfile.GFile(path).read()) if tf.io.gfile.exists(path) else None


def run_elsewhere(folder):
    """Lets a run on another machine, which no lock keeps away, take a folder over."""
    write_json(f"{folder}/{held_folder.OWNER_FILE}", {"host": "elsewhere", "process": 7, "token": 1})


def test_run_names_itself_while_it_trains(hold_alone, folder):
    with hold_alone(folder) as check:
        check()
        assert {"host", "process", "token"} == owner_of(folder).keys()
    assert owner_of(folder) is None


def test_run_that_another_machine_took_over_writes_no_more(hold_alone, folder):
    with hold_alone(folder) as check:
        run_elsewhere(folder)
        with pytest.raises(InputError) as error:
            check()
    assert str(error.value) == (
        f"{folder} was taken over by process 7 on elsewhere; nothing more is written; check if that one still runs"
    )
    assert owner_of(folder)["host"] == "elsewhere", "the file is the other's"


def test_run_that_was_taken_over_and_ended_elsewhere_writes_no_more(hold_alone, folder):
    with hold_alone(folder) as check:
        tf.io.gfile.remove(f"{folder}/{held_folder.OWNER_FILE}")
        with pytest.raises(InputError, match="was taken over by a run that has ended; nothing more is written"):
            check()


def test_run_takes_over_from_one_that_was_killed_elsewhere_and_says_so(hold_alone, folder, capsys):
    tf.io.gfile.makedirs(folder)
    run_elsewhere(folder)
    with hold_alone(folder) as check:
        check()
        assert capsys.readouterr().err == (
            f"warning: {folder} is taken over from process 7 on elsewhere, which stops when it next looks at the "
            "folder; train on one machine at a time\n"
        )
        assert owner_of(folder)["host"] != "elsewhere"


def test_look_that_fails_ends_no_run(hold_alone, folder, monkeypatch):
    def read(_):
        raise tf.errors.UnavailableError(None, None, "try again")

    with hold_alone(folder) as check, monkeypatch.context() as patch:
        patch.setattr(held_folder, "_read", read)
        check()


def test_owner_is_not_looked_at_all_the_time(hold_alone, folder, monkeypatch):
    with hold_alone(folder) as check:
        monkeypatch.setattr(held_folder, "_SECONDS_BETWEEN_LOOKS", 1000.0)
        run_elsewhere(folder)
        check()
        monkeypatch.setattr(held_folder, "_SECONDS_BETWEEN_LOOKS", 0.0)
        with pytest.raises(InputError):
            check()
