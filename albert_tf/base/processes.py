"""Processes of this machine, and its cores."""

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


def num_usable_cores() -> int:
    """Returns how many cores this process may use; where the system doesn't tell, how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def computes_in_bfloat16() -> bool | None:
    """Returns whether the processor multiplies in bfloat16, at which TensorFlow is slow otherwise; None if unknown."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return not {"avx512_bf16", "amx_bf16", "bf16"}.isdisjoint(file.read().split())
    except OSError:
        return None
