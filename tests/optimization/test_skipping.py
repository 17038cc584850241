"""A step whose loss or gradient is not finite leaves no trace but a count."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.optimization import LearningRateSchedule, make_optimizer

KERNEL = "encoder/attention_layers/0/query/kernel"
SHAPES = {KERNEL: [3, 2], "bias": [2]}
# The same rate at every step, so that a step more before it makes no difference to the next.
CONSTANT = LearningRateSchedule(0.1, num_train_steps=10, power=0.0)
BAD = {"NaN": float("nan"), "infinity": float("inf"), "minus infinity": float("-inf")}


def make_run(kind="lamb", **options):
    """Returns an optimizer, and a function that takes its state."""
    draws = np.random.default_rng(0)
    variables = {name: tf.Variable(draws.normal(size=shape), dtype=tf.float32) for name, shape in SHAPES.items()}
    optimizer = make_optimizer(kind, variables, CONSTANT, ema_decay=0.9, **options)

    def state():
        groups = (variables, optimizer.first_moments, optimizer.second_moments, optimizer.averages)
        return [{name: variable.numpy() for name, variable in group.items()} for group in groups]

    return optimizer, state


def gradients_of(step):
    draws = np.random.default_rng(step)
    return {name: tf.constant(draws.normal(size=shape), tf.float32) for name, shape in SHAPES.items()}


def with_one_bad(gradients, value):
    kernel = gradients[KERNEL].numpy()
    kernel[1, 1] = value
    return {**gradients, KERNEL: tf.constant(kernel)}


@pytest.mark.parametrize("kind", ["lamb", "adamw", "muon"])
@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
@pytest.mark.parametrize("where", ["gradient", "loss"])
def test_bad_step_changes_no_bit(kind, value, where):
    optimizer, state = make_run(kind)
    optimizer.apply(gradients_of(0), tf.constant(0), tf.constant(1.0))
    before = state()
    gradients = with_one_bad(gradients_of(1), value) if where == "gradient" else gradients_of(1)
    applied = optimizer.apply(gradients, tf.constant(1), tf.constant(value if where == "loss" else 1.0))
    assert not applied.is_finite
    np.testing.assert_equal(state(), before)
    assert (optimizer.skipped_steps.numpy(), optimizer.last_skipped_step.numpy()) == (1, 1)


def test_gradients_whose_norm_overflows_are_skipped():
    optimizer, state = make_run()
    before = state()
    huge = {name: gradient * 1e30 for name, gradient in gradients_of(0).items()}
    assert all(np.isfinite(gradient).all() for gradient in huge.values())
    assert not optimizer.apply(huge, tf.constant(0), tf.constant(1.0)).is_finite
    np.testing.assert_equal(state(), before)


@pytest.mark.parametrize("kind", ["lamb", "adamw"])
def test_later_steps_go_on_as_if_there_had_been_no_bad_one(kind):
    """Also the corrections of the moments' bias and the warm-up of the averages count applied updates alone."""
    optimizer, state = make_run(kind, bias_correction=True)
    bad, bad_state = make_run(kind, bias_correction=True)
    for step in range(3):
        optimizer.apply(gradients_of(step), tf.constant(step), tf.constant(1.0))
    calls = [gradients_of(0), with_one_bad(gradients_of(7), float("nan")), gradients_of(1)]
    calls += [with_one_bad(gradients_of(8), float("inf")), gradients_of(2)]
    for step, gradients in enumerate(calls):
        bad.apply(gradients, tf.constant(step), tf.constant(1.0))
    np.testing.assert_equal(bad_state(), state())
    assert (bad.skipped_steps.numpy(), bad.last_skipped_step.numpy()) == (2, 3)
    assert (optimizer.skipped_steps.numpy(), optimizer.last_skipped_step.numpy()) == (0, -1)


def test_bias_correction_makes_the_first_update_as_long_as_later_ones():
    lengths = {}
    for corrects in (True, False):
        optimizer, state = make_run("adamw", bias_correction=corrects, weight_decay=0.0)
        before = state()[0]["bias"]
        optimizer.apply(with_one_bad(gradients_of(1), float("nan")), tf.constant(0), tf.constant(1.0))
        optimizer.apply(gradients_of(0), tf.constant(1), tf.constant(1.0))
        lengths[corrects] = np.abs(state()[0]["bias"] - before)
    np.testing.assert_allclose(lengths[True], 0.1, rtol=1e-3)  # the learning rate, as in the first step of Adam
    np.testing.assert_allclose(lengths[False], 0.1 * 0.1 / np.sqrt(0.001), rtol=1e-3)
