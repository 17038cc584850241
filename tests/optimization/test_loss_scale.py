"""The scale of the loss where products are in float16: it falls when gradients overflow, and rises again."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.optimization import LearningRateSchedule, make_optimizer
from albert_tf.optimization.optimizers import LossScale

STRATEGY = tf.distribute.get_strategy()


def go_on(scale, is_finite, is_overflow=False):
    scale.assign(STRATEGY, scale.next_values(tf.constant(is_finite), tf.constant(is_overflow)))


def test_scale_is_halved_by_an_overflow_and_doubled_after_2000_steps_without():
    scale = LossScale()
    scale.scale.assign(8.0)
    for _ in range(1999):
        go_on(scale, True)
    assert scale.scale.numpy() == 8.0
    go_on(scale, True)
    assert scale.scale.numpy() == 16.0
    go_on(scale, False, True)
    assert scale.scale.numpy() == 8.0
    assert scale.overflows.numpy() == 1
    # Counted anew after either.
    go_on(scale, True)
    assert scale.steps_at_scale.numpy() == 1


def test_scale_has_a_largest_value():
    scale = LossScale()
    scale.scale.assign(2.0**24)
    scale.steps_at_scale.assign(1999)
    go_on(scale, True)
    assert scale.scale.numpy() == 2.0**24


@pytest.mark.parametrize(
    ("loss", "norm", "scale", "expected"),
    [(1.0, np.inf, 2.0, True), (1.0, np.nan, 2.0, True), (np.nan, np.nan, 2.0, False), (1.0, np.inf, 1.0, False)],
)
def test_only_what_a_smaller_scale_may_help_is_an_overflow(loss, norm, scale, expected):
    tested = LossScale()
    tested.scale.assign(scale)
    assert bool(tested.is_overflow(tf.constant(loss), tf.constant(norm))) is expected


def test_optimizer_undoes_the_scale_and_leaves_overflows_out_without_calling_them_skipped():
    states = []
    for dtype, factor in (("float32", 1.0), ("float16", 2.0**15)):
        variable = tf.Variable([1.0, 2.0], name="w")
        schedule = LearningRateSchedule(0.1, 10)
        optimizer = make_optimizer("adamw", {"w": variable}, schedule, compute_dtype=dtype, bias_correction=True)
        assert float(optimizer.scaled(tf.constant(3.0))) == 3.0 * factor
        step = 0
        if dtype == "float16":
            optimizer.apply({"w": tf.constant([np.inf, 1.0])}, tf.constant(0), tf.constant(1.0))
            np.testing.assert_array_equal(variable, [1.0, 2.0])
            assert optimizer.loss_scale.scale.numpy() == 2.0**14
            factor, step = 2.0**14, 1
        for _ in range(3):
            gradient = factor * tf.constant([0.5, -0.25])
            optimizer.apply({"w": gradient}, tf.constant(step), tf.constant(1.0))
            step += 1
        assert optimizer.skipped_steps.numpy() == 0
        states.append((optimizer.first_moments["w"].numpy(), optimizer.second_moments["w"].numpy()))
    np.testing.assert_allclose(states[1], states[0], rtol=1e-6)


def test_what_is_not_finite_at_any_scale_is_a_skipped_step():
    variable = tf.Variable([1.0], name="w")
    optimizer = make_optimizer("adamw", {"w": variable}, LearningRateSchedule(0.1, 10), compute_dtype="float16")
    optimizer.apply({"w": tf.constant([np.nan])}, tf.constant(4), tf.constant(np.nan))
    assert optimizer.skipped_steps.numpy() == 1
    assert optimizer.last_skipped_step.numpy() == 4
    assert optimizer.loss_scale.scale.numpy() == 2.0**15
