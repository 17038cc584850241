"""Imported by the fork server before all else, and by nothing else: an interrupt ends it at once, without a traceback.

It is started with interrupts blocked, and importing TensorFlow, which comes next, takes seconds. What TensorFlow says
meanwhile is held back, as in the first process.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

from albert_tf.startup import without_messages_of_libraries  # noqa: E402

with without_messages_of_libraries():
    import tensorflow  # noqa: F401
