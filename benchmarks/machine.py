"""What this machine can do, and what a process takes of it."""

import os


def megabytes(process_id: int) -> float:
    """Returns the memory that a process holds."""
    with open(f"/proc/{process_id}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_seconds(process_id: int) -> float:
    """Returns the CPU time that a process has used, of all its threads, in user and system mode."""
    with open(f"/proc/{process_id}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
