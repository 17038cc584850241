import os

import pytest

from albert_tf.cores import num_usable_cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system doesn't tell which cores may be used")
def test_cores_that_may_not_be_used_do_not_count():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, [min(allowed)])
        assert num_usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert num_usable_cores() == len(allowed)
