"""Numbers about the server as Prometheus reads them: https://prometheus.io/docs/instrumenting/exposition_formats."""

import bisect
import collections
import itertools


class Histogram:
    """Counts values by size.

    Args:
        name: What Prometheus calls it.
        about: A sentence for people.
        bounds: The upper bounds of the buckets, but for the last one, which has none.
        label: As in 'model_name="films"'.
    """

    def __init__(self, name: str, about: str, bounds: tuple[float, ...], label: str):
        self._name, self._about, self._bounds, self._label = name, about, bounds, label
        self._counts, self._sum = [0] * (len(bounds) + 1), 0

    def observe(self, value: float) -> None:
        """Counts a value."""
        self._counts[bisect.bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self) -> list[str]:
        """Returns the lines that describe it."""
        bounds = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        totals = list(itertools.accumulate(self._counts))
        return [
            f"# HELP {self._name} {self._about}",
            f"# TYPE {self._name} histogram",
            *(f'{self._name}_bucket{{{self._label},le="{b}"}} {total}' for b, total in zip(bounds, totals)),
            f"{self._name}_count{{{self._label}}} {totals[-1]}",
            f"{self._name}_sum{{{self._label}}} {self._sum}",
        ]


class Metrics:
    """What the server counts.

    Args:
        model_name: Of the model that it serves.
    """

    def __init__(self, model_name: str):
        label = f'model_name="{model_name}"'
        self.answers = collections.Counter()  # by HTTP status
        self.batch_sizes = Histogram(
            "batch_size_texts", "Texts computed at once.", (1, 2, 4, 8, 16, 32, 64, 128, 256), label
        )
        self.seconds = Histogram(
            "request_predict_seconds",
            "Seconds that predictions took.",
            (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            label,
        )

    def text(self) -> str:
        """Returns all that GET /metrics answers."""
        lines = ["# HELP answers_total Answers by HTTP status.", "# TYPE answers_total counter"]
        lines += [f'answers_total{{code="{code}"}} {count}' for code, count in sorted(self.answers.items())]
        return "\n".join([*lines, *self.batch_sizes.lines(), *self.seconds.lines(), ""])
