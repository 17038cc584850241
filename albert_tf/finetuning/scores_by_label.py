"""How well each label, or each type of entity, is found: precision, recall and F1, as a file and as a table."""

import collections
import collections.abc
import typing

from albert_tf.rows.row_file import write_rows

SCORES_FILE = "scores_by_label.tsv"

_MOST_SHOWN, _WIDEST = 20, 24


class LabelScores(typing.NamedTuple):
    """How well one label is found. What would be divided by 0 is 0, as in scikit-learn and seqeval.

    Attributes:
        label: The label.
        precision: Share of what is given the label that has it.
        recall: Share of what has the label that is given it.
        f1: Harmonic mean of both.
        count: How many have it.
        found: How many are given it.
    """

    label: str
    precision: float
    recall: float
    f1: float
    count: int
    found: int


def scores_by_label(counts: collections.abc.Mapping[str, tuple[int, int, int]]) -> list[LabelScores]:
    """Returns the scores of each label, in order.

    Args:
        counts: By label, how many are given it and have it, are given it, have it.
    """

    def share(count, total):
        return count / total if total else 0.0

    return [
        LabelScores(label, share(right, found), share(right, true), share(2 * right, found + true), true, found)
        for label, (right, found, true) in counts.items()
    ]


def count_labels(
    truth: collections.abc.Iterable[collections.abc.Collection[str]],
    found: collections.abc.Iterable[collections.abc.Collection[str]],
    labels: collections.abc.Sequence[str],
) -> dict[str, tuple[int, int, int]]:
    """Returns what `scores_by_label` takes, of the labels that each example has and is given; all labels in order."""
    right, given, had = collections.Counter(), collections.Counter(), collections.Counter()
    for true_labels, found_labels in zip(truth, found):
        right.update(set(true_labels) & set(found_labels))
        given.update(set(found_labels))
        had.update(set(true_labels))
    return {label: (right[label], given[label], had[label]) for label in labels}


def write_scores(path: str, scores: list[LabelScores]) -> None:
    """Writes a line for each label, with the numbers as exact as they are."""
    write_rows(path, [list(LabelScores._fields), *([str(value) for value in each] for each in scores)])


def describe_scores(scores: list[LabelScores]) -> list[str]:
    """Returns a table for people, the most frequent labels where there are many; all are in the file."""
    shown = scores
    if len(scores) > _MOST_SHOWN:
        frequent = set(sorted(range(len(scores)), key=lambda index: -scores[index].count)[:_MOST_SHOWN])
        shown = [each for index, each in enumerate(scores) if index in frequent]
    lines = ["    F1  precision  recall    count  label"]
    for each in shown:
        label = each.label if len(each.label) <= _WIDEST else each.label[:_WIDEST] + "..."
        lines.append(f"{each.f1:6.4f}     {each.precision:6.4f}  {each.recall:6.4f}  {each.count:7,}  {label}")
    more = len(scores) - len(shown)
    return [*lines, f"and {more:,} more in {SCORES_FILE}"] if more else lines
