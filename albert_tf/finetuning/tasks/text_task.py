"""The common part of tasks whose examples are texts, or pairs of them, each with a label, several, or a number."""

import abc
import collections.abc
import dataclasses
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError, listed
from albert_tf.base.texts import mean_over_windows
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.datasets import COLUMN_TYPES, COLUMNS, DATASETS, DataFiles, files_of
from albert_tf.finetuning.linear_models import MOST_CHARACTERS, LinearModel
from albert_tf.finetuning.soft_labels import TAUGHT
from albert_tf.finetuning.task import Features, FinetuningTask, write_errors
from albert_tf.finetuning.tasks.labelled_text import (
    TEXT_INDICES,
    UNKNOWN_LABELS,
    WINDOW_WEIGHTS,
    LabelledText,
    check_labels,
    describe_windows,
    encode_and_count_cut,
    encode_in_windows,
    line_names,
    read_examples,
    unlabelled_examples,
)
from albert_tf.modeling import AlbertForSequenceClassification
from albert_tf.objectives.objective import classifier_products, encoder_batch_spec
from albert_tf.reading.rows import BadRows, write_rows
from albert_tf.reading.values import known_label

_PREMISE_AND_HYPOTHESIS = DataFiles(text_column="premise", text_pair_column="hypothesis")


