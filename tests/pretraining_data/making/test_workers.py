"""Worker processes change how long a build takes, and nothing else."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data.making.builder import build, shard_paths
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.making.workers import WorkerPool
from albert_tf.pretraining_data.manifest import WORK_FOLDER
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.reading.documents import CorpusReader

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Doubler:
    """A state for the pool: knows its process and what it was made with."""

    def __init__(self, factor):
        self.factor = factor

    def double(self, number):
        """Returns the product, and who computed it."""
        return number * self.factor, os.getpid()

    def fail(self, number):
        """Raises an error for odd numbers."""
        if number % 2:
            raise InputError(f"{number} is odd")

    def interrupt(self):
        """Does to the process what Ctrl-C does."""
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        return "undisturbed"

    def end(self):
        """Ends the process as a lack of memory would."""
        os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def doublers(number, *arguments):
    """Processes that double, or multiply by what else they are given."""
    with WorkerPool(number, Doubler) as pool:
        pool.prepare(*arguments)
        yield pool


def test_one_worker_needs_no_process():
    with doublers(1, 2) as pool:
        assert list(pool.map("double", [(1,), (2,)])) == [(2, os.getpid()), (4, os.getpid())]


@pytest.mark.slow
def test_results_come_in_the_order_of_the_tasks():
    with doublers(2, 3) as pool:
        results = list(pool.map("double", ((number,) for number in range(50))))
        assert list(pool.map("interrupt", [()])) == ["undisturbed"]  # only the first process hears of it
    assert [result for result, _ in results] == [3 * number for number in range(50)]
    processes = {process for _, process in results}
    assert os.getpid() not in processes
    assert not any(pathlib.Path(f"/proc/{process}/task").exists() for process in processes)


@pytest.mark.slow
def test_tasks_are_drawn_only_as_they_are_needed():
    drawn = []

    def tasks():
        for number in range(1000):
            drawn.append(number)
            yield (number,)

    with doublers(2, 1) as pool:
        next(pool.map("double", tasks()))
        assert len(drawn) < 20


def test_killed_worker_is_an_error():
    with pytest.raises(ChildProcessError, match="lack of memory"), doublers(2, 1) as pool:
        list(pool.map("end", [()]))


def test_error_in_a_worker_arrives_as_it_is():
    with pytest.raises(InputError, match="1 is odd") as failure, doublers(2, 1) as pool:
        list(pool.map("fail", ((number,) for number in range(5))))
    assert "in fail" in str(failure.value.__cause__)


def test_worker_that_cannot_begin_says_why():
    with pytest.raises(TypeError, match="3 were given"), doublers(2, 1, "one too many") as pool:
        list(pool.map("double", [(1,)]))


def command(folder, tokenizer_dir, sample_corpus, **flag_values):
    defaults = {
        "input_file": ",".join(sample_corpus),
        "vocab_file": f"{tokenizer_dir}/vocab.txt",
        "output_file": folder / "train.tfrecord",
        "num_shards": 5,
        "max_seq_length": 64,
        "masking": "static",
        "dupe_factor": 3,
    }
    flags = [f"--{name}={value}" for name, value in (defaults | flag_values).items()]
    return [sys.executable, str(ROOT / "create_pretraining_data.py"), *flags]


@pytest.mark.slow
def test_two_workers_give_the_bytes_of_one_also_after_a_kill(
    tmp_path, sample_tokenizer, sample_tokenizer_dir, sample_corpus, contents_of
):
    options = BuilderOptions(64, MaskingOptions(10), masking="static", objective="albert", dupe_factor=3)
    train_paths = shard_paths(str(tmp_path / "one" / "train.tfrecord"), 5)
    build(
        CorpusReader(sample_corpus), sample_tokenizer, options, train_paths, [str(tmp_path / "one/held_out.tfrecord")]
    )

    folder = tmp_path / "killed"
    arguments = command(folder, sample_tokenizer_dir, sample_corpus, num_workers=2)
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(folder, "train-*.json", process)
    workers = descendants_of(process.pid)
    assert len(workers) == 2  # and none that imports TensorFlow once more
    process.kill()
    process.wait()
    wait_for_the_end_of(workers)
    assert not (folder / "manifest.json").exists()
    subprocess.run([*arguments, "--resume"], check=True, capture_output=True)
    assert contents_of(folder) == contents_of(tmp_path / "one")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "number", "presses"), [("plan.json", signal.SIGTERM, 1), ("train-*", signal.SIGINT, 5)]
)
def test_interrupt_ends_all_processes_at_once_however_often_it_comes(
    tmp_path, sample_tokenizer_dir, sample_corpus, stage, number, presses
):
    arguments = command(tmp_path, sample_tokenizer_dir, sample_corpus, num_workers=2, dupe_factor=10)
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(tmp_path, stage, process)
    started = descendants_of(process.pid)
    for _ in range(presses):
        os.killpg(process.pid, number)
        time.sleep(0.02)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "interrupted; repeat the command with --resume to continue" in errors
    assert "Process" not in errors  # no other process has something to say
    wait_for_the_end_of(started)
    assert not (tmp_path / "manifest.json").exists()


def wait_for(folder, pattern, process):
    """Waits until a build has left a file in its work folder."""
    while not list((folder / WORK_FOLDER).glob(pattern)):
        assert process.poll() is None
        time.sleep(0.01)


def wait_for_the_end_of(processes):
    deadline = time.monotonic() + 60
    while any(pathlib.Path(f"/proc/{process}/task").exists() for process in processes):
        assert time.monotonic() < deadline, "processes outlive the one that started them"
        time.sleep(0.1)


def descendants_of(process_id):
    """The processes that a process has started and that these have started in turn."""
    children = pathlib.Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    return [*children, *(descendant for child in children for descendant in descendants_of(child))]
