"""The cores of this machine's CPU, and whether they compute in bfloat16."""

import os


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
