"""What the evaluations of a run say together: which was best, whether it is time to stop, whether the run overfits."""

import dataclasses
import math

# How much the held-out loss has to rise before it is more than noise, as a share of the lowest.
_RISE = 0.01


@dataclasses.dataclass(frozen=True)
class Overfitting:
    """A held-out loss that rose while the training loss fell.

    Attributes:
        best_step: When the held-out loss was lowest.
        step: The last evaluation.
        held_out: The held-out loss at both.
        train: The training loss on the way to both.
    """

    best_step: int
    step: int
    held_out: tuple[float, float]
    train: tuple[float, float]

    def __str__(self):
        return (
            f"the held-out loss rose from {self.held_out[0]:.4g} at step {self.best_step:,} to {self.held_out[1]:.4g} "
            f"at step {self.step:,} while the training loss fell from {self.train[0]:.4g} to {self.train[1]:.4g}"
        )


class HeldOutHistory:
    """The evaluations of one phase, as metrics.jsonl holds them.

    Args:
        rows: What `read_metrics` returned.
        metric: Name of the metric that selects; the lower the better if it is "loss", else the higher.
        begin: Step before the phase; an evaluation there is of weights that know nothing of its data.
        end: Last step to look at.
    """

    def __init__(self, rows: list[dict], metric: str, begin: int, end: int):
        self._measures_loss = metric == "loss"
        self._sign = sign = 1 if self._measures_loss else -1
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
        """What the metric was at that step."""
        return self._sign * self._values[self.best_step] if self._values else None

    @property
    def evaluations_since_best(self) -> int:
        """How many evaluations came after the best one."""
        return sum(step > self.best_step for step in self._values) if self._values else 0

    @property
    def evaluations_since_progress(self) -> int:
        """How many evaluations came after the best one, and after that with the lowest loss."""
        losses = {step: loss for step, loss in self._losses.items() if step in self._values and math.isfinite(loss)}
        lowest = min(losses, key=losses.get, default=-1)
        return min(self.evaluations_since_best, sum(step > lowest for step in self._values))

    def overfitting(self) -> Overfitting | None:
        """Returns what shows that the run overfits, None if nothing does.

        That is a held-out loss which at the last two evaluations was above the lowest, at the last by more than noise,
        and a training loss that fell meanwhile. Metrics besides the loss come and go without that meaning anything.
        """
        if not self._measures_loss or self.evaluations_since_best < 2:
            return None
        best, last = self.best_step, max(self._values)
        train = self._train_loss_before(best), self._train_loss_before(last)
        if self._values[last] < (1 + _RISE) * self._values[best] or not train[1] < train[0]:
            return None
        return Overfitting(best, last, (self._values[best], self._values[last]), train)

    def _train_loss_before(self, step):
        """Returns the average of what was reported between an evaluation and the one before; NaN if nothing was."""
        earlier = max((other for other in self._values if other < step), default=self._begin)
        losses = [loss for reported, loss in self._train.items() if earlier < reported <= step]
        return sum(losses) / len(losses) if losses else math.nan
