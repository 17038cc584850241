"""What tells one process from all others, on this machine and elsewhere."""

import contextlib
import os
import socket


def this_process() -> dict[str, str | int | None]:
    """Returns what tells this process: "host", "machine", "pid" and "process_started", None for what nobody knows."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "machine": _machine(), "pid": pid, "process_started": _start_of(pid)}


def is_alive_here(process: dict) -> bool | None:
    """Returns whether a process runs on this machine; None if it is one of another machine.

    Args:
        process: What `this_process` said there.
    """
    machine = _machine()
    if machine is None or (process.get("host"), process.get("machine")) != (socket.gethostname(), machine):
        return None
    return process.get("process_started") is not None and _start_of(process.get("pid")) == process["process_started"]


def _machine():
    """Returns what tells this boot of this machine, and the container; None where the system doesn't say."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"


def _start_of(pid):
    """Returns when a process was started, in ticks since the machine was; None if it is gone or nobody knows."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[19])
