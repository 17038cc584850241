"""Evaluation on held-out data: exact over the whole set, whatever the batch size and the number of replicas."""

import collections.abc
import math
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.console import with_progress
from albert_tf.objectives import Objective
from albert_tf.objectives.objective import Batch
from albert_tf.training.batches import compute_in_parts, distribute_batches, has_any_length, read_batches
from albert_tf.training.devices import is_chief
from albert_tf.training.train_state import MetricSums
from albert_tf.training.train_step import make_eval_function, total_loss


def make_output_function(
    strategy: tf.distribute.Strategy, function: collections.abc.Callable[[Batch], dict[str, tf.Tensor]]
) -> collections.abc.Callable[[tf.data.Dataset], dict[str, np.ndarray]]:
    """Returns a function of global batches that returns another's outputs for every example, arrays [N, ...] by name.

    It is traced once, however often it is called. The other returns tensors [B, ...] by name, inside a replica; where
    batches are of several lengths, shorter outputs are filled up with 0. Examples are in order; those that only fill up
    the last batch have an `example_weights` of 0 and are left out.
    """

    step = make_output_step(strategy, function)

    def gather(values):
        return strategy.gather(values, axis=0).numpy()

    def compute_all(batches):
        collected = collections.defaultdict(list)
        for batch in batches:
            outputs, weights = step(batch)
            is_counted = gather(weights) > 0
            for name, values in outputs.items():
                collected[name].append(gather(values)[is_counted])
        return {name: _concatenate(rows) for name, rows in collected.items()}

    return lambda dataset: _read(strategy, dataset, "predicting", compute_all)


def _read(strategy, dataset, what, use):
    """Returns what a function makes of the batches of a data set, and shows how many are done."""
    count, shows = int(dataset.cardinality()), is_chief(strategy)
    return read_batches(
        distribute_batches(strategy, dataset),
        lambda batches: use(with_progress(batches, count, what) if shows else batches),
    )


def make_output_step(
    strategy: tf.distribute.Strategy, function: collections.abc.Callable[[Batch], dict[str, tf.Tensor]]
) -> typing.Callable:
    """Returns a tf.function (batch) that returns what another makes of it in every replica, and `example_weights`."""

    def replica_step(batch):
        parts = compute_in_parts(function, batch)
        return tf.nest.map_structure(lambda *tensors: tf.concat(tensors, axis=0), *parts), batch["example_weights"]

    @tf.function(autograph=False, reduce_retracing=has_any_length(strategy))
    def step(batch):
        return strategy.run(replica_step, args=(batch,))

    return step


def _concatenate(batches):
    """Returns arrays [B, ...] as one, each filled up with 0 to the longest along every other axis."""
    shape = np.max([batch.shape[1:] for batch in batches], axis=0, initial=0).astype(int)
    padded = [
        np.pad(batch, [(0, 0), *((0, longest - size) for longest, size in zip(shape, batch.shape[1:]))])
        for batch in batches
    ]
    return np.concatenate(padded)


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
            for number, batch in enumerate(batches, 1):
                if is_to_stop():
                    return False
                self._eval_step(batch)
                if number % _BATCHES_AT_ONCE == 0:
                    self._sums.variable.numpy()
            return True

        if not _read(self._strategy, dataset, "evaluating", evaluate_all):
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


# How much the held-out loss has to rise before it is more than noise, as a share of the lowest.
_RISE = 0.01


class HeldOutHistory:
    """The evaluations of one phase, of the rows of metrics.jsonl; the lower the better where `metric` ends in "loss".

    An evaluation at `begin`, the step before the phase, is of weights that know nothing of its data.
    """

    def __init__(self, rows: list[dict], metric: str, begin: int, end: int):
        self._measures_loss = metric == "loss"
        self._sign = sign = 1 if metric.endswith("loss") else -1
        self._values = {
            row["step"]: sign * row[metric]
            for row in sorted(rows, key=lambda row: row["step"])
            if row["split"] == "held_out" and math.isfinite(row.get(metric, math.nan)) and begin < row["step"] <= end
        }
        # A score of few examples may stand still while the loss tells that the model still learns.
        self._losses = {row["step"]: row["loss"] for row in rows if row["split"] == "held_out" and "loss" in row}
        self._train = {row["step"]: row["loss"] for row in rows if row["split"] == "train" and "loss" in row}
        self._begin = begin

    @property
    def best_step(self) -> int | None:
        """The step of the best evaluation, the first of equals; None if there was none."""
        return min(self._values, key=self._values.get, default=None)

    @property
    def best_value(self) -> float | None:
        """The metric at that step."""
        return self._sign * self._values[self.best_step] if self._values else None

    @property
    def evaluations_since_best(self) -> int:
        """Evaluations after the best one."""
        return sum(step > self.best_step for step in self._values) if self._values else 0

    @property
    def evaluations_since_progress(self) -> int:
        """Evaluations after the best one, and after that with the lowest loss."""
        losses = {step: loss for step, loss in self._losses.items() if step in self._values and math.isfinite(loss)}
        lowest = min(losses, key=losses.get, default=-1)
        return min(self.evaluations_since_best, sum(step > lowest for step in self._values))

    def overfitting(self) -> str | None:
        """Returns a sentence that shows that the run overfits, None if nothing does.

        The held-out loss was above the lowest at the last two evaluations, at the last by more than noise, and the
        training loss fell meanwhile. Metrics besides the loss come and go without that meaning anything.
        """
        if not self._measures_loss or self.evaluations_since_best < 2:
            return None
        best, last = self.best_step, max(self._values)
        lowest, held_out = self._values[best], self._values[last]
        train_before, train = self._train_loss_before(best), self._train_loss_before(last)
        if held_out < (1 + _RISE) * lowest or not train < train_before:
            return None
        return (
            f"the held-out loss rose from {lowest:.4g} at step {best:,} to {held_out:.4g} at step {last:,} while the "
            f"training loss fell from {train_before:.4g} to {train:.4g}"
        )

    def _train_loss_before(self, step):
        """Returns the average of what was reported between an evaluation and the one before; NaN if nothing was."""
        earlier = max((other for other in self._values if other < step), default=self._begin)
        losses = [loss for reported, loss in self._train.items() if earlier < reported <= step]
        return sum(losses) / len(losses) if losses else math.nan
