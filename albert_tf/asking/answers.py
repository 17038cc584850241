"""Answers: how each kind of task spells what a model says of a text, in graphs, in Python and in JSON; and vectors.

A graph gives columns, arrays with a row for each text, under the names that TensorFlow Serving's clients read; in
Python an answer is a dictionary. The vector of a text is made of the states of its pieces.
"""

import abc
import collections.abc
import typing

import numpy as np

from albert_tf.base.errors import InputError

# The signature that answers requests which name none, and others of pre-trained models.
DEFAULT = "serving_default"
PIECES, FILL_MASK, FIND_REPLACED = "pieces", "fill_mask", "find_replaced"

# The output, int [N], that says how many columns of each row are there where rows differ: all outputs with columns have
# the same ones, and what is behind is filler.
LENGTHS = "lengths"

# Less is the score of a text in which nothing could be the answer.
_NO_SPAN = -1e29

Columns = dict[str, np.ndarray]
# Dtype and shape by the name of each output, as a signature describes them.
Outputs = dict[str, list[typing.Any]]


class Answer(abc.ABC):
    """The answer of models for one kind of task to a text.

    Args:
        labels: Of the task, in the order of the model's outputs; empty where it has none.
        thresholds: From which probability on a text has each label, where it may have several.

    Attributes:
        name: In model cards.
        signature: The signature of an export whose outputs `prediction` needs.
        reads_windows: Whether long texts are always read in windows, and never cut.
        needs_thresholds: Whether labels are given by thresholds.
        needs: The outputs of that signature that `prediction` reads.
    """

    name: str
    signature = DEFAULT
    reads_windows = False
    needs_thresholds = False
    needs: tuple[str, ...] = ()

    def __init__(self, labels: collections.abc.Sequence[str] = (), thresholds: collections.abc.Sequence[float] = ()):
        self._labels, self._thresholds = tuple(labels), np.array(thresholds, np.float32)

    @abc.abstractmethod
    def prediction(self, row: dict[str, typing.Any]) -> dict[str, typing.Any]:
        """Returns the answer in Python, of a row that `rows_of` has made of a graph's outputs."""


class ValueAnswer(Answer):
    """An answer that follows from numbers which are the model's only output, the one that it `needs`."""

    def prediction(self, row):
        return self.of_values(row[self.needs[0]])

    @abc.abstractmethod
    def of_values(self, values: np.ndarray) -> dict[str, typing.Any]:
        """Returns the answer in Python, of a text's output, float32 [labels] or []."""

    @abc.abstractmethod
    def columns(self, signature: str, values: np.ndarray) -> Columns:
        """Returns what a signature's graph would, of float32 [N, labels] or [N]: LiteRT has no strings."""

    @abc.abstractmethod
    def outputs(self) -> dict[str, Outputs]:
        """Returns dtype and shape of the columns of each signature."""


class LabelAnswer(ValueAnswer):
    """One of several labels, with the probabilities of all."""

    name, needs = "label", ("probabilities",)

    def of_values(self, values):
        probabilities = dict(zip(self._labels, map(float, values)))
        return {"label": self._labels[np.argmax(values)], "probabilities": probabilities}

    def columns(self, signature, values):
        labels, best = _strings(self._labels), values.argmax(axis=-1)
        return {"label": labels[best], **_of_all(labels, values), "probability": values.max(axis=-1)}

    def outputs(self):
        of_all = _outputs_of(len(self._labels))
        return {DEFAULT: {"label": ["string", [None]], **of_all, "probability": ["float32", [None]]}}


class LabelsAnswer(ValueAnswer):
    """Any number of several labels: those that reach their thresholds, and the probabilities of all."""

    name, signature, needs_thresholds, needs = "labels", "all_labels", True, ("probabilities",)

    def of_values(self, values):
        given = np.flatnonzero(np.asarray(values, np.float32) >= self._thresholds)
        return {
            "labels": [self._labels[number] for number in given],
            "probabilities": dict(zip(self._labels, map(float, values))),
        }

    def columns(self, signature, values):
        if signature == self.signature:
            return _of_all(_strings(self._labels), values)
        is_given = values >= self._thresholds
        lengths = is_given.sum(axis=-1).astype(np.int32)
        order = np.argsort(~is_given, axis=-1, kind="stable")[:, : lengths.max()]
        is_there = np.arange(order.shape[1]) < lengths[:, None]
        return {
            "labels": np.where(is_there, _strings(self._labels)[order], b""),
            LENGTHS: lengths,
            "probabilities": np.where(is_there, np.take_along_axis(values, order, axis=-1), np.float32(0.0)),
        }

    def outputs(self):
        given = dict(sorted({LENGTHS: ["int32", [None]], **_outputs_of(None)}.items()))  # with filler behind them
        return {DEFAULT: given, self.signature: _outputs_of(len(self._labels))}


