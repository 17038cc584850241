"""Fine-tuning to give a text, or a pair of texts, any number of several labels, none among them."""

import collections
import math
import os
from types import MappingProxyType

import numpy as np
import tensorflow as tf

from albert_tf.asking.answers import LabelsAnswer
from albert_tf.base.errors import InputError, listed, quote, shorten
from albert_tf.base.files import read_json, write_json
from albert_tf.base.settings import check_types
from albert_tf.base.texts import sigmoid
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.datasets import COLUMN_TYPES, DATASETS, DataFiles
from albert_tf.finetuning.linear_models import classify_into_several
from albert_tf.finetuning.metrics import count_found, f1_of_counts, totals
from albert_tf.finetuning.soft_labels import labelled_loss, log_odds
from albert_tf.finetuning.task import OF_TEXT, TaskKind
from albert_tf.finetuning.tasks.labelled_text import LabelSetReader
from albert_tf.finetuning.tasks.text_task import LabelledTextTask

THRESHOLDS_FILE = "thresholds.json"
# Into so many parts held-out texts are divided, each of which is judged by thresholds of the others.
_NUM_PARTS = 5
# As scikit-learn's `average="micro"` and "macro".
METRICS = {
    "micro_f1": lambda counts: f1_of_counts(*totals(counts)),
    "macro_f1": lambda counts: float(np.mean([f1_of_counts(*each) for each in counts.values()])),
}


