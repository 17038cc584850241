"""The CPU cores of a machine."""

import os


def num_usable_cores() -> int:
    """Returns how many cores this process may use, where the system tells that; otherwise how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
