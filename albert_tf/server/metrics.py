"""Counts as Prometheus reads them: https://prometheus.io/docs/instrumenting/exposition_formats."""

import bisect
import itertools


class Histogram:
    """How many values are up to each bound.

    Args:
        name: What Prometheus calls it.
        bounds: The bounds, in order; a last one without an end is added.
        label: As in 'model_name="films"'.
    """

    def __init__(self, name: str, bounds: tuple[float, ...], label: str = ""):
        self._name, self._bounds, self._label = name, bounds, label
        self._counts, self._sum = [0] * (len(bounds) + 1), 0

    def observe(self, value: float) -> None:
        """Counts a value."""
        self._counts[bisect.bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self) -> list[str]:
        """Returns the lines that describe it."""
        comma, braces = ("," if self._label else ""), (f"{{{self._label}}}" if self._label else "")
        bounds = (*map(float, self._bounds), "+Inf")
        totals = list(itertools.accumulate(self._counts))
        return [
            f"# TYPE {self._name} histogram",
            *(
                f'{self._name}_bucket{{{self._label}{comma}le="{bound}"}} {total}'
                for bound, total in zip(bounds, totals)
            ),
            f"{self._name}_count{braces} {totals[-1]}",
            f"{self._name}_sum{braces} {self._sum}",
        ]
