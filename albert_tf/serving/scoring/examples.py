"""Labelled texts that stand in front of a text, drawn from a training file."""

import collections.abc

import numpy as np

from albert_tf.errors import InputError, shorten
from albert_tf.rows.row_file import RowFile
from albert_tf.rows.values import joined_text, known_label, one_value
from albert_tf.text_fields import columns_of

_NAME_COLUMNS = "name your columns with `input_fields` and `label_field`"


def draw_examples(
    path: str, text_field: str, label_field: str, labels: collections.abc.Collection[str], count: int, seed: int
) -> list[tuple[str, str]]:
    """Returns `count` texts of a training file with their labels, of each label about as many, in random order.

    Args:
        path: A file with columns.
        text_field: The column of the text, or several with commas between them.
        label_field: The column of the label.
        labels: Those that may be drawn.
        seed: Decides, with the file, what is drawn.

    Raises:
        InputError: The file can't be read, or has not so many.
    """
    by_label = {label: [] for label in labels}
    for text, label in _read(path, text_field, label_field):
        label = known_label(label, by_label)
        if text.strip() and label in by_label:
            by_label[label].append(text)
    generator = np.random.default_rng(seed)
    drawn = []
    for number, (label, texts) in enumerate(by_label.items()):
        wanted = count // len(by_label) + (number < count % len(by_label))
        if len(texts) < wanted:
            use = "use fewer" if texts else f"compare the labels of the template with the column {label_field}"
            raise InputError(
                f"{path} has {len(texts)} texts of the label {shorten(label)}, and `num_examples={count}` needs "
                f"{wanted}; {use}"
            )
        drawn += [(texts[row], label) for row in generator.permutation(len(texts))[:wanted]]
    return [drawn[row] for row in generator.permutation(len(drawn))]


def _read(path, text_field, label_field):
    file = RowFile(path)
    for row in file:
        if row.error:
            raise InputError(row.error)
        if not isinstance(row.values, dict):
            raise InputError(f"{file.place(row.number)}: not a JSON object")
        columns = columns_of(text_field, row.values)
        file.check_columns([*columns, label_field], tuple(row.values), _NAME_COLUMNS)
        try:
            yield joined_text(row.values, columns), one_value(row.values, label_field)
        except InputError as error:
            raise InputError(f"{file.place(row.number)}: {error}") from error
