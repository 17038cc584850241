"""Evaluation on held-out data: exact over the whole set, whatever the batch size and the number of replicas."""

import collections.abc

import numpy as np
import tensorflow as tf

from albert_tf.objectives import Objective
from albert_tf.progress_line import with_progress
from albert_tf.training.devices.batches import distribute_batches, read_batches
from albert_tf.training.devices.workers import is_chief
from albert_tf.training.metrics import MetricSums
from albert_tf.training.outputs import make_output_function
from albert_tf.training.train_step import make_eval_function, total_loss

# A device may be told of a batch long before it computes it; after so many the host reads a result, and so waits.
_BATCHES_AT_ONCE = 50


class Evaluator:
    """Evaluates models, created in the strategy's scope, as often as one likes; the step is traced once."""

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        objective: Objective,
        models: dict[str, tf.keras.Model],
        max_eval_steps: int | None = None,
    ):
        self._strategy, self._objective, self._max_eval_steps = strategy, objective, max_eval_steps
        self._models, self._output_functions = models, {}
        with strategy.scope():
            self._sums = MetricSums((*objective.loss_coefficients, *objective.metric_names), objective.vector_metrics)
        self._eval_step = make_eval_function(strategy, objective, models, self._sums)

    def evaluate(
        self, dataset: tf.data.Dataset, is_to_stop: collections.abc.Callable[[], bool] = lambda: False
    ) -> dict[str, float] | None:
        """Returns the average of each loss and metric, and "loss", which training minimises; None if `is_to_stop`.

        Batches are global and all of one size; examples that fill up the last one weigh 0.
        """
        if self._max_eval_steps is not None:
            dataset = dataset.take(self._max_eval_steps)
        self._sums.take()

        def evaluate_all(batches):
            count = int(dataset.cardinality())
            shown = with_progress(batches, count, "evaluating") if is_chief(self._strategy) else batches
            for number, batch in enumerate(shown, 1):
                if is_to_stop():
                    return False
                self._eval_step(batch)
                if number % _BATCHES_AT_ONCE == 0:
                    self._sums.variable.numpy()
            return True

        if not read_batches(distribute_batches(self._strategy, dataset), evaluate_all):
            return None
        return measured(self._objective, self._sums)

    def compute_outputs(
        self, function: collections.abc.Callable[..., dict[str, tf.Tensor]], dataset: tf.data.Dataset
    ) -> dict[str, np.ndarray]:
        """Returns the outputs of a function of a batch and the models by name for every example, in order.

        It returns tensors [B, ...] by name, inside a replica. Batches are global, with `example_weights`, 0 for
        examples that fill up the last one.
        """
        if function not in self._output_functions:
            self._output_functions[function] = make_output_function(
                self._strategy, lambda batch: function(batch, **self._models)
            )
        return self._output_functions[function](dataset)


def with_scores(
    objective: Objective, averages: dict[str, float], scores: collections.abc.Mapping[str, float]
) -> dict[str, float]:
    """Returns all that was found: the metric that selects, further scores, and what `Evaluator.evaluate` returned."""
    found = {**averages, **scores}
    return {
        name: found[name] for name in dict.fromkeys([objective.selection_metric, *scores, *averages]) if name in found
    }


def measured(objective: Objective, sums: MetricSums) -> dict[str, float]:
    """Returns the averages of sums, which start anew; and, if all losses were measured, "loss" and vector metrics."""
    averages, vectors = sums.take()
    coefficients = objective.loss_coefficients
    if not all(name in averages for name in coefficients):
        return averages
    total = total_loss(averages, coefficients)
    return {"loss": total, **averages, **(objective.metrics_of_vectors(vectors) if vectors else {})}
