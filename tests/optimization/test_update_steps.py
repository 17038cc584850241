"""Steps that leave no trace, averages of the weights, the scale of the loss, and variables that follow others."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.optimization import AdamW, LearningRateSchedule, make_optimizer
from albert_tf.optimization.optimizers import LossScale
from albert_tf.training.devices import make_strategy

KERNEL = "encoder/attention_layers/0/query/kernel"
SHAPES = {KERNEL: [3, 2], "bias": [2]}
AVERAGED = {**SHAPES, "unreached": [4]}  # whose gradients are those of the others
# The same rate at every step, so that a step more before it makes no difference to the next.
CONSTANT = LearningRateSchedule(0.1, num_train_steps=10, power=0.0)


def make_variables(seed=0, shapes=SHAPES):
    draws = np.random.default_rng(seed)
    return {name: tf.Variable(draws.normal(size=shape), dtype=tf.float32) for name, shape in shapes.items()}


def make_run(kind="lamb", **options):
    """Returns an optimizer, and a function that takes its state."""
    variables = make_variables()
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
@pytest.mark.parametrize(
    ("where", "value"), [("gradient", np.nan), ("gradient", -np.inf), ("loss", np.nan), ("loss", np.inf)]
)
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


def arrays(variables):
    return {name: variable.numpy() for name, variable in variables.items()}


@pytest.mark.parametrize("kind", ["lamb", "adamw", "muon"])
@pytest.mark.parametrize("decay", [0.999, 0.3])  # the warm-up of the decay never ends, and it ends after 3 steps
def test_averages_equal_the_reference(kind, decay):
    variables = make_variables(shapes=AVERAGED)
    optimizer = make_optimizer(kind, variables, CONSTANT, ema_decay=decay)
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
    variables = make_variables(shapes=AVERAGED)
    optimizer = AdamW(variables, CONSTANT, ema_decay=0.9)
    np.testing.assert_equal(arrays(optimizer.averages), arrays(variables))
    for name, variable in make_variables(1, AVERAGED).items():
        variables[name].assign(variable)
    optimizer.start_averages()
    np.testing.assert_equal(arrays(optimizer.averages), arrays(make_variables(1, AVERAGED)))


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_averages_stand_in_for_the_weights_for_a_while(is_interrupted):
    strategy = make_strategy(num_cpu_replicas=2)
    with strategy.scope():
        variables = make_variables(shapes=AVERAGED)
        frozen = variables.pop("bias")
        optimizer = AdamW(variables, CONSTANT, ema_decay=0.9)
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


STRATEGY = tf.distribute.get_strategy()


def go_on(scale, is_finite, is_overflow=False):
    scale.assign(STRATEGY, scale.next_values(tf.constant(is_finite), tf.constant(is_overflow)))


def test_scale_is_halved_by_an_overflow_and_doubled_after_2000_steps_without():
    scale = LossScale()
    scale.scale.assign(8.0)
    scale.steps_at_scale.assign(1998)
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
    # The largest there is stays.
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
    # A loss that isn't finite is so at any scale.
    optimizer.apply({"w": tf.constant([np.nan, 1.0])}, tf.constant(4), tf.constant(np.nan))
    assert (optimizer.skipped_steps.numpy(), optimizer.last_skipped_step.numpy()) == (1, 4)
    assert optimizer.loss_scale.scale.numpy() == 2.0**14
    np.testing.assert_allclose(states[1], states[0], rtol=1e-6)


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


def test_what_is_not_trained_does_not_follow():
    variables = {name: tf.Variable([1.0]) for name in NAMES}
    for name, gradient in (("own", 0.0), ("other", 1.0)):
        trained, given = {name: variables[name]}, {name: tf.constant([gradient])}
        options = {"weight_decay": 0.0, "followers": {"own": "other"}}
        optimizer = make_optimizer("adamw", trained, LearningRateSchedule(0.1, 10, 0), **options)
        STRATEGY.run(lambda given=given, apply=optimizer.apply: apply(given, tf.constant(0), tf.constant(1.0)) and None)
    assert float(variables["own"][0]) == 1.0 and float(variables["other"][0]) < 0.9
