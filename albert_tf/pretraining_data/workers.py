"""Tasks on worker processes, or without any where one is enough."""

import collections
import collections.abc
import concurrent.futures
import gc
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading

import tensorflow as tf

_state = None  # of a worker process


class WorkerPool:
    """Runs methods of an object of which every process has its own.

    With one worker there is no other process: the tasks run here. As a context manager, it stops its processes.

    Args:
        num_workers: Number of processes.
        make_state: Called with `arguments` in each process; importable by name, as what its methods take and return
            must be.
    """

    def __init__(self, num_workers: int, make_state: collections.abc.Callable, *arguments):
        self._num_workers = num_workers
        # What importing TensorFlow has left in memory stays there: no use in looking through it for garbage.
        gc.freeze()
        if num_workers == 1:
            self._state = make_state(*arguments)
        else:
            # TensorFlow's threads don't survive a fork, so this process can't be forked. The fork server has imported
            # TensorFlow and not used it: its children start at once and share what the import has put into memory.
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload([make_state.__module__])
            self._executor = concurrent.futures.ProcessPoolExecutor(
                num_workers, context, _start_worker, (make_state, arguments)
            )

    def map(self, method: str, tasks: collections.abc.Iterable[tuple]) -> collections.abc.Iterator:
        """Yields what the method returns for each task's arguments, in the order of the tasks.

        Tasks are drawn only a few ahead of the workers.

        Raises:
            ChildProcessError: A worker process was killed.
        """
        if self._num_workers == 1:
            for task in tasks:
                yield getattr(self._state, method)(*task)
            return
        waiting = collections.deque()
        try:
            for task in tasks:
                waiting.append(self._executor.submit(_run_task, method, task))
                if len(waiting) > 2 * self._num_workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except concurrent.futures.process.BrokenProcessPool as error:
            raise ChildProcessError("a worker process was killed, perhaps for want of memory") from error

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *_) -> None:
        if self._num_workers > 1:
            self._executor.shutdown(cancel_futures=True)


def _start_worker(make_state, arguments):
    global _state
    # The first process is told of an interrupt too, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Workers share the cores: more threads would only get into each other's way.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    _state = make_state(*arguments)
    gc.freeze()


def _end_with_parent():
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _run_task(method, task):
    return getattr(_state, method)(*task)
