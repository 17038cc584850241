"""All workers of a run have one folder; a worker that sees another ends the run for all of them."""

import threading

import pytest

from albert_tf.errors import InputError
from albert_tf.training.devices.workers import Agreement
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
        "another worker can't go on; see what it says",
        f"--output_dir={second} is not the folder that the first worker writes to; give one that all workers can read, "
        "such as gs://...",
    ]
    assert not first.exists() and not second.exists()


def test_folder_that_the_first_worker_can_not_write_to_ends_all(hold, tmp_path):
    (tmp_path / "file").write_text("in the way")
    errors = hold(tmp_path / "file" / "run", tmp_path / "file" / "run")
    assert errors[0].startswith(f"can't write to --output_dir={tmp_path}/file/run: ")
    assert errors[1] == "another worker can't go on; see what it says"
