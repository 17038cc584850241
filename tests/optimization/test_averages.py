"""The moving average of the weights, against one computed in NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.optimization import AdamW, LearningRateSchedule, make_optimizer
from albert_tf.training.devices import make_strategy

KERNEL = "encoder/attention_layers/0/query/kernel"
SHAPES = {KERNEL: [3, 2], "bias": [2], "unreached": [4]}
SCHEDULE = LearningRateSchedule(0.1, num_train_steps=10, power=0.0)


def make_variables(seed=0):
    draws = np.random.default_rng(seed)
    return {name: tf.Variable(draws.normal(size=shape), dtype=tf.float32) for name, shape in SHAPES.items()}


def gradients_of(step):
    """Returns made-up gradients of all variables but one, by name."""
    draws = np.random.default_rng(step)
    return {name: tf.constant(draws.normal(size=SHAPES[name]), tf.float32) for name in (KERNEL, "bias")}


def arrays(variables):
    return {name: variable.numpy() for name, variable in variables.items()}


@pytest.mark.parametrize("kind", ["lamb", "adamw", "muon"])
@pytest.mark.parametrize("decay", [0.999, 0.3])  # the warm-up of the decay never ends, and it ends after 3 steps
def test_averages_equal_the_reference(kind, decay):
    variables = make_variables()
    optimizer = make_optimizer(kind, variables, SCHEDULE, ema_decay=decay)
    expected = {name: values.astype(np.float64) for name, values in arrays(variables).items()}
    for step in range(6):
        optimizer.apply(gradients_of(step), tf.constant(step), tf.constant(1.0))
        used = min(decay, (2 + step) / (11 + step))
        for name, weights in arrays(variables).items():
            expected[name] = used * expected[name] + (1 - used) * weights
            found = optimizer.averages[name].numpy()
            np.testing.assert_allclose(found, expected[name], rtol=1e-6, atol=1e-7, err_msg=f"{name}, step {step}")
    assert np.abs(optimizer.averages[KERNEL] - variables[KERNEL]).max() > 0.01
    np.testing.assert_array_equal(optimizer.averages["unreached"], variables["unreached"])


def test_averages_begin_where_they_are_told_to():
    variables = make_variables()
    optimizer = AdamW(variables, SCHEDULE, ema_decay=0.9)
    np.testing.assert_equal(arrays(optimizer.averages), arrays(variables))
    for name, variable in make_variables(seed=1).items():
        variables[name].assign(variable)
    optimizer.start_averages()
    np.testing.assert_equal(arrays(optimizer.averages), arrays(make_variables(seed=1)))


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_averages_stand_in_for_the_weights_for_a_while(is_interrupted):
    strategy = make_strategy(num_cpu_replicas=2)
    with strategy.scope():
        variables = make_variables()
        frozen = variables.pop("bias")
        optimizer = AdamW(variables, SCHEDULE, ema_decay=0.9)
    for average in optimizer.averages.values():
        average.assign(average + 0.1)
    weights, averages, other = arrays(variables), arrays(optimizer.averages), frozen.numpy()
    # A value that any arithmetic would make another: the smallest there is, which most processors take for 0.
    weights["unreached"][0] = np.float32(1e-45)
    variables["unreached"].assign(weights["unreached"])
    try:
        with optimizer.averaged_weights():
            for name, variable in variables.items():
                for copy in strategy.experimental_local_results(variable):
                    np.testing.assert_array_equal(copy.numpy(), averages[name], err_msg=name)
            np.testing.assert_array_equal(frozen.numpy(), other)
            if is_interrupted:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert is_interrupted
    for name, variable in variables.items():
        for copy in strategy.experimental_local_results(variable):
            assert copy.numpy().tobytes() == weights[name].tobytes(), name
    np.testing.assert_equal(arrays(optimizer.averages), averages)


def test_without_averages_the_weights_stay_in_their_place():
    variables = make_variables()
    optimizer = AdamW(variables, SCHEDULE)
    before = arrays(variables)
    assert not optimizer.averages
    with optimizer.averaged_weights():
        np.testing.assert_equal(arrays(variables), before)
