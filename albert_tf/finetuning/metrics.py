"""The measures of public data sets, from scikit-learn and SciPy."""

import collections.abc
import importlib.util
import typing

import numpy as np

from albert_tf.base.errors import InputError

# By kind, how often something is found rightly, found, and true.
Counts = collections.abc.Mapping[str, tuple[int, int, int]]

# Where KLUE-STS draws the line between sentences that mean the same and others (Park et al. 2021, section 3.2).
_SAME_FROM = 3.0


def check_metrics(names: tuple[str, ...], known: collections.abc.Collection[str]) -> None:
    """Checks, before anything is trained, that measures are known and that the library which computes them is there."""
    for name in names:
        if name not in known:
            raise InputError(f"`metrics={name}` is not one of this task's metrics: {', '.join(known)}")
        if name != "accuracy" and importlib.util.find_spec("sklearn") is None:
            raise InputError(f"{name}, which this task is measured by, needs scikit-learn; pip install scikit-learn")


def accuracy(truth: list[str], found: list[str]) -> float:
    """Returns the share of labels that are right."""
    return float(np.mean([one == other for one, other in zip(truth, found)]))


def f1_of_counts(right: float, found: float, true: float) -> float:
    """Returns the F1 of so many found rightly, found, and true; 0 where nothing is found or true."""
    return 2 * right / (found + true) if found + true else 0.0


def count_found(
    truth: collections.abc.Iterable[collections.abc.Iterable],
    found: collections.abc.Iterable[collections.abc.Iterable],
    kind: collections.abc.Callable[[typing.Any], str] = lambda each: each,
    kinds: collections.abc.Iterable[str] = (),
) -> Counts:
    """Returns by kind how often something is found rightly, found, and true, given what is in each example."""
    counts = {name: [0, 0, 0] for name in kinds}
    for true, given in zip(map(set, truth), map(set, found)):
        for column, several in enumerate((true & given, given, true)):
            for each in several:
                counts.setdefault(kind(each), [0, 0, 0])[column] += 1
    return {name: tuple(values) for name, values in counts.items()}


def totals(counts: Counts) -> tuple[int, int, int]:
    """Returns the counts of all kinds together."""
    return tuple(map(sum, zip((0, 0, 0), *counts.values())))


def f1(truth: list[str], found: list[str], labels: tuple[str, ...]) -> float:
    """Returns the harmonic mean of precision and recall of the last label, 0 where it is neither there nor found."""
    from sklearn.metrics import f1_score  # takes a second

    return float(f1_score(truth, found, labels=[labels[-1]], average="macro", zero_division=0))


def macro_f1(truth: list[str], found: list[str]) -> float:
    """Returns the mean of the F1 of every label that is true or found somewhere."""
    from sklearn.metrics import f1_score

    return float(f1_score(truth, found, average="macro", zero_division=0))


def matthews(truth: list[str], found: list[str]) -> float:
    """Returns Matthews's correlation of labels, 0 where one of the two is always the same."""
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(truth, found))


def pearson(truth: np.ndarray, found: np.ndarray) -> float:
    """Returns the correlation of scores, 0 where one of the two is constant."""
    from scipy.stats import pearsonr

    return _correlation(pearsonr, truth, found)


def spearman(truth: np.ndarray, found: np.ndarray) -> float:
    """Returns the correlation of the scores' ranks, 0 where one of the two is constant."""
    from scipy.stats import spearmanr

    return _correlation(spearmanr, truth, found)


def f1_at_3(truth: np.ndarray, found: np.ndarray) -> float:
    """Returns the F1 of telling pairs with a score of 3.0 and above from the others."""
    same_truth, same_found = (np.where(scores >= _SAME_FROM, "1", "0").tolist() for scores in (truth, found))
    return f1(same_truth, same_found, ("0", "1"))


def _correlation(function, truth, found):
    if np.ptp(truth) == 0 or np.ptp(found) == 0:
        return 0.0
    return float(function(truth, found).statistic)


# Of labels: functions of the true and the found ones, and some of all labels in order.
LABEL_METRICS: dict[str, collections.abc.Callable[..., float]] = {
    "accuracy": lambda truth, found, labels: accuracy(truth, found),
    "f1": f1,
    "macro_f1": lambda truth, found, labels: macro_f1(truth, found),
    "matthews": lambda truth, found, labels: matthews(truth, found),
}
# Of scores: functions of two arrays.
SCORE_METRICS = {"pearson": pearson, "spearman": spearman, "f1_at_3": f1_at_3}
METRICS = (*LABEL_METRICS, *SCORE_METRICS)
