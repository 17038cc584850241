"""Imported by the fork server before all else, and by nothing else: an interrupt ends it at once, without a traceback.

It is started with interrupts blocked, and importing TensorFlow, which comes next, takes seconds.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
