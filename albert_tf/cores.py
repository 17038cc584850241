"""The CPU of a machine: its cores, and what they compute."""

import os


def num_usable_cores() -> int:
    """Returns how many cores this process may use, where the system tells that; otherwise how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def computes_in_bfloat16() -> bool | None:
    """Whether the processor has products in bfloat16, at which TensorFlow is slow otherwise; None if unknown."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return not {"avx512_bf16", "amx_bf16", "bf16"}.isdisjoint(file.read().split())
    except OSError:
        return None
