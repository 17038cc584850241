"""Files of texts, and tables of their copies, which run_classifier.py --unlabelled_file reads."""

import collections.abc
import dataclasses
import typing
import unicodedata

from albert_tf.errors import InputError
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.finetuning.labelled_text import read_examples
from albert_tf.rows.bad_rows import BadRows, counted, shorten
from albert_tf.rows.row_file import COLUMN_ENDINGS, JSON_ENDINGS, RowFile
from albert_tf.serving.augmentation.augmenter import Augmenter

# A row is a text, or two of a pair.
Texts = tuple[str, ...]

# A table has a line a row.
_SPACES = str.maketrans("\t\n\r", "   ")


def read_rows(path: str, files: DataFiles, names_columns: bool) -> list[Texts]:
    """Returns the texts of each row of a file, and prints in a line how it was understood.

    Args:
        path: The file, as run_classifier.py reads it: a table with the columns that are named, labels in it or not.
        files: What its columns mean, and what to do with a row that can't be used.
        names_columns: Whether the columns were named; else a file without them may be lines of text.

    Raises:
        InputError: A column is missing, a row can't be used and is not to be left out, or there is no row.
    """
    if not names_columns and not path.lower().removesuffix(".gz").endswith((*COLUMN_ENDINGS, *JSON_ENDINGS)):
        first = next(iter(RowFile(path, is_text=True)), None)
        columns = first.values.split("\t") if first and not first.error else []
        if files.text_column not in columns:
            if len(columns) > 1:
                raise InputError(
                    f"{path}, line 1: no column named {files.text_column}; the header has {', '.join(columns)}; "
                    "name your column with `text_column`, or, of lines of text, take the tabs out of the first"
                )
            return _read_lines(path, files)
    without_labels = dataclasses.replace(files, label_column="")
    examples = read_examples(path, without_labels, needs_label=False)
    return [tuple(map(_fit_for_table, example.columns.values())) for example in examples]


def distinct_copies(
    augmenter: Augmenter,
    rows: list[Texts],
    tell: collections.abc.Callable[[float], None],
) -> collections.abc.Iterator[tuple[Texts, list[Texts]]]:
    """Yields each row with its copies, but for those that equal a row or a copy before.

    Args:
        augmenter: Makes them.
        rows: Of two texts both are changed.
        tell: Is given, after each batch, of how many rows the work is done.
    """
    seen, width = set(rows), len(rows[0])
    for begin in range(0, len(rows), augmenter.texts_at_once):
        part = rows[begin : begin + augmenter.texts_at_once]
        texts = [text for row in part for text in row]
        found = augmenter.augment(texts, lambda num_texts, begin=begin: tell(begin + num_texts / width))
        for number, row in enumerate(part):
            copies = dict.fromkeys(zip(*found[width * number : width * (number + 1)]))
            new = [copy for copy in copies if copy not in seen]
            seen.update(new)
            yield row, new


def write_table(
    file: typing.BinaryIO, rows: collections.abc.Iterable[tuple[Texts, list[Texts]]], files: DataFiles
) -> tuple[int, str]:
    """Writes copies as a table in the columns of the task's files, without labels.

    Args:
        file: Where.
        rows: What `distinct_copies` yields.
        files: What the columns are called.

    Returns:
        How many copies there are, and the first beside its text, in a line.

    Raises:
        InputError: There is none.
    """
    columns = files.columns or files.text_columns
    if files.columns is None:
        file.write(_line(columns))
    count, first = 0, ""
    for row, copies in rows:
        for copy in copies:
            by_column = dict(zip(files.text_columns, copy))
            file.write(_line([by_column.get(column, "") for column in columns]))
        if copies and not count:
            first = " -> ".join(" | ".join(map(shorten, texts)) for texts in (row, copies[0]))
        count += len(copies)
    if not count:
        raise InputError("no copy differs from its text: the texts have no words that could be replaced")
    return count, first


def _read_lines(path, files):
    bad_rows, rows = BadRows(files.on_bad_row), []
    for row in RowFile(path, is_text=True):
        if row.error:
            bad_rows.refuse(row.error)
        elif row.values.strip():
            rows.append((_fit_for_table(row.values),))
    bad_rows.warn()
    if not rows:
        raise InputError(f"{path} has no line of text that can be used")
    print(f"{path}: {counted(len(rows), 'line')} of text\n  the first: {shorten(rows[0][0])}", flush=True)
    return rows


def _fit_for_table(text):
    """Returns a text in NFC, as its copies are then too, whichever pieces are replaced."""
    return unicodedata.normalize("NFC", text).translate(_SPACES)


def _line(values):
    return ("\t".join(values) + "\n").encode("utf-8")
