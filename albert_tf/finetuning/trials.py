"""Several trainings of one task: which learning rate does best on the dev file, and how much chance decides.

A training is a changed copy of the settings: `run_trials` is the one loop over such copies.
"""

import collections.abc
import dataclasses
import os
import statistics
import typing

from albert_tf.checkpoint_files import TRIALS_FILE
from albert_tf.files import write_json
from albert_tf.training.run_folder.results import EVAL_RESULTS_FILE
from albert_tf.training.stability import DivergedError

# What the folders of trials say for these settings.
_SHORT_NAMES = {"learning_rate": "rate", "random_seed": "seed"}


class Outcome(typing.NamedTuple):
    """What came of one training.

    Attributes:
        metric: The one that decides.
        learning_rate: The peak that was trained with.
        results: What `runner.evaluate` returned; None where nothing was evaluated.
    """

    metric: str
    learning_rate: float
    results: dict[str, float] | None


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


def run_trials(
    settings: typing.Any,
    variants: list[dict[str, float]],
    run_once: collections.abc.Callable[[typing.Any], Outcome | None],
) -> None:
    """Runs one variant after the other, each in a folder of its own, and writes what they come to.

    Where a training diverges, all variants that differ from it in the seed alone are left out.

    Args:
        settings: A frozen dataclass with `output_dir`, `random_seed` and what the variants change.
        variants: What each of them changes in the settings, `random_seed` among it.
        run_once: Trains and evaluates by a copy of the settings; None if it was stopped, to be gone on with.

    Raises:
        DivergedError: No variant is left.
    """
    finished, diverged = [], []
    for number, changes in enumerate(variants, start=1):
        kind = _without_seed(changes)
        if kind in diverged:
            continue
        name = "_".join(f"{_SHORT_NAMES.get(name, name)}_{value:g}" for name, value in changes.items())
        folder = os.path.join(settings.output_dir, name)
        print(f"\ntrial {number} of {len(variants)}: {folder}", flush=True)
        try:
            outcome = run_once(dataclasses.replace(settings, **changes, output_dir=folder))
        except DivergedError as error:
            diverged.append(kind)
            if all(_without_seed(each) in diverged for each in variants):
                raise
            named = ", ".join(f"--{name}={value:g}" for name, value in kind.items())
            print(f"warning: {named} is left out: {error}", flush=True)
            finished = [(trial, of) for trial, of in finished if of != kind]
            continue
        if outcome is None:
            return  # the same command goes on
        metric = outcome.metric
        finished.append((Trial(outcome.learning_rate, changes["random_seed"], folder, outcome.results), kind))
    trials = [trial for trial, _ in finished]
    found = {"best": os.path.basename(best_trial(trials, metric).folder), "trials": [vars(trial) for trial in trials]}
    write_json(os.path.join(settings.output_dir, TRIALS_FILE), found)
    write_json(os.path.join(settings.output_dir, EVAL_RESULTS_FILE), summarize(trials, metric))
    print("", *describe(trials, metric), sep="\n", flush=True)


def _without_seed(changes):
    return {name: value for name, value in changes.items() if name != "random_seed"}


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
