"""A variable that follows another one, and learns by itself what to add to it."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.optimization import LearningRateSchedule, make_optimizer
from albert_tf.training.devices import make_strategy

NUM_STEPS, SHAPE, NAMES = 20, [6, 4], ("own", "other")


def train(kind, follows, weight_decay, num_replicas=1, **options):
    """Returns sum, part, and the average of the sum after some steps; the sum is a variable only if it follows."""
    random = np.random.default_rng(0)
    begin = random.normal(size=SHAPE).astype(np.float32)
    gradients = random.normal(size=[NUM_STEPS, 2, *SHAPE]).astype(np.float32)
    gradients[7] = np.nan  # a step that is skipped
    strategy = make_strategy(num_cpu_replicas=num_replicas)
    with strategy.scope():
        variables = dict(zip(NAMES, (tf.Variable(begin if follows else 0 * begin), tf.Variable(begin))))
        optimizer = make_optimizer(
            kind,
            variables,
            LearningRateSchedule(0.01, NUM_STEPS, 0),
            weight_decay=weight_decay,
            clip_norm=0.0,
            ema_decay=0.9,
            rate_factors=dict.fromkeys(NAMES, 0.5),
            followers={"own": "other"} if follows else {},
            **options,
        )

    @tf.function
    def step(gradients, number):
        given = dict(zip(NAMES, tf.unstack(gradients)))
        strategy.run(lambda: optimizer.apply(given, number, tf.constant(1.0)).gradient_norm)

    for number, given in enumerate(gradients):
        step(tf.constant(given), tf.constant(number))
    for variable in variables.values():
        first, *others = (copy.numpy() for copy in strategy.experimental_local_results(variable))
        assert all((copy == first).all() for copy in others)
    own, other = (variables[name].numpy() for name in NAMES)
    averages = [optimizer.averages[name].numpy() for name in NAMES]
    return (own, other, averages[0]) if follows else (own + other, other, sum(averages))


# Decay is taken of the sum once it has followed, which differs by products of learning rate, decay and update.
@pytest.mark.parametrize(
    ("kind", "weight_decay", "num_replicas", "tolerance"),
    [("adamw", 0.0, 1, 1e-6), ("muon", 0.0, 2, 1e-6), ("adamw", 0.1, 1, 1e-4)],
)
def test_follower_is_the_sum_of_the_other_and_of_what_its_own_gradient_adds(
    kind, weight_decay, num_replicas, tolerance
):
    expected = train(kind, False, weight_decay)
    for found, value in zip(train(kind, True, weight_decay, num_replicas), expected):
        np.testing.assert_allclose(found, value, atol=tolerance)


def take_first_step(variables, weight_decay, **gradients):
    schedule, gradients = LearningRateSchedule(0.1, 10, 0), {name: tf.constant(gradients[name]) for name in variables}
    optimizer = make_optimizer("adamw", variables, schedule, weight_decay=weight_decay, followers={"own": "other"})
    tf.distribute.get_strategy().run(lambda: optimizer.apply(gradients, tf.constant(0), tf.constant(1.0)).gradient_norm)


def test_follower_decays_once():
    variables = {name: tf.Variable([1.0, -2.0]) for name in NAMES}
    take_first_step(variables, 0.1, own=[0.0, 0.0], other=[3.0, 4.0])
    assert (np.abs(variables["other"] - [1.0, -2.0]) > 0.01).all()
    np.testing.assert_allclose(variables["own"], variables["other"], atol=0.1 * 0.1 * 0.5)


def test_what_is_not_trained_does_not_follow():
    own, other = tf.Variable([1.0]), tf.Variable([1.0])
    take_first_step({"own": own}, 0.0, own=[0.0])
    take_first_step({"other": other}, 0.0, other=[1.0])
    assert float(own[0]) == 1.0 and float(other[0]) < 0.9
