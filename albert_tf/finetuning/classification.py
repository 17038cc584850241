"""Fine-tuning to give a text, or a pair of texts, one of several labels (original run_classifier.py)."""

import collections
import functools
import importlib.util
from types import MappingProxyType

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import listed, quote
from albert_tf.finetuning.datasets import COLUMN_TYPES, DATASETS, DataFiles, files_of
from albert_tf.finetuning.labelled_text_task import LabelledTextTask
from albert_tf.finetuning.labels import label_report
from albert_tf.finetuning.linear_models import MOST_CHARACTERS, LinearModel, classify
from albert_tf.finetuning.metrics import LABEL_METRICS
from albert_tf.finetuning.mistakes import CONFUSION_FILE, plot_confusion_matrix, write_errors
from albert_tf.finetuning.soft_labels import TAUGHT, has_label, log_probabilities
from albert_tf.finetuning.task import ERRORS_FILE
from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.text_windows import softmax


class Classification(LabelledTextTask):
    """Cross-entropy over the labels. Examples are `LabelledText`s.

    A prediction is a dictionary of the "label" and the "probabilities" of all labels by name.

    Args:
        config: Hyper-parameters.
        labels: The labels in the order of their ids.
        files: What the columns of the files mean, and how the task is measured.
        class_weights: How much an example of each label counts in training; None for 1 each.
        doc_stride: Read long texts in windows; see `LabelledTextTask`.
    """

    loss_name, label_name, label_type = "classification_loss", "label_ids", tf.int32
    metric_names = ("accuracy",)
    setting_types = MappingProxyType({"labels": list[str], **COLUMN_TYPES})

    def __init__(
        self,
        config: AlbertConfig,
        labels: tuple[str, ...] = ("0", "1"),
        files: DataFiles = DATASETS["tsv"],
        class_weights: tuple[float, ...] | None = None,
        doc_stride: int | None = None,
    ):
        super().__init__(config, files, len(labels), doc_stride)
        self.labels, self._ids = tuple(labels), {label: index for index, label in enumerate(labels)}
        self.scores_predictions = set(files.metrics) != {"accuracy"} or doc_stride is not None
        self._class_weights = class_weights

    def loss_weights(self, batch):
        return {"classification_loss": tf.reduce_sum(self._weights(batch))}

    def compute(self, batch, training, dropout_seed, model):
        logits = model(batch, training=training, dropout_seed=dropout_seed)["logits"]
        loss, accuracy = weighted_cross_entropy(logits, batch["label_ids"], self.weights(batch) * has_label(batch))
        if training and self.soft_labels is not None:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label_ids"], logits)
            soft_losses, weights = self.soft_labels.divergence(logits, batch[TAUGHT]), self._weights(batch)
            losses = self.soft_labels.mix(losses, soft_losses, has_label(batch))
            loss = tf.reduce_sum(losses * weights), tf.reduce_sum(weights)
        elif training and self._class_weights is not None:
            loss, _ = weighted_cross_entropy(logits, batch["label_ids"], self._weights(batch))
        return {"classification_loss": loss, "accuracy": accuracy}

    def _weights(self, batch):
        """Returns what each example counts in the loss, float32 [B]."""
        if self._class_weights is None:
            return self.weights(batch)
        of_labels = tf.gather(tf.constant(self._class_weights), batch["label_ids"])
        return self.weights(batch) * tf.where(has_label(batch) > 0, of_labels, 1.0)

    def reason_against(self, label):
        return (
            None
            if label in self._ids
            else f"label {quote(label)} is not in the list {listed(self.labels)} (set the list with `labels`)"
        )

    def label_values(self, examples):
        """Returns the ids of the labels, int32 [T]."""
        return np.array([self._ids.get(example.label, 0) for example in examples], np.int32)

    def differs_from(self, other):
        if set(other.labels) != set(self.labels):
            return f"has the labels {listed(other.labels)}, but here they are {listed(self.labels)}"
        return super().differs_from(other)

    def soft_features(self, examples, features, teacher):
        """Returns the logarithms of the teacher's probabilities, float32 [N, labels]."""
        return {TAUGHT: self.of_rows(log_probabilities(teacher.predict(examples), self.labels), features)}

    def outputs(self, batch, model):
        """Returns `probabilities` float32 [B, labels], or `logits` where those of windows are averaged."""
        logits = model(batch, training=False)["logits"]
        return {"probabilities": tf.nn.softmax(logits)} if self.doc_stride is None else {"logits": logits}

    def predict(self, examples, features, outputs):
        if self.doc_stride is None:
            probabilities = outputs["probabilities"]
        else:
            probabilities = softmax(self.of_texts(outputs["logits"], features))
        return [
            {"label": self.labels[row.argmax()], "probabilities": dict(zip(self.labels, map(float, row)))}
            for row in probabilities
        ]

    def prediction_columns(self, prediction):
        shares = {f"p({label})": f"{share:.4f}" for label, share in prediction["probabilities"].items()}
        return {"prediction": prediction["label"], **shares}

    def score(self, examples, predictions):
        truth, found = [example.label for example in examples], [prediction["label"] for prediction in predictions]
        return {name: LABEL_METRICS[name](truth, found, self.labels) for name in self._files.metrics}

    def blind_scores(self, examples):
        counts = collections.Counter(example.label for example in examples)
        label = min(counts, key=lambda each: (-counts[each], self.labels.index(each)))
        scores = self.score(examples, [{"label": label}] * len(examples))
        return f"always {quote(label)}, the most frequent label", {"accuracy": counts[label] / len(examples), **scores}

    def linear_model(self):
        """Returns logistic regression; the more labels the fewer examples, as each label takes its time."""

        def predict(train, dev):
            return [{"label": label} for label in classify(train, dev)]

        return LinearModel("a linear model on character n-grams", predict, 2 * MOST_CHARACTERS // len(self.labels))

    def reports(self):
        reports = {ERRORS_FILE: write_errors}
        if importlib.util.find_spec("matplotlib") is not None:
            reports[CONFUSION_FILE] = functools.partial(plot_confusion_matrix, labels=self.labels)
        return reports

    def describe(self, path, examples, features):
        """Returns how often each label occurs, and warns of texts that have several; see `label_report`."""
        return label_report(path, examples, self.labels)

    def text_and_label(self, example):
        return example.texts, example.label

    @classmethod
    def from_settings(cls, config, settings):
        return cls(config, tuple(settings["labels"]), files_of(settings), doc_stride=settings.get("doc_stride"))

    def settings(self):
        return {**super().settings(), "labels": list(self.labels)}
