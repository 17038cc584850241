"""Fine-tuning to give a text, or a pair of texts, one of several labels (original run_classifier.py)."""

import collections
import functools
import importlib.util
from types import MappingProxyType

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.finetuning.datasets import COLUMN_TYPES, COLUMNS, DATASETS, DataFiles, files_of
from albert_tf.finetuning.labelled_text import (
    check_known_labels,
    encode_and_count_cut,
    read_examples,
    unlabelled_examples,
)
from albert_tf.finetuning.labels import label_report
from albert_tf.finetuning.metrics import LABEL_METRICS
from albert_tf.finetuning.mistakes import CONFUSION_FILE, plot_confusion_matrix, write_errors
from albert_tf.finetuning.task import ERRORS_FILE, FinetuningTask
from albert_tf.modeling import AlbertForSequenceClassification
from albert_tf.objectives.flops import TRAINING_FLOPS_PER_PRODUCT, classifier_products
from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.objectives.objective import batch_sizes, encoder_batch_spec
from albert_tf.rows.row_file import write_rows


class Classification(FinetuningTask):
    """Cross-entropy over the labels. Examples are `LabelledText`s.

    A prediction is a dictionary of the "label" and the "probabilities" of all labels by name.

    Args:
        config: Hyper-parameters.
        labels: The labels in the order of their ids.
        files: What the columns of the files mean, and how the task is measured.
        class_weights: How much an example of each label counts in training; None for 1 each.
    """

    metric_names = ("accuracy",)
    setting_types = MappingProxyType({"labels": list[str], **COLUMN_TYPES})

    def __init__(
        self,
        config: AlbertConfig,
        labels: tuple[str, ...] = ("0", "1"),
        files: DataFiles = DATASETS["tsv"],
        class_weights: tuple[float, ...] | None = None,
    ):
        self.config, self.labels = config, tuple(labels)
        self.selection_metric = files.metrics[0]
        self.scores_predictions = set(files.metrics) != {"accuracy"}
        self._class_weights = class_weights
        self.loss_coefficients = {"classification_loss": 1.0}
        self._files = files
        self.may_hide_pieces = files.may_hide_pieces

    def make_model(self, **options):
        """Returns an `AlbertForSequenceClassification`; see `Objective`."""
        return AlbertForSequenceClassification(self.config, len(self.labels), **options)

    def batch_spec(self, max_seq_length):
        """Returns the encoder's inputs and `label_ids`; see `Objective`."""
        return {
            **encoder_batch_spec(max_seq_length),
            "label_ids": tf.TensorSpec([None], tf.int32),
            "example_weights": tf.TensorSpec([None], tf.float32),
        }

    def loss_weights(self, batch):
        """Returns the number of examples, each weighted by its label; see `Objective`."""
        return {"classification_loss": tf.reduce_sum(self._weights(batch))}

    def compute(self, batch, training, dropout_seed, model):
        """Returns loss and accuracy; see `Objective`."""
        logits = model(batch, training=training, dropout_seed=dropout_seed)["logits"]
        loss, accuracy = weighted_cross_entropy(logits, batch["label_ids"], batch["example_weights"])
        if training and self._class_weights is not None:
            loss, _ = weighted_cross_entropy(logits, batch["label_ids"], self._weights(batch))
        return {"classification_loss": loss, "accuracy": accuracy}

    def _weights(self, batch):
        """Returns what each example counts in the loss, float32 [B]."""
        if self._class_weights is None:
            return batch["example_weights"]
        return batch["example_weights"] * tf.gather(tf.constant(self._class_weights), batch["label_ids"])

    def flops(self, batch_spec):
        """Returns the operations of a step; see `Objective`."""
        products = classifier_products(self.config, batch_spec["input_ids"].shape[1], len(self.labels))
        return TRAINING_FLOPS_PER_PRODUCT * batch_sizes(batch_spec).examples * products

    def read(self, path, needs_labels=True):
        """Returns the rows of a file as `LabelledText`s; see `FinetuningTask`."""
        examples = read_examples(path, self._files, needs_labels)
        return check_known_labels(path, examples, self.labels, needs_labels, self._files.on_bad_row)

    def encode(self, examples, tokenizer, max_seq_length):
        """Returns the encoder's inputs and `label_ids`, 0 where there is no label; see `FinetuningTask`."""
        ids = {label: index for index, label in enumerate(self.labels)}
        label_ids = np.array([ids.get(example.label, 0) for example in examples], np.int32)
        return {**encode_and_count_cut(tokenizer, examples, max_seq_length), "label_ids": label_ids}

    def outputs(self, batch, model):
        """Returns `probabilities` float32 [B, labels]; see `FinetuningTask`."""
        return {"probabilities": tf.nn.softmax(model(batch, training=False)["logits"])}

    def predict(self, examples, features, outputs):
        """Returns the most probable label of each text, and all probabilities; see `FinetuningTask`."""
        return [
            {"label": self.labels[row.argmax()], "probabilities": dict(zip(self.labels, map(float, row)))}
            for row in outputs["probabilities"]
        ]

    def write_predictions(self, path, examples, predictions):
        """Writes a line for each example: text(s), the label given (empty if none), predicted label, probabilities."""
        has_pair = examples[0].text_pair is not None
        names = ["text", *(["text_pair"] if has_pair else []), "label", "prediction"]
        lines = [[*names, *(f"p({label})" for label in self.labels)]]
        for example, prediction in zip(examples, predictions):
            texts = [example.text, example.text_pair] if has_pair else [example.text]
            probabilities = (f"{value:.4f}" for value in prediction["probabilities"].values())
            lines.append([*texts, example.label or "", prediction["label"], *probabilities])
        write_rows(path, lines)

    def score(self, examples, predictions):
        """Returns the measures of the data set, by name; see `FinetuningTask`."""
        truth, found = [example.label for example in examples], [prediction["label"] for prediction in predictions]
        return {name: LABEL_METRICS[name](truth, found, self.labels) for name in self._files.metrics}

    def blind_scores(self, examples):
        """Returns what the most frequent label scores; see `FinetuningTask`."""
        counts = collections.Counter(example.label for example in examples)
        label = min(counts, key=lambda each: (-counts[each], self.labels.index(each)))
        scores = self.score(examples, [{"label": label}] * len(examples))
        return f"always {label!r}, the most frequent label", {"accuracy": counts[label] / len(examples), **scores}

    def reports(self):
        """Returns the list of mistakes and the plot of which labels are taken for which; see `FinetuningTask`."""
        if importlib.util.find_spec("matplotlib") is None:
            return {ERRORS_FILE: write_errors}
        return {
            ERRORS_FILE: write_errors,
            CONFUSION_FILE: functools.partial(plot_confusion_matrix, labels=self.labels),
        }

    def doubts(self, examples, predictions):
        """Returns a line if all examples are given one label, though they have several; see `FinetuningTask`."""
        found = {prediction["label"] for prediction in predictions}
        if len(found) > 1 or len({example.label for example in examples}) < 2:
            return []
        return [
            f"all {len(examples):,} examples are given the label {found.pop()}, as if nothing had been learnt; "
            "try a lower --learning_rate, more steps or --class_weights=balanced"
        ]

    def describe(self, path, examples, features):
        """Returns how often each label occurs, and warns of what looks mistyped; see `label_report`."""
        return label_report(path, examples, self.labels)

    def text_and_label(self, example):
        """Returns the text, or both, and the label; see `FinetuningTask`."""
        return example.texts, example.label

    def examples_of(self, inputs):
        """Returns texts, or pairs of them, as `LabelledText`s; see `FinetuningTask`."""
        return unlabelled_examples(inputs, self.reads_pairs)

    @classmethod
    def from_settings(cls, config, settings):
        """Returns the task of a run; see `FinetuningTask`."""
        return cls(config, tuple(settings["labels"]), files_of(settings))

    @property
    def reads_pairs(self) -> bool:
        """Whether examples are pairs of texts."""
        return self._files.text_pair_column is not None

    @property
    def input_fields(self) -> tuple[str, ...]:
        """A text, or two; see `FinetuningTask`."""
        return ("text", "text_pair") if self.reads_pairs else ("text",)

    @property
    def input_columns(self) -> tuple[str, ...]:
        """The columns of the files; see `FinetuningTask`."""
        return self._files.text_columns

    def settings(self):
        """Returns labels and columns; see `FinetuningTask`."""
        return {**{name: getattr(self._files, name) for name in COLUMNS}, "labels": list(self.labels)}
