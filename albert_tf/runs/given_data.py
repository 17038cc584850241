"""Examples of Python values: lists, columns of pandas, data sets of `datasets`; errors name one by its number."""

import collections.abc
import dataclasses
import numbers
import typing

import numpy as np

from albert_tf.base.errors import InputError, describe, listed, quote
from albert_tf.base.files import replace_halves
from albert_tf.base.texts import is_table
from albert_tf.finetuning.tasks.tagged_text import entities_of, normalize_tag
from albert_tf.reading.values import is_missing
from albert_tf.runs.given_kinds import KINDS, LISTS, NO_NAMES, is_flag, is_whole


@dataclasses.dataclass(frozen=True)
class GivenData:
    """Texts with what is to be learnt of each."""

    kind: str  # One of `KINDS`.
    texts: list[typing.Any]  # Strings, tuples of two, or lists of words.
    labels: list[typing.Any]
    label_columns: tuple[str, ...] = ()  # Of a table, those that are a label each.

    @property
    def reads_pairs(self) -> bool:
        """Whether an input is two texts."""
        return isinstance(self.texts[0], tuple)

    def describe(self) -> str:
        """Returns in a line what will be learnt, as far as the values tell it."""
        line = f'learns {KINDS[self.kind].learns} (kind="{self.kind}"), from {len(self.texts):,} examples'
        if self.kind == "numbers" and all(label == int(label) for label in self.labels):
            line += '; if these are classes, pass kind="labels"'
        if isinstance(self.texts[0], list) and all(len(word) == 1 for words in self.texts for word in words):
            line += "; all words have one character: if they are the characters of a text, keep its blanks among them"
        return line


def read_dev(dev: typing.Any, labels: typing.Any, text_columns: tuple[str, ...], data: GivenData) -> GivenData:
    """Returns the data to evaluate on: a table as the one to train on, or (texts, labels)."""
    # Each label, and the form of the texts, must be among those to train on. Labels and columns are read for tables
    # alone.
    if is_table(dev):
        found = read_given(dev, labels, text_columns, data.kind)
    elif isinstance(dev, tuple | list) and len(dev) == 2:
        found = read_given(*dev, text_columns, data.kind)
    else:
        raise InputError(f"`dev` must be a table, or a tuple of texts and labels. Received: {describe(dev)}")
    if _shape(found.texts[0]) != _shape(data.texts[0]):
        raise InputError(
            f"`dev`: texts[0] must be {_shape(data.texts[0])}, like the training texts. "
            f"Received: {describe(found.texts[0])}"
        )
    known = {name for label in data.labels for name in KINDS[data.kind].names(label)}
    for number, label in enumerate(found.labels):
        for name in KINDS[data.kind].names(label):
            if name not in known:
                raise InputError(
                    f"`dev`: labels[{number}] has {quote(name)}, which no training example has; leave it out"
                )
    return found


def read_given(
    texts: typing.Any, labels: typing.Any, text_columns: tuple[str, ...] = ("text",), kind: str | None = None
) -> GivenData:
    """Returns the data that a user gives as examples, as `albert_tf.fit` takes them; errors name one by its number."""
    if kind is not None and kind not in KINDS:
        raise InputError(f"`kind={kind}` must be one of {', '.join(KINDS)}")
    text_columns = (text_columns,) if isinstance(text_columns, str) else tuple(text_columns)
    label_columns = ()
    if is_table(texts):
        if isinstance(labels, list | tuple):
            kind, label_columns = kind or "multi_label", tuple(labels)
        if kind == "vectors" and labels is None:
            texts, _ = _columns(texts, text_columns[0], text_columns)
        else:
            texts, labels = _columns(texts, "label" if labels is None else labels, text_columns)
    texts = _as_list(texts, "texts")
    labels = [None] * len(texts) if kind == "vectors" and labels is None else _as_list(labels, "labels")
    if len(texts) != len(labels):
        raise InputError(f"{len(texts):,} texts and {len(labels):,} labels; give one entry of labels for each text")
    if not texts:
        raise InputError("there are no texts; give texts and their labels")
    if kind != "entities" and _are_pairs_as_lists(texts, labels):
        texts = list(map(tuple, texts))
    texts = [_text(value, number) for number, value in enumerate(texts)]
    shape = _shape(texts[0])
    for number, text in enumerate(texts):
        if _shape(text) != shape:
            raise InputError(f"texts[{number}] must be {shape}, as the first is. Received: {describe(text)}")
    kind = kind or _kind_of(texts, labels)
    check = KINDS[kind].check
    labels = [check(label, text, number) for number, (text, label) in enumerate(zip(texts, labels))]
    if kind == "entities" and _are_characters(texts):
        texts, labels = map(list, zip(*map(_text_of_characters, texts, labels)))
    return GivenData(kind, texts, labels, label_columns)


