"""Abilities of this machine, and the share of it that a process takes."""

import contextlib
import glob
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


def session_cpu_seconds(session_id: int) -> float:
    """Returns the CPU time of the processes of a session, and of those that they started and waited for."""
    ticks = 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        # A process may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(path, encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15])) if int(fields[3]) == session_id else 0
    return ticks / os.sysconf("SC_CLK_TCK")
