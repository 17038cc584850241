"""How long a step takes: the very step is trained for as long as was asked, and counted without its warm-up."""

import pytest
import tensorflow as tf
from tiny_training import PRETRAINING, loop_settings, make_examples, spec_of

from albert_tf.errors import InputError
from albert_tf.modeling.layers import named_variables
from albert_tf.training import Phase
from albert_tf.training.devices.strategy import make_strategy
from albert_tf.training.pace import Pace, measure_pace

EXAMPLES = make_examples(8)


def repeated(*_):
    return tf.data.Dataset.from_tensor_slices(EXAMPLES).batch(4, drop_remainder=True).repeat()


def test_steps_are_trained_and_counted_until_the_time_is_over():
    strategy, told = make_strategy(), []
    with strategy.scope():
        models = PRETRAINING.make_models()
    before = {name: variable.numpy() for name, variable in named_variables(models["model"]).items()}
    pace = measure_pace(
        strategy,
        PRETRAINING,
        models,
        loop_settings(),
        Phase(12, spec_of(EXAMPLES, 4), repeated),
        0.3,
        lambda *so_far: told.append(so_far),
    )
    assert told[-1] == pace and pace.seconds >= 0.3
    assert [so_far < 0.3 for _, so_far in told] == [True] * (len(told) - 1) + [False]
    assert [steps for steps, _ in told] == sorted({steps for steps, _ in told})
    assert any((variable.numpy() != before[name]).any() for name, variable in named_variables(models["model"]).items())


def test_batches_that_a_training_refuses_are_not_measured():
    strategy = make_strategy()
    with pytest.raises(InputError, match="`train_batch_size=4` must be a multiple of 3, the number of replicas"):
        phase = Phase(12, spec_of(EXAMPLES, 4), repeated, gradient_accumulation_steps=3)
        measure_pace(strategy, PRETRAINING, {}, loop_settings(), phase, 0.3)


def test_pace_is_seconds_by_steps():
    assert Pace(4, 2.0).seconds_per_step == pytest.approx(0.5)
