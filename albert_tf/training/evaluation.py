"""Evaluation on held-out data: exact over the whole set, whatever the batch size and the number of replicas."""

import collections.abc

import tensorflow as tf

from albert_tf.training.devices.distribution import distribute_batches, read_batches
from albert_tf.training.metrics import MetricSums
from albert_tf.training.train_step import Task, make_eval_function

# A device may be told of a batch long before it computes it; after so many the host reads a result, and so waits.
_BATCHES_AT_ONCE = 50


class Evaluator:
    """Evaluates a model as often as one likes; the step is traced once.

    Args:
        strategy: Where to run.
        task: What is learnt.
        model: Created in the strategy's scope.
        max_eval_steps: Most batches, None for all.
    """

    def __init__(
        self, strategy: tf.distribute.Strategy, task: Task, model: tf.keras.Model, max_eval_steps: int | None = None
    ):
        self._strategy, self._task, self._max_eval_steps = strategy, task, max_eval_steps
        with strategy.scope():
            self._sums = MetricSums((*task.loss_names, *task.metric_names))
        self._eval_step = make_eval_function(strategy, task, model, self._sums)

    def evaluate(
        self, dataset: tf.data.Dataset, is_to_stop: collections.abc.Callable[[], bool] = lambda: False
    ) -> dict[str, float] | None:
        """Returns the average of each loss and metric, and of "loss", their sum over `task.loss_names`.

        Args:
            dataset: Global batches, all of one size; what fills up the last one weighs 0.
            is_to_stop: Asked before each batch whether to give up, in which case the result is None.
        """
        if self._max_eval_steps is not None:
            dataset = dataset.take(self._max_eval_steps)
        self._sums.take()

        def evaluate_all(batches):
            for number, batch in enumerate(batches, 1):
                if is_to_stop():
                    return False
                self._eval_step(batch)
                if number % _BATCHES_AT_ONCE == 0:
                    self._sums.variable.numpy()
            return True

        if not read_batches(distribute_batches(self._strategy, dataset), evaluate_all):
            return None
        return with_total_loss(self._task, self._sums.take())


def with_total_loss(task: Task, averages: dict[str, float]) -> dict[str, float]:
    """Adds "loss", the sum of the averages of the task's losses, if they were measured."""
    if not all(name in averages for name in task.loss_names):
        return averages
    return {"loss": sum(averages[name] for name in task.loss_names), **averages}
