"""The evaluations of a run together: which was best, whether it is time to stop, whether the run overfits."""

import math

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
