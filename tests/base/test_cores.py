import io
import os

import pytest

from albert_tf.base.processes import computes_in_bfloat16, num_usable_cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system doesn't tell which cores may be used")
def test_cores_that_may_not_be_used_do_not_count():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, [min(allowed)])
        assert num_usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert num_usable_cores() == len(allowed)


@pytest.mark.parametrize(("flags", "expected"), [("avx2 avx512f amx_bf16", True), ("avx2 avx512f", False)])
def test_products_in_bfloat16_are_told_by_the_processors_flags(monkeypatch, flags, expected):
    monkeypatch.setattr("builtins.open", lambda *_, **__: io.StringIO(f"model name\t: A\nflags\t\t: {flags}\n"))
    assert computes_in_bfloat16() is expected


def test_nothing_is_claimed_of_a_system_that_does_not_tell(monkeypatch):
    def fail(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", fail)
    assert computes_in_bfloat16() is None
