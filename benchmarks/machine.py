"""What this machine can do, and what a process takes of it."""

import os


def computes_in_bfloat16() -> bool:
    """Returns whether the processor multiplies matrices in bfloat16; where it can't, TensorFlow is slow at it."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return bool({"avx512_bf16", "amx_bf16"} & set(file.read().split()))


def megabytes(process_id: int) -> float:
    """Returns the memory that a process holds."""
    with open(f"/proc/{process_id}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_seconds(process_id: int) -> float:
    """Returns the CPU time that a process has used, of all its threads, in user and system mode."""
    with open(f"/proc/{process_id}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
