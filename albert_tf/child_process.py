"""Tasks of a process that another one started for a part of its work."""

import multiprocessing
import multiprocessing.connection
import os
import threading


def end_with_parent() -> None:
    """Ends this process, if `multiprocessing` started it, as soon as its parent ends; call it first in the child."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent):
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
