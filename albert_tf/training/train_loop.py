"""The loop itself: many steps per call of a tf.function, the same code for every kind of device.

A task says what a batch costs (`Task`); the loop does the rest: gradients of losses averaged over the global batch, one
all-reduce, the update, metrics that stay on the device, checkpoints, evaluation and progress.
"""

import collections.abc
import dataclasses
import typing

import tensorflow as tf

from albert_tf.modeling.layers import named_variables
from albert_tf.training.checkpoints import Checkpointer
from albert_tf.training.metrics import MetricSums
from albert_tf.training.progress import Progress


class Task(typing.Protocol):
    """What is being learnt.

    Attributes:
        loss_names: Metrics whose averages add up to the loss.
        metric_names: Further metrics.
    """

    loss_names: tuple[str, ...]
    metric_names: tuple[str, ...]

    def compute(
        self, model: tf.keras.Model, batch: dict[str, tf.Tensor], training: bool, dropout_seed: tf.Tensor | None
    ) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
        """Returns (sum, weight), two float32 scalars, of each loss and metric over one replica's batch."""


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """How long to train and when to look up.

    Attributes:
        num_train_steps: Number of updates.
        iterations_per_loop: Most steps between two looks of the host at the device.
        save_checkpoints_steps: Steps between checkpoints.
        seed: Seed of dropout.
    """

    num_train_steps: int
    iterations_per_loop: int
    save_checkpoints_steps: int
    seed: int = 0


def make_train_function(
    strategy: tf.distribute.Strategy,
    task: Task,
    model: tf.keras.Model,
    optimizer: tf.Module,
    global_step: tf.Variable,
    sums: MetricSums,
    seed: int,
) -> typing.Callable:
    """Returns a tf.function (iterator, number of steps) that trains that many steps.

    `sums` must have the task's names and "gradient_norm"; `global_step` is raised by one each step.
    """
    variables = named_variables(model)

    def replica_step(batch, step):
        context = tf.distribute.get_replica_context()
        dropout_seed = tf.random.fold_in(
            tf.random.fold_in(tf.constant([seed, 0]), step), context.replica_id_in_sync_group
        )
        with tf.GradientTape() as tape:
            computed = task.compute(model, batch, training=True, dropout_seed=dropout_seed)
            # Each loss is divided by its weight over all replicas, so that adding gradients up gives the gradient of
            # the average over the global batch, however the examples are spread.
            weights = context.all_reduce("SUM", [computed[name][1] for name in task.loss_names])
            losses = [
                tf.math.divide_no_nan(computed[name][0], weight) for name, weight in zip(task.loss_names, weights)
            ]
            loss = tf.add_n(losses)
        # What the loss doesn't depend on, such as the pooler of a question answering model, is left as it is.
        gradients = {
            name: tf.convert_to_tensor(gradient)
            for name, gradient in tape.gradient(loss, variables).items()
            if gradient is not None
        }
        summed = context.all_reduce("SUM", list(gradients.values()))
        norm = optimizer.apply(dict(zip(gradients, summed)), step)
        sums.add({**computed, "gradient_norm": (norm, tf.ones([]))})

    @tf.function
    def train_steps(iterator, num_steps):
        for _ in tf.range(num_steps):
            strategy.run(replica_step, args=(next(iterator), tf.cast(global_step.read_value(), tf.int32)))
            global_step.assign_add(1)

    return train_steps


def make_eval_function(
    strategy: tf.distribute.Strategy, task: Task, model: tf.keras.Model, sums: MetricSums
) -> typing.Callable:
    """Returns a tf.function (batch) that adds the batch's metrics to `sums`, which must have the task's names."""

    def replica_step(batch):
        sums.add(task.compute(model, batch, training=False, dropout_seed=None))

    @tf.function
    def eval_step(batch):
        strategy.run(replica_step, args=(batch,))

    return eval_step


def evaluate(
    strategy: tf.distribute.Strategy,
    task: Task,
    model: tf.keras.Model,
    dataset: tf.data.Dataset,
    max_eval_steps: int | None = None,
) -> dict[str, float]:
    """Returns the average of each loss and metric over a data set, and of "loss", their sum over `task.loss_names`."""
    with strategy.scope():
        sums = MetricSums(task.loss_names + task.metric_names)
    eval_step = make_eval_function(strategy, task, model, sums)
    for batch in strategy.experimental_distribute_dataset(
        dataset if max_eval_steps is None else dataset.take(max_eval_steps)
    ):
        eval_step(batch)
    return with_total_loss(task, sums.take())


def with_total_loss(task: Task, averages: dict[str, float]) -> dict[str, float]:
    """Adds "loss", the sum of the averages of the task's losses."""
    return {"loss": sum(averages[name] for name in task.loss_names), **averages}


def train(
    strategy: tf.distribute.Strategy,
    task: Task,
    model: tf.keras.Model,
    optimizer: tf.Module,
    make_dataset: collections.abc.Callable[[int], tf.data.Dataset],
    options: TrainOptions,
    checkpointer: Checkpointer,
    global_step: tf.Variable,
    progress: Progress,
) -> None:
    """Trains from where `global_step` stands to the last step, saving on the way and at the end.

    Args:
        strategy: Where to run.
        task: What is learnt.
        model: Created in the strategy's scope.
        optimizer: Created in the strategy's scope.
        make_dataset: Given the number of steps already done, returns batches of the global batch size.
        options: How long to train.
        checkpointer: Where to save.
        global_step: int64 variable.
        progress: What is told after every loop.
    """
    with strategy.scope():
        sums = MetricSums((*task.loss_names, *task.metric_names, "gradient_norm"))
    train_steps = make_train_function(strategy, task, model, optimizer, global_step, sums, options.seed)
    step = int(global_step.numpy())
    iterator = iter(strategy.experimental_distribute_dataset(make_dataset(step)))
    progress.start(step, options.num_train_steps)
    while step < options.num_train_steps:
        next_save = (step // options.save_checkpoints_steps + 1) * options.save_checkpoints_steps
        stop = min(step + options.iterations_per_loop, next_save, options.num_train_steps)
        train_steps(iterator, tf.constant(stop - step))
        step = int(global_step.numpy())
        averages = with_total_loss(task, sums.take())
        averages["learning_rate"] = float(optimizer.schedule(tf.constant(step - 1)))
        progress.update(step, averages)
        if step == next_save or step == options.num_train_steps:
            checkpointer.save()
    progress.finish()