class LabelledTextTask(FinetuningTask):
    """A task over `LabelledText`s, with `num_outputs` numbers of the model for each text.

    Of a text too long for one sequence a window begins every `doc_stride` tokens; its logits are the mean of its
    windows'. None cuts such texts. InputError if pairs are to be read in windows, or `doc_stride` is no whole number
    from 1.

    Attributes:
        label_name: The feature of the labels, of `label_type`, and `label_shape` for one text.
        activations: Functions from logits to probabilities, in a graph and of arrays; none where numbers are learnt.
        read_labels: As for `read_examples`.
    """

    setting_types = COLUMN_TYPES
    label_shape: tuple[int, ...] = ()
    activations: tuple[collections.abc.Callable, ...] = ()
    read_labels = None
    loss_name: str
    label_name: str
    label_type: tf.DType

    def __init__(self, config: AlbertConfig, files: DataFiles, num_outputs: int, doc_stride: int | None = None):
        if doc_stride is not None and (type(doc_stride) is not int or doc_stride < 1):
            raise InputError(f"`doc_stride` must be a whole number from 1. Received: {doc_stride!r}")
        if doc_stride is not None and files.text_pair_column is not None:
            raise InputError(f"`doc_stride={doc_stride}` is for single texts; of pairs the longer text is cut")
        self.config, self._files, self._num_outputs = config, files, num_outputs
        self.doc_stride = doc_stride
        self.loss_coefficients = {self.loss_name: 1.0}
        self.selection_metric = files.metrics[0]
        self.may_hide_pieces = files.may_hide_pieces

    @abc.abstractmethod
    def reason_against(self, label: typing.Any) -> str | None:
        """Returns why a label that was read can't be used, None if it can."""

    @abc.abstractmethod
    def label_values(self, examples: list[LabelledText]) -> np.ndarray:
        """Returns the labels of T texts as numbers, `label_type` [T] or [T, labels]; 0 for an unknown one."""

    @abc.abstractmethod
    def written_prediction(self, prediction: dict[str, typing.Any]) -> str:
        """Returns a prediction as files hold it."""

    @abc.abstractmethod
    def predict_linearly(self, train: list[LabelledText], dev: list[LabelledText]) -> list[dict[str, typing.Any]]:
        """Returns a linear model's predictions for `dev`."""

    def read(self, path, needs_labels=True):
        bad_rows, found = BadRows(self._files.on_bad_row), []
        for example in map(self._as_known, read_examples(path, self._files, needs_labels, self.read_labels)):
            is_open = not needs_labels and example.label in (None, *UNKNOWN_LABELS)
            reason = None if is_open else self.reason_against(example.label)
            if reason is None:
                found.append(example)
            elif needs_labels:
                bad_rows.refuse(f"{example.path or path}, line {example.line}: {reason}")
            else:  # each text to predict is to have an answer
                raise InputError(f"{example.path or path}, line {example.line}: {reason}; correct the row")
        bad_rows.warn()
        if not found:
            raise InputError(f"{path} has no row with a label that can be used; the last one: {reason}")
        return found

    def _as_known(self, example):
        """Returns an example whose labels are written as the task's, where a file writes 1.0 for 1, or 1 for 1.0."""
        label = example.label
        if not label or not self.labels:
            return example
        if isinstance(label, tuple):
            return dataclasses.replace(example, label=tuple(known_label(each, self.labels) for each in label))
        return dataclasses.replace(example, label=known_label(label, self.labels))

    def read_unlabelled(self, path):
        # Whatever stands where labels do in other files is none of our business.
        return read_examples(path, dataclasses.replace(self._files, label_column=""), needs_label=False)

    def differs_from(self, other):
        if set(other.labels) != set(self.labels):
            return f"has the labels {listed(other.labels)}, but here they are {listed(self.labels)}"
        own, others = len(self.input_fields), len(other.input_fields)
        return None if own == others else f"reads {others} texts at once, and not {own}"

    def make_model(self, **options):
        return AlbertForSequenceClassification(self.config, self._num_outputs, **options)

    def batch_spec(self, max_seq_length):
        weights = ("example_weights",) if self.doc_stride is None else ("example_weights", WINDOW_WEIGHTS)
        return {
            **encoder_batch_spec(max_seq_length),
            self.label_name: tf.TensorSpec([None, *self.label_shape], self.label_type),
            **dict.fromkeys(weights, tf.TensorSpec([None], tf.float32)),
            **self.taught_spec(self._num_outputs),
        }

    def weights(self, batch):
        """Returns 1 for each example, or of a text in windows 1 for all of them together, float32 [B]."""
        weights = batch["example_weights"]
        return weights if self.doc_stride is None else weights * batch[WINDOW_WEIGHTS]

    def products(self, batch_spec):
        return classifier_products(self.config, batch_spec["input_ids"].shape[1], self._num_outputs)

    def encode(self, examples, tokenizer, max_seq_length):
        """Returns the encoder's inputs, a row for each text or window, and the labels, 0 where there is none."""
        if self.doc_stride is None:
            features = encode_and_count_cut(tokenizer, examples, max_seq_length)
        else:
            texts = [example.text for example in examples]
            features = encode_in_windows(tokenizer, texts, max_seq_length, self.doc_stride)
        return {**features, self.label_name: self.of_rows(self.label_values(examples), features)}

    def of_rows(self, values: np.ndarray, features: Features) -> np.ndarray:
        """Returns values of each text [T, ...] for each of the N rows that `encode` returned."""
        return values if self.doc_stride is None else values[features[TEXT_INDICES]]

    def of_texts(self, values: np.ndarray, features: Features) -> np.ndarray:
        """Returns values of N rows [N, ...] for each text: as they are, or the mean over its windows."""
        return values if self.doc_stride is None else mean_over_windows(values, features[TEXT_INDICES])

    def soft_features(self, examples, features, teacher):
        return {TAUGHT: self.of_rows(super().soft_features(examples, features, teacher)[TAUGHT], features)}

    def outputs(self, batch, model):
        """Returns `probabilities` float32 [B, labels], or `logits` where those of windows are averaged."""
        logits = model(batch, training=False)["logits"]
        return {"probabilities": self.activations[0](logits)} if self.doc_stride is None else {"logits": logits}

    def probabilities(self, features: Features, outputs: Features) -> np.ndarray:
        """Returns the probabilities of each text's labels, float32 [T, labels]; arguments as for `predict`."""
        if self.doc_stride is None:
            return outputs["probabilities"]
        return self.activations[1](self.of_texts(outputs["logits"], features))

    def linear_model(self):
        """Returns one of character n-grams; the more labels the fewer examples, as each label takes its time."""
        most = 2 * MOST_CHARACTERS // len(self.labels) if self.labels else MOST_CHARACTERS
        return LinearModel("a linear model on character n-grams", self.predict_linearly, most)

    def texts_of(self, example):
        return tuple(example.columns.values())

    def describe_cuts(self, features, max_seq_length, where=""):
        if self.doc_stride is None:
            return super().describe_cuts(features, max_seq_length, where)
        return describe_windows(features[TEXT_INDICES], where)

    def limits_elsewhere(self):
        stride = self.doc_stride
        windows = f"transformers has no windows (doc_stride={stride}): there only the first one is read"
        return super().limits_elsewhere() + ([] if stride is None else [windows])

    def write_predictions(self, path, examples, predictions):
        """Writes a line for each example: text(s), label (empty if none), prediction, probability of each label."""
        columns = [*examples[0].columns, "label", "prediction", *(f"p({label})" for label in self.labels)]
        lines = []
        for example, prediction in zip(examples, predictions):
            shares = (f"{share:.4f}" for share in prediction.get("probabilities", {}).values())
            answers = self.written_label(example.label), self.written_prediction(prediction)
            lines.append([*example.columns.values(), *answers, *shares])
        write_rows(path, [columns, *lines])

    def _write_errors(self, path, examples, predictions):
        """Writes a line for each mistake, the worst first: where the text is, what `mistake` says, and the text(s)."""
        found = []
        for example, prediction, number in zip(examples, predictions, line_names(examples)):
            if mistake := self.mistake(example, prediction):
                how_bad, line = mistake
                found.append((how_bad, [number, *line, *example.columns.values()]))
        write_errors(path, ["line", *self.error_columns, *examples[0].columns], found)

    def text_and_label(self, example):
        return example.texts, example.label if self.labels else ""

    def written_label(self, label: typing.Any) -> str:
        """Returns an example's label as files of predictions hold it, "" for none."""
        return label or ""

    def examples_of(self, inputs):
        return unlabelled_examples(inputs, len(self.input_fields) > 1)

    @property
    def input_fields(self) -> tuple[str, ...]:
        return ("text", "text_pair")[: len(self._files.text_columns)]

    @property
    def input_columns(self) -> tuple[str, ...]:
        return self._files.text_columns

    @classmethod
    def from_head(cls, config, labels, gives_probability):
        check_labels(labels, "its labels")
        # Formats of others don't say whether a text or two are read; that one follows from another takes two.
        reads_pairs = any(label.lower() == "entailment" for label in labels)
        return cls(config, labels=labels, files=_PREMISE_AND_HYPOTHESIS if reads_pairs else DATASETS["tsv"])

    @classmethod
    def from_settings(cls, config, settings, **own):
        labels = {"labels": tuple(settings["labels"])} if "labels" in cls.setting_types else {}
        return cls(config, files=files_of(settings), doc_stride=settings.get("doc_stride"), **labels, **own)

    def settings(self):
        stride = {} if self.doc_stride is None else {"doc_stride": self.doc_stride}
        labels = {"labels": list(self.labels)} if self.labels else {}
        return {**{name: getattr(self._files, name) for name in COLUMNS}, **stride, **labels}