def _columns(table, label_column, text_columns):
    """Returns texts and labels of a table's columns; labels by the names that a table of `datasets` has for them."""
    names = getattr(table, "column_names", None)
    if isinstance(names, dict):
        raise InputError(f"a DatasetDict holds several tables ({', '.join(names)}); give one, as dataset['train']")
    names = list(table.columns) if names is None else list(names)
    are_names = isinstance(label_column, list | tuple) and all(isinstance(name, str) for name in label_column)
    if not isinstance(label_column, str) and not (are_names and label_column):
        raise InputError(
            "for a table, `labels` must be the name of the column that holds them, or a list of names of columns of 1 "
            f"and 0. Received: {describe(label_column)}"
        )
    label_columns = [label_column] if isinstance(label_column, str) else list(label_column)
    for name in (*text_columns, *label_columns):
        if name not in names:
            raise InputError(
                f"the table has no column {name!r}, but {listed(names)}; name them with `labels` and `text_columns`"
            )
    columns = [list(table[name]) for name in text_columns]
    texts = columns[0] if len(columns) == 1 else list(zip(*columns))
    if are_names:
        rows = zip(*(list(table[name]) for name in label_columns))
        return texts, [_flagged(values, label_columns, number) for number, values in enumerate(rows)]
    labels = list(table[label_column])
    feature = (getattr(table, "features", None) or {}).get(label_column)
    known = getattr(feature, "names", None)
    known_of_each = getattr(getattr(feature, "feature", None), "names", None)  # of a list of tags
    if known:
        labels = [_named(label, known) for label in labels]
    elif known_of_each:
        labels = [[_named(label, known_of_each) for label in each] for each in labels]
    return texts, labels


def _flagged(values, names, number):
    """Returns which of some columns hold 1 in a row."""
    for name, value in zip(names, values):
        if not is_flag(value):
            raise InputError(f"row {number}: {name} must be 1 or 0, as a label. Received: {describe(value)}")
    return [name for name, value in zip(names, values) if value]


def _named(label, names):
    """Returns the name of a class; None for -1, which says that nobody knows it."""
    if not isinstance(label, numbers.Integral) or label >= len(names):
        return label
    return names[label] if label >= 0 else None


def _as_list(values, name):
    if isinstance(values, str | bytes | collections.abc.Mapping) or not isinstance(values, collections.abc.Iterable):
        raise InputError(f"`{name}` must be a list, or a column of a table. Received: {describe(values)}")
    if is_table(values):
        raise InputError(
            f"`{name}` is a table; give one of its columns, or the whole table as the first argument, and as `labels` "
            "the name of a column, or a list of columns of 1 and 0"
        )
    return list(values)


def _text(value, number):
    """Returns a text as a string, a pair as a tuple, or words as a list."""
    if isinstance(value, str):
        return replace_halves(value)
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(text, str) for text in value):
        return tuple(map(replace_halves, value))
    if isinstance(value, list | np.ndarray) and len(value) and all(isinstance(word, str) for word in value):
        return list(map(replace_halves, value))
    raise InputError(
        f"texts[{number}] must be a string, a tuple of two, or a list of words. Received: {describe(value)}"
    )


def _are_characters(texts):
    """Whether lists are the characters of texts, blanks among them, as the hub has KLUE-NER, and not words."""
    if not isinstance(texts[0], list) or not all(len(unit) == 1 for units in texts for unit in units):
        return False
    return any(unit.isspace() for units in texts for unit in units)


def _are_pairs_as_lists(texts, labels):
    """Whether texts are pairs as JSON has them, and not two words each, which would have lists of tags."""
    are_twos = all(isinstance(text, list) and len(text) == 2 for text in texts)
    return are_twos and not any(isinstance(label, LISTS) for label in labels)


def _shape(text):
    return {str: "a string", tuple: "a tuple of two", list: "a list of words"}[type(text)]


def _kind_of(texts, labels):
    if isinstance(texts[0], list):
        return "entities"
    if any(isinstance(label, collections.abc.Mapping) for label in labels):
        return "answers"
    lists = [label for label in labels if isinstance(label, LISTS)]
    if lists:
        first = next((next(iter(each)) for each in lists if len(each)), None)
        if first is None:
            raise InputError("all labels are empty lists; set `kind` to multi_label or entities to say what they are")
        if isinstance(first, str):
            return "multi_label"
        if is_flag(first) and isinstance(texts[0], str):
            raise InputError(NO_NAMES)
        return "answers" if isinstance(texts[0], tuple) else "entities"
    known = [label for label in labels if not is_missing(label)]
    are_numbers = known and all(isinstance(label, numbers.Real) and not is_whole(label) for label in known)
    return "numbers" if are_numbers else "labels"


def _text_of_characters(characters: list[str], tags: list[str]) -> tuple[str, list[tuple[int, int, str]]]:
    """Returns the text of characters, and the (begin, end, type) of its entities; tags of blanks say nothing."""
    places = [place for place, character in enumerate(characters) if not character.isspace()]
    try:
        found = entities_of([normalize_tag(tags[place]) for place in places])
    except ValueError as error:
        raise InputError(f"{quote(str(error))} is not a tag such as B-PER, PER-B, I-PER or O; correct it") from error
    return "".join(characters), [(places[each.begin], places[each.end - 1] + 1, each.type) for each in found]
