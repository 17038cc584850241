"""A process that is killed takes those that it started with it; and what is known of the processor."""

import io
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from albert_tf.base.startup import computes_in_bfloat16, num_usable_cores

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# A step that never comes to the compiler: its process tells its number and sleeps.
PROGRAM = """
import functools, os, pathlib, sys, time

from albert_tf.runs.tpu_planner import TPUS
from albert_tf.runs.tpu_planner import CompiledSteps


def sleep(path):
    pathlib.Path(path + ".new").write_text(str(os.getpid()))
    os.rename(path + ".new", path)
    time.sleep(600)


if __name__ == "__main__":
    CompiledSteps(None).figures(functools.partial(sleep, sys.argv[1]), next(iter(TPUS.values())))
"""


@pytest.mark.slow
def test_compiling_ends_with_the_process_that_asked_for_it(tmp_path):
    script, told = tmp_path / "program.py", tmp_path / "pid"
    script.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, str(script), str(told)], env=environment) as parent:
        while not told.exists():
            assert parent.poll() is None
            time.sleep(0.05)
        parent.terminate()
        assert parent.wait() == -signal.SIGTERM
    child = int(told.read_text())
    try:
        wait_for_end(child)
    finally:
        if is_running(child):
            os.kill(child, signal.SIGKILL)


def wait_for_end(pid):
    """Waits until a process has ended; fails after so long that it won't any more."""
    for _ in range(600):
        if not is_running(pid):
            return
        time.sleep(0.1)
    pytest.fail(f"process {pid} still runs")


def is_running(pid):
    """Whether there is such a process that is more than an entry that nobody has asked about yet."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system doesn't tell which cores may be used")
def test_cores_that_may_not_be_used_do_not_count():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, [min(allowed)])
        assert num_usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert num_usable_cores() == len(allowed)


def test_products_in_bfloat16_are_told_by_the_processors_flags_if_the_system_tells_them(monkeypatch):
    for flags, expected in (("avx2 avx512f amx_bf16", True), ("avx2 avx512f", False)):
        content = f"model name\t: A\nflags\t\t: {flags}\n"
        monkeypatch.setattr("builtins.open", lambda *_, content=content, **__: io.StringIO(content))
        assert computes_in_bfloat16() is expected

    def fail(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", fail)
    assert computes_in_bfloat16() is None
