"""A model of two variables, for tests of the loop: its steps are traced in no time."""

import signal

import numpy as np
import tensorflow as tf
from tiny_training import SCHEDULE, TinyRun

from albert_tf.modeling.layers import Linear, named_variables
from albert_tf.objectives import Objective
from albert_tf.optimization import make_optimizer
from albert_tf.training.devices import make_strategy
from albert_tf.training.train_state import TrainState

INPUTS = 3


class LinearObjective(Objective):
    """Fits a plane, with noise in place of dropout."""

    metric_names = ("absolute_error",)
    compares_examples = True  # the noise of an example depends on its place

    def __init__(self, selection_metric="loss"):
        self.loss_coefficients = {"squared_error": 1.0}
        self.selection_metric = selection_metric

    def make_model(self, **options):
        return Linear(INPUTS, 1, 0.5)

    def batch_spec(self, max_seq_length):
        shapes = {"inputs": [None, INPUTS], "targets": [None], "weights": [None]}
        return {name: tf.TensorSpec(shape, tf.float32) for name, shape in shapes.items()}

    def loss_weights(self, batch):
        return {"squared_error": tf.reduce_sum(batch["weights"])}

    def compute(self, batch, training, dropout_seed, model):
        inputs = batch["inputs"]
        if training:
            inputs += 0.1 * tf.random.stateless_normal(tf.shape(inputs), dropout_seed)
        errors = model(inputs)[..., 0] - batch["targets"]
        weight = tf.reduce_sum(batch["weights"])
        return {
            "squared_error": (tf.reduce_sum(batch["weights"] * errors**2), weight),
            "absolute_error": (tf.reduce_sum(batch["weights"] * tf.abs(errors)), weight),
        }


def make_linear_examples(*shape: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Returns points near a plane, all with weight 1; the shape is [examples] or [examples, points in each]."""
    draws = np.random.default_rng(seed)
    inputs = draws.normal(size=[*shape, INPUTS]).astype(np.float32)
    targets = inputs @ np.float32([1, -2, 3]) + draws.normal(size=shape).astype(np.float32)
    return {"inputs": inputs, "targets": targets, "weights": np.ones(shape, np.float32)}


def unevenly_weighted_points() -> dict[str, np.ndarray]:
    """Returns three batches of 8: whole weights; all weight in the first two rows; none in the second half."""
    examples = make_linear_examples(3 * 8)
    weights = examples["weights"].reshape(3, 8)
    weights[0] = [1, 5, 0, 2, 1, 1, 3, 9]
    weights[1, 2:] = 0
    weights[2, 4:] = 0
    return examples


def start_linear(
    num_replicas: int = 1,
    seed: int = 0,
    selection_metric: str = "loss",
    schedule=SCHEDULE,
    optimizer: str = "adamw",
    **optimizer_options,
) -> TinyRun:
    """Returns a run with weights that follow from the seed."""
    strategy, objective = make_strategy(num_cpu_replicas=num_replicas), LinearObjective(selection_metric)
    tf.keras.utils.set_random_seed(seed)
    with strategy.scope():
        model = objective.make_model()
        optimizer = make_optimizer(optimizer, named_variables(model), schedule, **optimizer_options)
    return TinyRun(TrainState.create(strategy, objective, {"model": model}, optimizer))


class StopAt:
    """Stands in for `StopRequest`: the request comes in the middle of a loop, when so many steps are done."""

    def __init__(self, global_step: tf.Variable, step: int):
        self._global_step, self._step = global_step, step
        self.variable, self.cause = self, signal.SIGTERM

    def __call__(self, interrupts_loop):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def read_value(self) -> tf.Tensor:
        """Returns what the variable would hold."""
        return self._global_step.read_value() >= self._step

    @property
    def is_made(self) -> bool:
        return bool(self.read_value())
