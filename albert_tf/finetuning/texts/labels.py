"""The labels of a task: which there are, and how often each occurs."""

import collections

from albert_tf.base.errors import InputError, quote, shorten
from albert_tf.finetuning.texts.labelled_text import LabelledText, line_names
from albert_tf.reading.bad_rows import counted

# So many are all named; of more, the first ones.
_MOST_NAMED = 10


def check_labels(labels: tuple[str, ...], source: str) -> None:
    """Checks that labels are two or more, and none empty or there twice; errors call where they come from `source`."""
    doubled = [label for label, count in collections.Counter(labels).items() if count > 1]
    if doubled:
        raise InputError(f"{source}: the label {quote(doubled[0])} appears twice; name each label once")
    if "" in labels:
        raise InputError(f"{source}: a label is empty; give it a name, or remove it")
    if len(labels) < 2:
        raise InputError(f"{source}: {', '.join(map(quote, labels))} is the only label; a classifier needs two or more")


def labels_of(examples: list[LabelledText]) -> tuple[str, ...]:
    """Returns the labels of the examples to train on, sorted: each has one, and not all the same."""
    for example in examples:
        if not example.label:
            place = f"{example.path}, line {example.line}"
            raise InputError(f"{place}: the label is empty; give the line one, or remove it")
    return _checked({example.label for example in examples}, examples)


def labels_of_sets(examples: list[LabelledText], columns: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Returns the labels of examples that may have several, sorted; those with columns need no example."""
    found = {label for example in examples for label in example.label}
    return _checked(found | set(columns if found and found <= set(columns) else ()), examples)


def _checked(found, examples):
    labels = tuple(sorted(found))
    if not labels:
        raise InputError(f"{examples[0].path} has no label at all; name the column that holds them with `label_column`")
    check_labels(labels, examples[0].path)
    return labels


def balanced_class_weights(labels: tuple[str, ...], examples: list[LabelledText]) -> tuple[float, ...]:
    """Returns weights with which all labels count alike in the loss, on average 1 an example."""
    # A label without examples has weight 1; examples of other labels don't count.
    counts = collections.Counter(example.label for example in examples)
    present = sum(counts[label] > 0 for label in labels)
    total = sum(counts[label] for label in labels)
    return tuple(total / (present * counts[label]) if counts[label] else 1.0 for label in labels)


def label_report(path: str, examples: list[LabelledText], labels: tuple[str, ...]) -> list[str]:
    """Returns how many examples of a training file have each label, and a warning of texts with several, as lines."""
    counts = collections.Counter(dict.fromkeys(labels, 0))
    counts.update(example.label for example in examples)
    named = list(counts.items()) if len(counts) <= _MOST_NAMED else counts.most_common(_MOST_NAMED)
    text = ", ".join(f"{shorten(label)} ({count:,})" for label, count in named)
    rest = f", and {len(counts) - len(named):,} more" if len(counts) > len(named) else ""
    report = [f"{len(counts):,} labels in the {counts.total():,} examples of {path}: {text}{rest}"]
    lines = collections.defaultdict(dict)
    for example, name in zip(examples, line_names(examples)):
        lines[example.texts].setdefault(example.label, name)
    several = [list(by_label.values()) for by_label in lines.values() if len(by_label) > 1]
    if several:
        first = " and ".join(several[0][:2])
        report.append(f"warning: {counted(len(several), 'text')} of {path} with different labels, as on lines {first}")
    return report
