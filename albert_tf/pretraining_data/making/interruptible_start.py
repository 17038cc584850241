"""The fork server's first import, and nobody else's: lets an interrupt end the server at once, without a traceback.

The server starts with interrupts blocked, and importing TensorFlow, which comes next, takes seconds. TensorFlow's
messages are held back, as in the main process.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})

from albert_tf.base.startup import fast_import, without_messages_of_libraries  # noqa: E402

with without_messages_of_libraries(), fast_import():
    import tensorflow  # noqa: F401
