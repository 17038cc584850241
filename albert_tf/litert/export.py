"""A LiteRT model asked as a SavedModel is: the same inputs, and the same outputs under the same names."""

import collections.abc
import os

import numpy as np

from albert_tf.exports import DEFAULT, LENGTHS, version_of
from albert_tf.litert.predictor import LiteRTPredictor


class LiteRTExport:
    """What `export_model.py --format=litert` has made of a classifier or a regression; see `Export`.

    Args:
        folder: As `find_litert` returns it.

    Attributes:
        card: What model_card.json says of it; the signatures there are of the file, which reads ids.
        signatures: The one that the SavedModel has, `DEFAULT`, which reads texts.

    Raises:
        InputError: It can't be used, or ai-edge-litert is missing.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = os.fspath(folder)
        self.version = version_of(self.folder)
        self._predictor = LiteRTPredictor(self.folder)
        self.card = self._predictor.card
        self._labels = np.array([label.encode() for label in self.card["labels"]], object)
        outputs = _outputs(len(self._labels), self._predictor.thresholds is not None)
        self.signatures = {DEFAULT: {"inputs": self.card["input_fields"], "outputs": outputs}}

    def answer(
        self, signature: str, inputs: collections.abc.Mapping[str, collections.abc.Sequence[str | bytes]]
    ) -> dict[str, np.ndarray]:
        columns = [
            [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in inputs[name]]
            for name in self.signatures[signature]["inputs"]
        ]
        values = self._predictor.compute(list(zip(*columns)))
        if not len(self._labels):
            return {"score": values}
        if self._predictor.thresholds is not None:
            return self._label_sets(values)
        return {
            "label": self._labels[values.argmax(axis=-1)],
            "labels": np.tile(self._labels, [len(values), 1]),
            "probabilities": values,
            "probability": values.max(axis=-1),
        }

    def _label_sets(self, values):
        """Returns the labels that reach their thresholds, with filler behind them."""
        is_given = values >= self._predictor.thresholds
        lengths = is_given.sum(axis=-1).astype(np.int32)
        order = np.argsort(~is_given, axis=-1, kind="stable")[:, : lengths.max()]
        is_there = np.arange(order.shape[1]) < lengths[:, None]
        return {
            "labels": np.where(is_there, self._labels[order], b""),
            LENGTHS: lengths,
            "probabilities": np.where(is_there, np.take_along_axis(values, order, axis=-1), np.float32(0.0)),
        }


def _outputs(num_labels, gives_several):
    """Returns dtype and shape of each output, as `LabelSignatures`, `LabelSetSignatures` or `ScoreSignatures` have."""
    if not num_labels:
        return {"score": ["float32", [None]]}
    if gives_several:
        return {
            "labels": ["string", [None, None]],
            LENGTHS: ["int32", [None]],
            "probabilities": ["float32", [None, None]],
        }
    return {
        "label": ["string", [None]],
        "labels": ["string", [None, num_labels]],
        "probabilities": ["float32", [None, num_labels]],
        "probability": ["float32", [None]],
    }
