"""Tasks on worker processes, or without any where one is enough."""

import collections
import collections.abc
import contextlib
import gc
import multiprocessing
import multiprocessing.connection
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import signal
import traceback

import tensorflow as tf

from albert_tf.base.startup import end_with_parent

_FIRST_IMPORT = "albert_tf.pretraining_data.making.interruptible_start"


class WorkerPool:
    """Runs methods of an object of which every process has its own, made by `make_state`.

    With one worker there is no other process: the tasks run here. The pool is a context manager, which kills its
    processes when it is left, in the middle of a task if need be: no task may depend on being finished. Processes start
    at once if TensorFlow has not been used yet, only imported. `make_state`, and the arguments and results of the
    methods, must be importable by name.

    This process has no thread and no lock of its own, so an interrupt never has to wait.
    """

    def __init__(self, num_workers: int, make_state: collections.abc.Callable):
        self._processes, self._busy, self._idle = [], set(), []
        self._make_state = make_state
        # Objects made by TensorFlow's import stay alive, so the garbage collector needn't scan them.
        gc.freeze()
        if num_workers == 1:
            return
        try:
            self._start(num_workers)
        except BaseException:
            self._end()
            raise

    def prepare(self, *arguments) -> None:
        """Lets every process make its object of these arguments; comes once, before the first map."""
        if not self._processes:
            self._state = self._make_state(*arguments)
        while self._idle:
            self._send(arguments)

    def map(self, method: str, tasks: collections.abc.Iterable[tuple]) -> collections.abc.Iterator:
        """Yields what the method returns for each task's arguments, in the order of the tasks.

        Tasks are drawn only a few ahead of the workers. One map must be read to its end before the next begins. Raises
        ChildProcessError if a worker process was killed.
        """
        if not self._processes:
            for task in tasks:
                yield getattr(self._state, method)(*task)
            return
        expected, waiting, answers = collections.deque(), collections.deque(), {}
        for number, task in enumerate(tasks):
            expected.append(number)
            waiting.append((number, method, task))
            self._exchange(waiting, answers, 0)
            if len(expected) > 3 * len(self._processes):
                yield self._result_of(expected.popleft(), waiting, answers)
        while expected:
            yield self._result_of(expected.popleft(), waiting, answers)

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *_) -> None:
        self._end()

    def _start(self, num_workers):
        context = multiprocessing.get_context("fork" if _is_unused() else "forkserver")
        if context.get_start_method() == "forkserver":
            _start_fork_server(context, self._make_state.__module__)
        with _blocked_interrupts():
            for _ in range(num_workers):
                connection, of_worker = context.Pipe()
                process = context.Process(target=_work, args=(of_worker, self._make_state), daemon=True)
                process.start()
                of_worker.close()  # so that the pipe closes when the process ends
                self._processes.append(process)
                self._idle.append(connection)

    def _end(self):
        # Once: whoever leaves the context around that of a build has nothing to wait for, where an interrupt that comes
        # again would take the place of the one that says how to go on.
        processes, self._processes = self._processes, []
        for process in processes:
            process.kill()
        for process in processes:
            process.join()

    def _result_of(self, number, waiting, answers):
        while number not in answers:
            self._exchange(waiting, answers, None)
        return answers.pop(number).result()

    def _exchange(self, waiting, answers, timeout):
        for connection in multiprocessing.connection.wait(self._busy, timeout):
            with _naming_a_killed_worker():
                number, answer = connection.recv()
            if number is None:
                answer.result()
            else:
                answers[number] = answer
            self._busy.remove(connection)
            self._idle.append(connection)
        while self._idle and waiting:
            self._send(waiting.popleft())

    def _send(self, message):
        connection = self._idle.pop()
        with _naming_a_killed_worker():
            connection.send(message)
        self._busy.add(connection)


class _Answer:
    """The result or error of a function in a worker process."""

    def __init__(self, function, *arguments):
        self._result = self._error = self._traceback = None
        try:
            self._result = function(*arguments)
        except Exception as error:
            self._error, self._traceback = error, traceback.format_exc()

    def result(self):
        if self._error is not None:
            raise self._error from RuntimeError(f"in a worker process:\n{self._traceback}")
        return self._result


def _is_unused():
    """Whether TensorFlow was only imported here: it takes settings of its threads until it is first used."""
    number = tf.config.threading.get_inter_op_parallelism_threads()
    try:
        tf.config.threading.set_inter_op_parallelism_threads(number + 1)
    except RuntimeError:
        return False
    tf.config.threading.set_inter_op_parallelism_threads(number)
    return True


def _start_fork_server(context, module):
    """Starts a process to fork in place of this one: it has imported TensorFlow, but no threads of it run."""
    context.set_forkserver_preload([_FIRST_IMPORT, module])
    multiprocessing.resource_tracker.ensure_running()  # separately, because it unblocks interrupts when it returns
    with _blocked_interrupts():
        multiprocessing.forkserver.ensure_running()


def _work(connection, make_state):
    """The loop of a worker process, until it is killed or the main process ends."""
    # The main process gets the interrupt too, and ends the workers.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    end_with_parent()
    # Workers share the cores; more threads would only compete for them.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    state = None

    def make(*arguments):
        nonlocal state
        state = make_state(*arguments)
        gc.freeze()

    with contextlib.suppress(EOFError, ConnectionError):
        connection.send((None, _Answer(make, *connection.recv())))
        while True:
            number, method, task = connection.recv()
            connection.send((number, _Answer(getattr(state, method), *task)))


@contextlib.contextmanager
def _blocked_interrupts():
    """Processes that are started inside receive no interrupt until they unblock them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _naming_a_killed_worker():
    try:
        yield
    except (EOFError, ConnectionError) as error:
        raise ChildProcessError("a worker process was killed, perhaps for lack of memory") from error
