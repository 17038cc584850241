"""A model small enough to train in a test, batches for it, and a run of the loop over them."""

import dataclasses
import io

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.modeling import AlbertForPreTraining
from albert_tf.objectives import make_objective
from albert_tf.objectives.objective import BatchSpec
from albert_tf.optimization import AdamW, LearningRateSchedule, make_optimizer
from albert_tf.training.batches import distribute_batches
from albert_tf.training.devices import make_strategy
from albert_tf.training.evaluation import Evaluator, measured
from albert_tf.training.progress import Progress
from albert_tf.training.run_folder.checkpoints import Checkpointer
from albert_tf.training.settings import Phase, RunSettings
from albert_tf.training.train_loop import TrainResult, train
from albert_tf.training.train_state import TrainState, begin_as_followers, learnt_variables
from albert_tf.training.train_step import make_train_function

CONFIG = tiny_config(40, intermediate_size=32, max_position_embeddings=16)
SEQUENCE_LENGTH, PREDICTIONS = 12, 4
PRETRAINING = make_objective("albert", CONFIG)
SCHEDULE = LearningRateSchedule(peak=0.01, num_train_steps=12, num_warmup_steps=3)


def make_examples(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Returns made-up pre-training examples with the features of the input pipeline, all with weight 1."""
    draws = np.random.default_rng(seed)
    lengths = draws.integers(6, SEQUENCE_LENGTH + 1, count)
    input_mask = np.arange(SEQUENCE_LENGTH) < lengths[:, None]
    features = {
        "input_ids": draws.integers(5, CONFIG.vocab_size, [count, SEQUENCE_LENGTH]) * input_mask,
        "input_mask": input_mask,
        "segment_ids": (np.arange(SEQUENCE_LENGTH) >= 4) & input_mask,
        "masked_lm_positions": np.sort(draws.integers(0, 6, [count, PREDICTIONS])),
        "masked_lm_ids": draws.integers(5, CONFIG.vocab_size, [count, PREDICTIONS]),
        "sentence_order_labels": draws.integers(0, 2, count),
    }
    weights = {"masked_lm_weights": np.ones([count, PREDICTIONS]), "example_weights": np.ones(count)}
    integers = {name: values.astype(np.int32) for name, values in features.items()}
    return {**integers, **{name: values.astype(np.float32) for name, values in weights.items()}}


def spec_of(examples: dict[str, np.ndarray], batch_size: int) -> BatchSpec:
    """Returns the spec of batches of so many examples."""
    return {name: tf.TensorSpec([batch_size, *values.shape[1:]], values.dtype) for name, values in examples.items()}


def loop_settings(seed: int = 0, **options) -> RunSettings:
    """Returns settings for the loop alone; the optimizer of a `TinyRun` has its own."""
    return RunSettings(num_train_steps=12, train_batch_size=4, learning_rate=0.01, random_seed=seed, **options)


def unevenly_weighted_examples(batch_size: int) -> dict[str, np.ndarray]:
    """Returns three batches: all weights 1; nearly all weights on the first rows; the last two rows only padding."""
    examples = make_examples(3 * batch_size)
    masked_lm = examples["masked_lm_weights"].reshape(3, batch_size, -1)
    masked_lm[1, 3:] = 0
    masked_lm[1, -1, 0] = 1
    masked_lm[2, -2:] = 0
    examples["example_weights"].reshape(3, batch_size)[2, -2:] = 0
    return examples


def assert_same_training(actual: "TinyRun", expected: "TinyRun"):
    """Checks that two runs ended alike, to float32 rounding; a step moves weights by about 0.01."""
    actual_weights = actual.weights()
    for name, weights in expected.weights().items():
        # The root mean square, because Adam magnifies rounding where a gradient is next to zero.
        assert np.sqrt(np.mean((actual_weights[name] - weights) ** 2)) < 5e-6, name
    assert actual.averages == pytest.approx(expected.averages, rel=1e-5)


@dataclasses.dataclass
class TinyRun:
    """Everything that a training run needs, in the scope of one strategy.

    Attributes:
        state: What is trained.
        averages: What the loop would report of the steps of the last `take_steps`.
        printed: What the last `train` printed.
    """

    state: TrainState
    averages: dict[str, float] | None = None
    printed: str = ""

    @classmethod
    def start(
        cls,
        num_replicas=1,
        optimizer="lamb",
        config=CONFIG,
        seed=0,
        strategy=None,
        dtype="float32",
        objective=None,
        **optimizer_options,
    ):
        """Returns a run with weights that follow from the seed."""
        strategy = strategy or make_strategy(num_cpu_replicas=num_replicas)
        tf.keras.utils.set_random_seed(seed)
        objective = objective or make_objective("albert", config)
        with strategy.scope():
            models = objective.make_models(dtype=dtype)
            variables = learnt_variables(objective, models)
            followers = objective.followers(models)
            optimizer = make_optimizer(optimizer, variables, SCHEDULE, followers=followers, **optimizer_options)
            begin_as_followers(objective, models)
        return cls(TrainState.create(strategy, objective, models, optimizer))

    @property
    def strategy(self) -> tf.distribute.Strategy:
        return self.state.strategy

    @property
    def model(self) -> AlbertForPreTraining:
        return self.state.models["model"]

    @property
    def optimizer(self) -> AdamW:
        return self.state.optimizer

    @property
    def global_step(self) -> tf.Variable:
        return self.state.global_step

    def take_steps(
        self,
        examples: dict[str, np.ndarray],
        batch_size: int,
        gradient_accumulation_steps: int = 1,
        drop_remainder: bool = False,
    ) -> dict[str, float]:
        """Trains on the examples in order and returns the averages that the loop would report.

        The size of a batch is known to the step, and the cores of a CPU share it, only with `drop_remainder`.
        """
        train_steps = make_train_function(self.state, 7, never(), gradient_accumulation_steps)
        batches = tf.data.Dataset.from_tensor_slices(examples).batch(batch_size, drop_remainder)
        train_steps(iter(distribute_batches(self.strategy, batches)), tf.constant(len(batches)))
        found = measured(self.state.objective, self.state.metric_sums)
        self.averages = {name: value for name, value in found.items() if name != "loss"}
        return self.averages

    def train(
        self,
        output_dir,
        examples,
        batch_size,
        num_train_steps: int,
        settings: RunSettings,
        stop_at_step: int | None = None,
        held_out: dict[str, np.ndarray] | None = None,
        keep_checkpoint_max: int = 5,
        **phase_options,
    ) -> TrainResult:
        """Runs the loop on the examples, over and over, from the newest checkpoint in the folder if there is one.

        The progress line of `stop_at_step` is interrupted as by Ctrl-C.
        """
        checkpointer = self.checkpointer(output_dir, keep_checkpoint_max=keep_checkpoint_max)
        checkpointer.restore_latest()

        def make_dataset(start_step, host_index, num_hosts):
            size = batch_size // num_hosts
            batches = tf.data.Dataset.from_tensor_slices(examples).repeat().batch(batch_size).skip(start_step)
            return batches.map(lambda batch: {name: batch[name][host_index * size :][:size] for name in batch})

        def make_eval_dataset():
            return tf.data.Dataset.from_tensor_slices(held_out).batch(batch_size)

        phase = Phase(
            num_train_steps,
            spec_of(examples, batch_size),
            make_dataset,
            make_eval_dataset=make_eval_dataset if held_out else None,
            **phase_options,
        )
        progress = _StoppingProgress(str(output_dir), "loss", io.StringIO())
        progress.stop_at_step = stop_at_step
        evaluator = Evaluator(self.strategy, self.state.objective, self.state.models)
        try:
            return train(self.state, [phase], settings, checkpointer, evaluator, progress)
        except KeyboardInterrupt:
            checkpointer.wait()  # as the end of the process would
            raise
        finally:
            self.printed = progress.printed

    def checkpointer(self, output_dir, **options) -> Checkpointer:
        """Returns what saves this run into a folder."""
        return Checkpointer(str(output_dir), self.state.named_variables(), **options)

    def weights(self) -> dict[str, np.ndarray]:
        """Returns what is learnt, by name."""
        learnt = learnt_variables(self.state.objective, self.state.models)
        return {name: variable.numpy() for name, variable in learnt.items()}

    def values(self) -> dict[str, np.ndarray]:
        """Returns all that a checkpoint holds, by name."""
        return {name: variable.numpy() for name, variable in self.state.named_variables().items()}


def never() -> tf.Variable:
    """Returns the variable of a stop that nobody asks for."""
    with tf.device("CPU:0"):
        return tf.Variable(False, trainable=False)


class _StoppingProgress(Progress):
    @property
    def printed(self):
        return self._stream.getvalue()

    def update(self, step, averages):
        super().update(step, averages)
        if step == self.stop_at_step:
            raise KeyboardInterrupt
