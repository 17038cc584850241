"""Stopping in time: Cloud TPU sends SIGTERM some seconds before it takes a machine away."""

import os
import signal
import threading

import tensorflow as tf


class StopRequest:
    """Turns SIGTERM into a variable that the training loop looks at between two steps; a context manager.

    Python runs the handlers of signals only between two of its own instructions, and one call of the loop may train
    for minutes. So the signal's number goes to a pipe, which the C handler writes to at once, and a thread that reads
    from the pipe sets the variable.

    Args:
        interrupts_loop: Whether to set the variable. Where several workers must stop at the same step it stays False,
            and they ask `is_made` between two calls of the loop.

    Attributes:
        variable: bool variable on the host's CPU.
    """

    def __init__(self, interrupts_loop: bool = True):
        self._interrupts_loop = interrupts_loop
        with tf.device("CPU:0"):
            self.variable = tf.Variable(False, trainable=False, name="stop_requested")
        self._received = threading.Event()

    @property
    def is_made(self) -> bool:
        """Whether the signal came."""
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
            self._old_handler = signal.signal(signal.SIGTERM, lambda *_: None)
        return self

    def __exit__(self, *_):
        if self._thread is not None:
            signal.signal(signal.SIGTERM, self._old_handler)
            signal.set_wakeup_fd(self._old_pipe)
        os.close(self._write_end)
        if self._thread is not None:
            self._thread.join()  # it has seen the end of the pipe
        os.close(self._read_end)

    def _watch(self):
        while received := os.read(self._read_end, 1):
            if received[0] == signal.SIGTERM:
                self._received.set()
                if self._interrupts_loop:
                    self.variable.assign(True)
