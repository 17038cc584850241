"""How far a score of held-out examples may be off: the jackknife, which leaves out a group of them at a time."""

import collections.abc
import typing

import numpy as np

# Each is scored anew; of so many the error is known to about a tenth of itself.
_MOST_GROUPS = 40


def replicates(
    score: collections.abc.Callable[[list[typing.Any], list[typing.Any]], dict[str, float]],
    examples: list[typing.Any],
    predictions: list[typing.Any],
    metric: str,
) -> list[float]:
    """Returns what examples score without each of up to 40 groups of them; nothing where there is no such score.

    The groups are the same for all predictions of the same examples, so that differences can be compared in pairs.

    Args:
        score: As `FinetuningTask.score`.
        examples: N examples with their answers.
        predictions: One for each.
        metric: The name of the measure.
    """
    if len(examples) < 2 or metric not in score(examples, predictions):
        return []
    order = np.random.default_rng(0).permutation(len(examples))
    found = []
    for group in np.array_split(order, min(_MOST_GROUPS, len(examples))):
        kept = np.setdiff1d(order, group)
        found.append(score([examples[row] for row in kept], [predictions[row] for row in kept])[metric])
    return found


def standard_error(found: collections.abc.Sequence[float]) -> float:
    """Returns the standard error of a score, or of a difference of two, from its replicates (Efron 1982, ch. 3)."""
    values = np.asarray(found, np.float64)
    return float(np.sqrt((len(values) - 1) * values.var()))
