"""How long a step takes on this machine: the very step, on the very batches, for a while; nothing of it is kept."""

import collections.abc
import time
import typing

import tensorflow as tf

from albert_tf.objectives import Objective
from albert_tf.training.devices.batches import distribute_batches, read_batches
from albert_tf.training.evaluation import measured
from albert_tf.training.phase import Phase
from albert_tf.training.settings import RunSettings
from albert_tf.training.train_state import MAIN_MODEL, TrainState, learnt_variables
from albert_tf.training.train_step import make_train_function

# The first steps wait for the first batches, and for memory.
_WARM_UP_STEPS = 5
# What is measured at a time, so that Ctrl-C is heeded soon.
_SECONDS_AT_A_TIME = 2.0


class Pace(typing.NamedTuple):
    """How many steps took how many seconds, after a warm-up."""

    num_steps: int
    seconds: float

    @property
    def seconds_per_step(self) -> float:
        """Seconds of one step, the wait for its batch included."""
        return self.seconds / self.num_steps


def measure_pace(
    strategy: tf.distribute.Strategy,
    objective: Objective,
    models: dict[str, tf.keras.Model],
    settings: RunSettings,
    phase: Phase,
    seconds: float,
    tell: collections.abc.Callable[[int, float], None] = lambda num_steps, seconds: None,
) -> Pace:
    """Trains models for some seconds.

    Args:
        strategy: Where they were made.
        objective: What is learnt.
        models: They are trained, and so of no use afterwards. What should be frozen may be random.
        settings: How to train.
        phase: On what.
        seconds: How long to measure, after compiling and a warm-up. One step at least is measured.
        tell: Called with the steps and the seconds so far.

    Raises:
        InputError: Batches of that size can't be trained on.
    """
    phase.check_batch_size(strategy)
    with strategy.scope():
        optimizer = settings.make_optimizer(
            learnt_variables(objective, models), models[MAIN_MODEL].compute_dtype, objective.followers(models)
        )
    state = TrainState.create(strategy, objective, models, optimizer)
    with tf.device("CPU:0"):
        never = tf.Variable(False, trainable=False)
    train_steps = make_train_function(state, settings.random_seed, never, phase.gradient_accumulation_steps)

    def train_for(num_steps, iterator):
        started_at = time.monotonic()
        train_steps(iterator, tf.constant(num_steps))
        measured(objective, state.metric_sums)  # waits for the device
        return time.monotonic() - started_at

    def measure(iterator):
        for num_steps in (1, _WARM_UP_STEPS):  # the first one compiles
            train_for(num_steps, iterator)
        done, took, at_a_time = 0, 0.0, 1
        while took < seconds:
            latest = train_for(at_a_time, iterator)
            done, took = done + at_a_time, took + latest
            tell(done, took)
            at_a_time = max(1, min(2 * at_a_time, int(_SECONDS_AT_A_TIME * done / took)))
        return Pace(done, took)

    return read_batches(distribute_batches(strategy, phase.make_host_dataset(0)), measure)
