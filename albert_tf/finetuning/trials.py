"""Several trainings of one task: which learning rate does best on the dev file, and how much chance decides."""

import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Trial:
    """One training.

    Attributes:
        learning_rate: Its peak.
        random_seed: Its seed.
        folder: Where it lies.
        results: What `runner.evaluate` returned.
    """

    learning_rate: float
    random_seed: int
    folder: str
    results: dict[str, float]


def best_rate(trials: list[Trial], metric: str) -> float:
    """Returns the learning rate whose median over the seeds is best: the lowest loss, or the highest of other metrics.

    Of equal ones it is the lowest rate.
    """
    sign = -1 if metric == "loss" else 1
    rates = sorted({trial.learning_rate for trial in trials})
    return max(rates, key=lambda rate: sign * statistics.median(_values(_of_rate(trials, rate), metric)))


def best_trial(trials: list[Trial], metric: str) -> Trial:
    """Returns the best trial of the best rate."""
    sign = -1 if metric == "loss" else 1
    return max(_of_rate(trials, best_rate(trials, metric)), key=lambda trial: sign * trial.results[metric])


def summarize(trials: list[Trial], metric: str) -> dict[str, float]:
    """Returns the medians over the seeds of the best rate, of `metric` with the lowest and the highest, and the rate.

    Args:
        trials: All that were made.
        metric: The one that decides.
    """
    rate = best_rate(trials, metric)
    chosen = _of_rate(trials, rate)
    medians = {name: statistics.median(_values(chosen, name)) for name in chosen[0].results}
    spread = {f"{metric}_min": min(_values(chosen, metric)), f"{metric}_max": max(_values(chosen, metric))}
    return {**medians, **spread, "learning_rate": rate, "num_trials": len(chosen)}


def describe(trials: list[Trial], metric: str) -> list[str]:
    """Returns a line for each learning rate, and one that says which was chosen and where its best trial lies."""
    rates = sorted({trial.learning_rate for trial in trials})
    lines = []
    for rate in rates:
        values = _values(_of_rate(trials, rate), metric)
        shown = ", ".join(f"{value:.4f}" for value in values)
        lines.append(f"--learning_rate={rate:g}: {metric} {statistics.median(values):.4f} in the median of {shown}")
    best = best_trial(trials, metric)
    return [*lines, f"chosen on the dev file: --learning_rate={best.learning_rate:g}; its best trial is {best.folder}"]


def _of_rate(trials, rate):
    return [trial for trial in trials if trial.learning_rate == rate]


def _values(trials, name):
    return [trial.results[name] for trial in trials]
