"""What a process that this one starts for a part of its work has to do for itself."""

import multiprocessing
import multiprocessing.connection
import os
import threading


def end_with_parent() -> None:
    """Ends this process as soon as the one that started it ends, however that ends; call it in the child, first.

    Nothing happens in a process that `multiprocessing` didn't start.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent):
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