class MultiLabel(LabelledTextTask):
    """Binary cross-entropy of each label. Examples are `LabelledText`s whose label is a tuple of labels.

    A prediction is a dictionary of the "labels" whose probability is not below their threshold, and the "probabilities"
    of all labels by name. Thresholds are 0.5 until held-out data say better ones; the folder of a run keeps them.

    Args:
        labels: In the order of their ids.
        files: The meaning of the files' columns, and the measures, names of `METRICS`.
        separator: The string between the labels of a text, where a file writes them as one value.
        doc_stride: Every how many tokens a window of a long text begins; None to cut such texts.

    Attributes:
        thresholds: Of each label, float32 [labels].
    """

    kind = TaskKind(
        "multi_label",
        OF_TEXT,
        LabelsAnswer,
        hf_problem_type="multi_label_classification",
        deciding_file=THRESHOLDS_FILE,
    )
    loss_name, label_name, label_type = "multi_label_loss", "label_values", tf.float32
    scores_predictions = True
    activations = (tf.math.sigmoid, sigmoid)
    error_columns = ("labels", "prediction", "missed", "wrong")
    setting_types = MappingProxyType({"labels": list[str], "label_separator": str, **COLUMN_TYPES})

    def __init__(
        self,
        config: AlbertConfig,
        labels: tuple[str, ...] = ("0", "1"),
        files: DataFiles = DATASETS["tsv"],
        separator: str = ",",
        doc_stride: int | None = None,
    ):
        super().__init__(config, files, len(labels), doc_stride)
        self.labels, self._separator, self.read_labels = tuple(labels), separator, LabelSetReader(separator)
        self._metrics = tuple(name for name in files.metrics if name in METRICS) or tuple(METRICS)
        self.selection_metric = self._metrics[0]
        self.thresholds, self.label_shape = np.full(len(labels), 0.5, np.float32), (len(labels),)

    def compute(self, batch, training, dropout_seed, model):
        logits = model(batch, training=training, dropout_seed=dropout_seed)["logits"]
        losses = tf.nn.sigmoid_cross_entropy_with_logits(batch["label_values"], logits)
        losses, soft_labels = tf.reduce_mean(losses, axis=-1), self.soft_labels if training else None

        def soft_losses(taught):
            return soft_labels.divergence_of_each(logits, taught)

        return {"multi_label_loss": labelled_loss(losses, soft_losses, batch, self.weights(batch), soft_labels)}

    def taught(self, examples, predictions):
        """Returns the logits of the teacher's labels, float32 [T, labels]."""
        return log_odds(predictions, self.labels)

    def reason_against(self, label):
        unknown = next((each for each in label if each not in self.labels), None)
        if unknown is None:
            return None
        return (
            f"label {quote(unknown)} is not in the list {listed(self.labels)} (labels are separated by "
            f"{self._separator!r}, as `label_separator` says)"
        )

    def label_values(self, examples):
        """Returns 1 where a text has a label, float32 [T, labels]."""
        flags = [[label in (example.label or ()) for label in self.labels] for example in examples]
        return np.array(flags, np.float32)

    def predict(self, examples, features, outputs):
        return self._decide(self.probabilities(features, outputs))

    def _decide(self, probabilities, thresholds=None):
        """Returns predictions, by the task's thresholds, or by others [N, labels]."""
        thresholds = np.broadcast_to(self.thresholds if thresholds is None else thresholds, probabilities.shape)
        return [self.kind.answer(self.labels, least).of_values(row) for row, least in zip(probabilities, thresholds)]

    def decide_on_held_out(self, examples, predictions):
        """Settles on the threshold of each label with which its F1 is best."""
        # Each of the predictions returned is decided by thresholds that were chosen on other examples, as those of new
        # texts will be.
        probabilities = np.array([list(each["probabilities"].values()) for each in predictions], np.float32)
        truth = self.label_values(examples) > 0
        self.thresholds = best_thresholds(truth, probabilities)
        return self._decide(probabilities, cross_fitted_thresholds(truth, probabilities))

    def restore(self, folder):
        path = os.path.join(folder, THRESHOLDS_FILE)
        if not tf.io.gfile.exists(path):
            return
        found = check_types(read_json(path, "the thresholds"), dict.fromkeys(self.labels, float), path, self.labels)
        if not all(0 <= found[label] <= 1 for label in self.labels):
            raise InputError(f"{path}: a threshold is not between 0 and 1; evaluate the run anew with `do_eval`")
        self.thresholds = np.array([found[label] for label in self.labels], np.float32)

    def written_label(self, label):
        return self._separator.join(label or ())

    def written_prediction(self, prediction):
        return self.written_label(prediction["labels"])

    def mistake(self, example, prediction):
        """Returns the labels, those found, those missed and those found wrongly; the more of these the worse."""
        missed = [label for label in example.label if label not in prediction["labels"]]
        wrong = [label for label in prediction["labels"] if label not in example.label]
        if not missed and not wrong:
            return None
        sets = (example.label, prediction["labels"], missed, wrong)
        return len(missed) + len(wrong), list(map(self.written_label, sets))

    def score(self, examples, predictions):
        truth, found = (example.label for example in examples), (each["labels"] for each in predictions)
        counts = count_found(truth, found, kinds=self.labels)
        return {name: METRICS[name](counts) for name in self._metrics}

    def blind_scores(self, examples):
        """Scores the same labels for all texts: as many of the most frequent as score best."""
        counts = collections.Counter(label for example in examples for label in example.label)
        frequent = sorted(self.labels, key=lambda label: (-counts[label], self.labels.index(label)))
        choices = [frequent[: 1 + number] for number in range(len(frequent))]
        scores = [self.score(examples, [{"labels": choice}] * len(examples)) for choice in choices]
        best = max(range(len(choices)), key=lambda number: scores[number][self.selection_metric])
        named = "every label" if best + 1 == len(frequent) > 1 else ", ".join(map(quote, choices[best][:10]))
        return f"always {named}", scores[best]

    def predict_linearly(self, train, dev):
        probabilities = classify_into_several(train, dev, self.label_values(train))
        kept, found = self.thresholds, self.decide_on_held_out(dev, self._decide(probabilities))
        self.thresholds = kept
        return found

    def reports(self):
        return {THRESHOLDS_FILE: self._write_thresholds, **super().reports()}

    def _write_thresholds(self, path, *_):
        write_json(path, dict(zip(self.labels, self.thresholds.tolist())))

    def limits_elsewhere(self):
        thresholds = "transformers has no thresholds for labels; with those of an evaluation the model stays here"
        return [*super().limits_elsewhere(), thresholds]

    def describe(self, path, examples, features):
        counts = collections.Counter(label for example in examples for label in example.label)
        named = listed(f"{shorten(label)} ({counts[label]:,})" for label in self.labels)
        without = sum(not example.label for example in examples)
        mean = math.fsum(counts.values()) / len(examples)
        return [
            f"{len(self.labels):,} labels in the {len(examples):,} examples of {path}, {mean:.2f} a text, {without:,} "
            f"texts without: {named}"
        ]

    @classmethod
    def from_settings(cls, config, settings):
        return super().from_settings(config, settings, separator=settings["label_separator"])

    def settings(self):
        return {**super().settings(), "label_separator": self._separator}


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
