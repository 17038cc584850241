"""Fine-tuning to give a text, or a pair of texts, one of several labels (original run_classifier.py)."""

import collections
import functools
import importlib.util
from types import MappingProxyType

import numpy as np
import tensorflow as tf

from albert_tf.asking.answers import LabelAnswer
from albert_tf.config import AlbertConfig
from albert_tf.errors import listed, quote
from albert_tf.finetuning.datasets import COLUMN_TYPES, DATASETS, DataFiles
from albert_tf.finetuning.kinds import OF_TEXT, TaskKind
from albert_tf.finetuning.labelled_text_task import LabelledTextTask
from albert_tf.finetuning.labels import label_report
from albert_tf.finetuning.linear_models import classify
from albert_tf.finetuning.metrics import LABEL_METRICS
from albert_tf.finetuning.mistakes import CONFUSION_FILE, plot_confusion_matrix
from albert_tf.finetuning.soft_labels import has_label, labelled_cross_entropy, log_probabilities
from albert_tf.text_windows import softmax


class Classification(LabelledTextTask):
    """Cross-entropy over the labels. Examples are `LabelledText`s.

    A prediction is a dictionary of the "label" and the "probabilities" of all labels by name.

    Args:
        labels: In the order of their ids.
        files: The meaning of the files' columns, and the measures.
        class_weights: The weight of an example of each label in training; None for 1 each.
        doc_stride: Every how many tokens a window of a long text begins; None to cut such texts.
    """

    kind = TaskKind("classify", OF_TEXT, LabelAnswer, hf_problem_type="single_label_classification")
    loss_name, label_name, label_type = "classification_loss", "label_ids", tf.int32
    metric_names = ("accuracy",)
    setting_types = MappingProxyType({"labels": list[str], **COLUMN_TYPES})
    activations = (tf.nn.softmax, softmax)
    error_columns = ("label", "prediction", "probability")

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
        label_ids, soft_labels = batch["label_ids"], self.soft_labels if training else None
        loss, accuracy = labelled_cross_entropy(logits, label_ids, batch, self.weights(batch), soft_labels)
        if training and self._class_weights is not None:
            loss, _ = labelled_cross_entropy(logits, label_ids, batch, self._weights(batch), soft_labels)
        return {"classification_loss": loss, "accuracy": accuracy}

    def _weights(self, batch):
        """Returns the weight of each example in the loss, float32 [B]."""
        if self._class_weights is None:
            return self.weights(batch)
        of_labels = tf.gather(tf.constant(self._class_weights), batch["label_ids"])
        return self.weights(batch) * tf.where(has_label(batch) > 0, of_labels, 1.0)

    def reason_against(self, label):
        if label in self._ids:
            return None
        return f"label {quote(label)} is not in the list {listed(self.labels)} (set the list with `labels`)"

    def label_values(self, examples):
        """Returns the ids of the labels, int32 [T]."""
        return np.array([self._ids.get(example.label, 0) for example in examples], np.int32)

    def taught(self, examples, predictions):
        """Returns the logarithms of the teacher's probabilities, float32 [T, labels]."""
        return log_probabilities(predictions, self.labels)

    def predict(self, examples, features, outputs):
        return list(map(self.kind.answer(self.labels).of_values, self.probabilities(features, outputs)))

    def written_prediction(self, prediction):
        return prediction["label"]

    def mistake(self, example, prediction):
        """Returns its label, the one found, and how sure the model is of that."""
        found = prediction["label"]
        if found == example.label:
            return None
        probability = prediction["probabilities"][found]
        return probability, [example.label, found, f"{probability:.4f}"]

    def score(self, examples, predictions):
        truth, found = [example.label for example in examples], [prediction["label"] for prediction in predictions]
        return {name: LABEL_METRICS[name](truth, found, self.labels) for name in self._files.metrics}

    def blind_scores(self, examples):
        counts = collections.Counter(example.label for example in examples)
        label = min(counts, key=lambda each: (-counts[each], self.labels.index(each)))
        scores = self.score(examples, [{"label": label}] * len(examples))
        return f"always {quote(label)}, the most frequent label", {"accuracy": counts[label] / len(examples), **scores}

    def predict_linearly(self, train, dev):
        return [{"label": label} for label in classify(train, dev)]

    def reports(self):
        reports = super().reports()
        if importlib.util.find_spec("matplotlib") is not None:
            reports[CONFUSION_FILE] = functools.partial(plot_confusion_matrix, labels=self.labels)
        return reports

    def describe(self, path, examples, features):
        """Returns how often each label occurs, and warns of texts that have several."""
        return label_report(path, examples, self.labels)
