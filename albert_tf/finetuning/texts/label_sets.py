"""Texts with any number of labels: how files write them, and from which probability on they are given."""

import ast
import collections.abc
import dataclasses
import re
import typing

import numpy as np

from albert_tf.base.errors import InputError, quote, shorten
from albert_tf.reading.values import is_missing, one_value

# How Python writes a list of strings, of numbers or of nothing, as pandas does into a CSV file.
_LIST = re.compile(r"\[\s*((['\"\d.+-]|None|nan).*)?\]", re.DOTALL)

# Into so many parts held-out texts are divided, each of which is judged by thresholds of the others.
_NUM_PARTS = 5

# What a file to predict may hold in place of labels that nobody knows yet; nothing at all is no label.
_UNKNOWN = ("-", "?")
# How a column of a label's own says whether a text has it, in lower case.
_FLAGS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}


@dataclasses.dataclass(frozen=True)
class LabelSetReader:
    """Reads the labels of a row: a list of JSON or Parquet; one value with a separator between them (K-MHaS, KOTE); or
    of several columns, named as the labels, those that hold 1 and not 0 (UnSmile).
    """

    separator: str

    def __call__(
        self, values: collections.abc.Mapping[str, typing.Any], columns: tuple[str, ...], needs_label: bool
    ) -> tuple[str, ...] | None:
        """Returns the labels of a row, none among them; None where nobody knows them. Errors lack the place."""
        if len(columns) > 1:
            return _flagged(values, columns, needs_label)
        (column,) = columns
        value = values.get(column)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, str) and looks_like_list(value):
            value = _written_list(value.strip(), column)
        if isinstance(value, list | tuple):
            labels = tuple(one_value({column: each}, column) for each in value)
        elif is_missing(value):
            if needs_label:
                one_value(values, column)  # which says what is missing
            return None
        else:
            text = one_value(values, column).strip()
            if not needs_label and text in _UNKNOWN:
                return None
            labels = tuple(part.strip() for part in text.split(self.separator)) if text else ()
        if "" in labels:
            raise InputError(f"an empty label under {column}, {quote(value)}; remove the extra separator")
        if len(set(labels)) < len(labels):
            raise InputError(f"a label appears twice under {column}, {quote(value)}; name each once")
        return labels


def looks_like_list(text: str) -> bool:
    """Whether a text is a list as Python writes it."""
    return _LIST.fullmatch(text.strip()) is not None


def _written_list(text, column):
    """Returns a list that was written as text."""
    try:
        found = ast.literal_eval(text)
        if str(found) == text:  # NumPy's lists have no commas, so Python reads their strings as one
            return found
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    raise InputError(
        f"{column} holds {quote(text)}, a list written as text that can't be read; write lists into JSON lines or "
        "Parquet, or labels with a separator between them"
    )


def _flagged(values, columns, needs_label):
    """Returns the columns that hold 1; None where all are open in a row that needs no label."""
    if not needs_label and all(is_missing(value) or value in ("", *_UNKNOWN) for value in map(values.get, columns)):
        return None
    written = {column: one_value(values, column).strip() for column in columns}
    for column, value in written.items():
        if value.lower() not in _FLAGS:
            raise InputError(f"{shorten(column)} holds {quote(value)}; each of several label columns must hold 1 or 0")
    return tuple(column for column, value in written.items() if _FLAGS[value.lower()])


def best_thresholds(truth: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Returns for each label from which probability on to give it, so that its F1 is best: float32 [labels]."""
    # Truth is bool [N, labels]; probabilities are taken as float32, in which models compute them. A threshold lies
    # halfway between two, of equally good ones nearest to 0.5, which is also that of a label that no text has.
    return np.array([_best_threshold(*columns) for columns in zip(truth.T, probabilities.T.astype(np.float32))])


def cross_fitted_thresholds(truth: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Returns for each text thresholds that the other four fifths of the texts choose: float32 [N, labels]."""
    found = np.empty(truth.shape, np.float32)
    for part in np.array_split(np.random.default_rng(0).permutation(len(truth)), min(_NUM_PARTS, len(truth))):
        found[part] = best_thresholds(np.delete(truth, part, 0), np.delete(probabilities, part, 0))
    return found


def _best_threshold(truth, probabilities):
    if not truth.any():
        return np.float32(0.5)
    order = np.argsort(-probabilities, kind="stable")
    falling, right = probabilities[order], np.cumsum(truth[order])
    scores = 2 * right / (np.arange(1, len(truth) + 1) + truth.sum())
    is_last = np.append(falling[1:] < falling[:-1], True)  # of equal probabilities all are above a threshold, or none
    next_ones = np.append(falling[1:], np.float32(0.0))
    thresholds = (falling + next_ones) / 2
    thresholds = np.where(thresholds > next_ones, thresholds, falling)  # of neighbouring numbers nothing is between
    best = np.flatnonzero(is_last & (scores >= scores[is_last].max() - 1e-12))
    return thresholds[best[np.argmin(np.abs(thresholds[best] - 0.5))]]
