"""A model small enough to train in a test, batches for it, and a run of the loop over them."""

import dataclasses
import io

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.optimization import AdamW, LearningRateSchedule, make_optimizer
from albert_tf.training.checkpoints import Checkpointer
from albert_tf.training.distribution import make_strategy
from albert_tf.training.metrics import MetricSums
from albert_tf.training.pretraining import PretrainingTask
from albert_tf.training.progress import Progress
from albert_tf.training.train_loop import TrainOptions, make_train_function, train

CONFIG = AlbertConfig(
    vocab_size=40,
    embedding_size=8,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
)
SEQUENCE_LENGTH, PREDICTIONS = 12, 4
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


@dataclasses.dataclass
class TinyRun:
    """Everything that a training run needs, in the scope of one strategy."""

    strategy: tf.distribute.Strategy
    model: AlbertForPreTraining
    optimizer: AdamW
    global_step: tf.Variable

    @classmethod
    def start(cls, num_replicas=1, optimizer="lamb", config=CONFIG, seed=0, strategy=None, dtype="float32"):
        """Returns a run with weights that follow from the seed."""
        strategy = strategy or make_strategy(num_cpu_replicas=num_replicas)
        tf.keras.utils.set_random_seed(seed)
        with strategy.scope():
            model = AlbertForPreTraining(config, dtype=dtype)
            optimizer = make_optimizer(optimizer, named_variables(model), SCHEDULE)
        return cls(strategy, model, optimizer, tf.Variable(0, dtype=tf.int64, trainable=False))

    def take_steps(self, examples: dict[str, np.ndarray], batch_size: int, has_pairs: bool = True) -> dict[str, float]:
        """Trains on the examples in order and returns the averages that the loop would report."""
        task = PretrainingTask(has_pairs)
        with self.strategy.scope():
            sums = MetricSums((*task.loss_names, *task.metric_names, "gradient_norm"))
        step_function = make_train_function(
            self.strategy, task, self.model, self.optimizer, self.global_step, sums, seed=7
        )
        batches = tf.data.Dataset.from_tensor_slices(examples).batch(batch_size)
        step_function(iter(self.strategy.experimental_distribute_dataset(batches)), tf.constant(len(batches)))
        return sums.take()

    def train(self, output_dir, examples, batch_size, options: TrainOptions, stop_at_step: int | None = None):
        """Runs the loop, from the newest checkpoint in the folder if there is one.

        Args:
            output_dir: The run's folder.
            examples: Repeated without end, in order.
            batch_size: Global batch size.
            options: How long to train.
            stop_at_step: Step whose progress line is interrupted as by Ctrl-C; None to train to the end.
        """
        checkpointer = self.checkpointer(output_dir)
        checkpointer.restore_latest()

        def make_dataset(start_step):
            return tf.data.Dataset.from_tensor_slices(examples).repeat().batch(batch_size).skip(start_step)

        progress = _StoppingProgress(output_dir, batch_size, SEQUENCE_LENGTH, "loss", io.StringIO())
        progress.stop_at_step = stop_at_step
        train(
            self.strategy,
            PretrainingTask(),
            self.model,
            self.optimizer,
            make_dataset,
            options,
            checkpointer,
            self.global_step,
            progress,
        )

    def checkpointer(self, output_dir, **options) -> Checkpointer:
        """Returns what saves this run into a folder."""
        return Checkpointer(str(output_dir), named_variables(self.model), self.global_step, self.optimizer, **options)

    def weights(self) -> dict[str, np.ndarray]:
        """Returns the model's variables, by name."""
        return {name: variable.numpy() for name, variable in named_variables(self.model).items()}

    def state(self) -> dict[str, np.ndarray]:
        """Returns variables and both moments, by name."""
        moments = {
            f"{kind}/{name}": moment.numpy()
            for kind in ("first_moments", "second_moments")
            for name, moment in getattr(self.optimizer, kind).items()
        }
        return {**self.weights(), **moments}


class _StoppingProgress(Progress):
    def update(self, step, averages):
        super().update(step, averages)
        if step == self.stop_at_step:
            raise KeyboardInterrupt