class ScoreAnswer(ValueAnswer):
    """A number."""

    name, needs = "score", ("score",)

    def of_values(self, values):
        return {"score": float(values)}

    def columns(self, signature, values):
        return {"score": values}

    def outputs(self):
        return {DEFAULT: {"score": ["float32", [None]]}}


class EntitiesAnswer(Answer):
    """Entities with their types and places."""

    name, reads_windows, needs = "entities", True, ("types", "begins", "ends", "texts")

    def prediction(self, row):
        entities = zip(row["types"], row["begins"], row["ends"], row["texts"])
        return {"entities": [dict(zip(("type", "begin", "end", "text"), each)) for each in entities]}


class SpanAnswer(Answer):
    """A part of a text that answers a question, "" and no place where none does."""

    name, reads_windows, needs = "span", True, ("answer", "begin", "end", "score")

    def prediction(self, row):
        is_there = row["begin"] >= 0
        place = {name: row[name] if is_there else None for name in ("begin", "end")}
        score = row["score"] if row["score"] > _NO_SPAN else None
        odds = {"null_odds": row["null_odds"]} if "null_odds" in row else {}
        return {"text": row["answer"], **place, "score": score, **odds}


def _of_all(labels, values):
    return {"labels": np.tile(labels, [len(values), 1]), "probabilities": values}


def _outputs_of(num_labels):
    return {"labels": ["string", [None, num_labels]], "probabilities": ["float32", [None, num_labels]]}


def _strings(labels):
    return np.array([label.encode() for label in labels], object)


# By what model cards call them.
ANSWERS = {each.name: each for each in (LabelAnswer, LabelsAnswer, ScoreAnswer, EntitiesAnswer, SpanAnswer)}


def rows_of(columns: Columns) -> list[dict[str, typing.Any]]:
    """Returns a model's outputs for each text, JSON values by name.

    A text with fewer entities or tokens than others of its batch has filler behind them. It is left out, so that no
    answer depends on the other texts of the batch; and so is `LENGTHS`, which tells where it begins.
    """
    columns = dict(columns)
    lengths = columns.pop(LENGTHS, None)
    return [
        {
            name: _json_values(values[row][: lengths[row]] if lengths is not None and values.ndim > 1 else values[row])
            for name, values in columns.items()
        }
        for row in range(len(next(iter(columns.values()))))
    ]


def _json_values(value):
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [_json_values(each) for each in value]
    return value.tolist()


# Vectors of texts, of the states of their pieces.

POOLINGS = ("mean", "first", "last", "all")

# So many texts, of about one length, are computed at once.
_TEXTS_AT_ONCE = 32


def groups_of_one_length(lengths: collections.abc.Sequence[int]) -> collections.abc.Iterator[np.ndarray]:
    """Yields the rows of texts of about one length, int [T] each, given the length of each text."""
    order = np.argsort(lengths, kind="stable")
    for begin in range(0, len(order), _TEXTS_AT_ONCE):
        yield order[begin : begin + _TEXTS_AT_ONCE]


def check_pooling(pooling: str, is_causal: bool) -> None:
    """Raises InputError if there is no such pooling, or it reads what in a causal model sees nothing of the text."""
    if pooling not in POOLINGS:
        raise InputError(f"pooling must be one of {', '.join(POOLINGS)}. Received: {pooling!r}")
    if is_causal and pooling == "first":
        raise InputError(
            "`pooling=first` reads a piece that in a model of is_causal=true sees no text; use `pooling=last`"
        )


def pool(states: np.ndarray, mask: np.ndarray, pooling: str) -> np.ndarray:
    """Returns a vector of each row, [T, H], of states [T, S, H] and mask [T, S]; `Model.encode` says how."""
    lengths, rows = mask.sum(axis=1), np.arange(len(mask))
    if pooling == "first":
        return states[:, 0]
    if pooling == "all":
        return np.einsum("tsh,ts->th", states, mask.astype(np.float32)) / lengths[:, None]
    if pooling == "last":
        return states[rows, np.maximum(0, lengths - 2)]
    weights = mask.astype(np.float32)
    weights[:, 0] = lengths == 2  # of a text without pieces there is but [CLS]
    weights[rows, lengths - 1] = 0
    return np.einsum("tsh,ts->th", states, weights) / weights.sum(axis=1, keepdims=True)


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Returns vectors [N, H] with a length of 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)


def cosines(vectors: np.ndarray) -> np.ndarray:
    """Returns the cosine of each vector and the one behind it, float32 [N], of [2 N, H]."""
    pairs = vectors.reshape(-1, 2, vectors.shape[-1])
    products = np.einsum("nth,nuh->ntu", pairs, pairs)  # of a text with itself too, so that equals give 1
    lengths = np.sqrt(products[:, 0, 0] * products[:, 1, 1])
    return (products[:, 0, 1] / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
