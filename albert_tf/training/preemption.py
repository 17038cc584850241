"""Stopping in time: Cloud TPU sends SIGTERM some seconds before it takes a machine away, and users press Ctrl-C."""

import os
import signal
import sys
import threading

import tensorflow as tf

# The signals that ask for a stop, and what people call them.
CAUSES = {signal.SIGTERM: "SIGTERM", signal.SIGINT: "Ctrl-C"}


class StopRequest:
    """Turns SIGTERM and SIGINT into a variable that the training loop looks at between two steps; a context manager.

    Python runs the handlers of signals only between two of its own instructions, and one call of the loop may train for
    minutes. So the C handler writes the signal's number to a pipe at once, and a thread that reads from the pipe sets
    the variable. A second SIGINT ends the process at once; in a notebook, whose process must stay, it raises
    KeyboardInterrupt as soon as Python comes to it. A signal that is ignored stays so, as SIGINT is by a script's
    background jobs.

    Where several workers must stop at the same step, `interrupts_loop` is False: the bool variable, on the host's CPU,
    stays as it is, and they ask `is_made` between two calls of the loop. `cause` is SIGTERM where another received it.
    """

    def __init__(self, interrupts_loop: bool = True):
        self._interrupts_loop = interrupts_loop
        with tf.device("CPU:0"):
            self.variable = tf.Variable(False, trainable=False, name="stop_requested")
        self._received = threading.Event()
        self._interrupts = self._handled_interrupts = 0
        self.cause = signal.SIGTERM

    @property
    def is_made(self) -> bool:
        """Whether a signal came."""
        return self._received.is_set()

    def __enter__(self):
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._thread = None
        # Python allows signal handlers in the main thread alone; elsewhere, as in a notebook's, nothing is caught.
        if threading.current_thread() is threading.main_thread():
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
            self._old_pipe = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
            heeded = [number for number in CAUSES if signal.getsignal(number) != signal.SIG_IGN]
            self._old_handlers = {number: signal.signal(number, self._handle) for number in heeded}
        return self

    def __exit__(self, *_):
        if self._thread is not None:
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._old_pipe)
        os.close(self._write_end)
        if self._thread is not None:
            self._thread.join()  # it has seen the end of the pipe
        os.close(self._read_end)

    def _handle(self, number, _):
        """Runs in the main thread, before `_watch` or much later."""
        self._handled_interrupts += number == signal.SIGINT
        if max(self._handled_interrupts, self._interrupts) > 1 and _is_notebook():
            raise KeyboardInterrupt

    def _watch(self):
        while received := os.read(self._read_end, 1):
            number = received[0]
            if number not in CAUSES:
                continue
            self._interrupts += number == signal.SIGINT
            if self._interrupts > 1 and number == signal.SIGINT and not _is_notebook():
                # Not with print, because the main thread may be in the middle of one.
                os.write(2, b"\nstopped at once by Ctrl-C; repeat the command to go on from what is saved\n")
                os._exit(128 + signal.SIGINT)
            if not self._received.is_set():
                self.cause = signal.Signals(number)
                self._received.set()
            if self._interrupts == 1 and number == signal.SIGINT:
                print("\nCtrl-C: stops after this step and saves; press it again to stop at once", flush=True)
            if self._interrupts_loop:
                self.variable.assign(True)


def _is_notebook():
    return "ipykernel" in sys.modules
