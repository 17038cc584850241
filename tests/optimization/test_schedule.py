"""The learning rate of each step, against the formulas written out in plain Python."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given
from hypothesis import strategies as st

from albert_tf.base.errors import InputError
from albert_tf.optimization import LearningRateSchedule


def rates(schedule, steps):
    return schedule(tf.range(steps)).numpy()


def continuous_rate(step, peak, total, warmup, power):
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * max(0.0, 1 - (step - warmup) / (total - warmup)) ** power


def original_rate(step, peak, total, warmup, power):
    if step < warmup:
        return peak * step / warmup
    return peak * max(0.0, 1 - step / total) ** power


FORMULAS = {"continuous": continuous_rate, "original": original_rate}


@given(
    kind=st.sampled_from(sorted(FORMULAS)),
    peak=st.floats(1e-6, 1.0),
    total=st.integers(1, 1000),
    warmup=st.just(0) | st.integers(1, 999),
    power=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    step=st.integers(0, 1100),
)
def test_rate_follows_its_formula(kind, peak, total, warmup, power, step):
    assume(warmup < total)
    schedule = LearningRateSchedule(peak, total, warmup, power, kind)
    expected = FORMULAS[kind](step, peak, total, warmup, power)
    np.testing.assert_allclose(schedule(tf.constant(step)), expected, rtol=2e-4, atol=1e-6 * peak)


def test_continuous_rate_has_no_zero_first_step_and_no_jump():
    found = rates(LearningRateSchedule(1.0, num_train_steps=100, num_warmup_steps=10), 101)
    assert found[0] == pytest.approx(0.1)
    assert found.max() == found[9] == 1.0  # the last step of the warm-up
    # Never more than a step of the warm-up; rates up to 1 are rounded by 2**-24 three times before they are subtracted.
    assert np.abs(np.diff(found)).max() == pytest.approx(0.1, abs=6 * 2**-24)
    assert (found[:100] > 0).all()
    assert found[100] == 0


def test_rate_is_the_same_in_a_graph_and_for_a_64_bit_step():
    schedule = LearningRateSchedule(1e-3, num_train_steps=1_000_000, num_warmup_steps=100)
    step = tf.constant(123_456, tf.int64)
    expected = 1e-3 * (1_000_000 - 123_456) / (1_000_000 - 100)
    assert float(tf.function(schedule)(step)) == pytest.approx(expected, rel=1e-5)
    assert schedule(step).dtype == tf.float32


@pytest.mark.parametrize(
    ("changes", "received"),
    [
        ({"peak": 0.0}, "0.0"),
        ({"peak": float("nan")}, "nan"),
        ({"num_train_steps": 0}, "0 and 0"),
        ({"num_warmup_steps": 10}, "10 and 10"),
        ({"num_warmup_steps": -1}, "-1 and 10"),
        ({"power": -1.0}, "-1.0"),
        ({"kind": "cosine"}, "cosine"),
    ],
)
def test_bad_value_is_refused_with_what_was_received(changes, received):
    with pytest.raises(InputError) as caught:
        LearningRateSchedule(**{"peak": 1e-3, "num_train_steps": 10, **changes})
    message = str(caught.value)
    assert message.endswith(f"Received: {received}")
    assert "\n" not in message
