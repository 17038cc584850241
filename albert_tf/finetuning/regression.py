"""Fine-tuning to give a text, or a pair of texts, a number, such as how alike two sentences are (GLUE's STS-B)."""

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.finetuning.datasets import COLUMN_TYPES, COLUMNS, DATASETS, DataFiles, files_of
from albert_tf.finetuning.labelled_text import (
    UNKNOWN_LABELS,
    LabelledText,
    encode_and_count_cut,
    line_names,
    read_examples,
    unlabelled_examples,
)
from albert_tf.finetuning.metrics import SCORE_METRICS
from albert_tf.finetuning.task import ERRORS_FILE, FinetuningTask
from albert_tf.modeling import AlbertForSequenceClassification
from albert_tf.objectives.flops import TRAINING_FLOPS_PER_PRODUCT, classifier_products
from albert_tf.objectives.objective import batch_sizes, encoder_batch_spec
from albert_tf.rows.bad_rows import BadRows
from albert_tf.rows.row_file import write_rows


class Regression(FinetuningTask):
    """The squared error of a number. Examples are `LabelledText`s whose label is one.

    A prediction is a dictionary of the "score".

    Args:
        config: Hyper-parameters.
        files: What the columns of the files mean, and how the task is measured.
    """

    scores_predictions = True
    setting_types = COLUMN_TYPES
    predicts_numbers = True

    def __init__(self, config: AlbertConfig, files: DataFiles = DATASETS["sts-b"]):
        self.config, self._files = config, files
        self.loss_coefficients = {"squared_error": 1.0}
        self.selection_metric = files.metrics[0]
        self.may_hide_pieces = files.may_hide_pieces

    def make_model(self, **options):
        """Returns an `AlbertForSequenceClassification` with one output; see `Objective`."""
        return AlbertForSequenceClassification(self.config, 1, **options)

    def batch_spec(self, max_seq_length):
        """Returns the encoder's inputs and `label_values`; see `Objective`."""
        return {
            **encoder_batch_spec(max_seq_length),
            "label_values": tf.TensorSpec([None], tf.float32),
            "example_weights": tf.TensorSpec([None], tf.float32),
        }

    def loss_weights(self, batch):
        """Returns the number of examples; see `Objective`."""
        return {"squared_error": tf.reduce_sum(batch["example_weights"])}

    def compute(self, batch, training, dropout_seed, model):
        """Returns the squared error; see `Objective`."""
        scores = model(batch, training=training, dropout_seed=dropout_seed)["logits"][:, 0]
        weights = batch["example_weights"]
        errors = tf.math.squared_difference(scores, batch["label_values"])
        return {"squared_error": (tf.reduce_sum(errors * weights), tf.reduce_sum(weights))}

    def flops(self, batch_spec):
        """Returns the operations of a step; see `Objective`."""
        products = classifier_products(self.config, batch_spec["input_ids"].shape[1], 1)
        return TRAINING_FLOPS_PER_PRODUCT * batch_sizes(batch_spec).examples * products

    def read(self, path, needs_labels=True):
        """Returns the rows of a file as `LabelledText`s; see `FinetuningTask`."""
        bad_rows = BadRows(self._files.on_bad_row if needs_labels else "fail")
        found = []
        for example in read_examples(path, self._files, needs_labels):
            if _number(example.label) is None and (needs_labels or example.label not in (None, *UNKNOWN_LABELS)):
                bad_rows.refuse(f"{path}, line {example.line}: {example.label!r} is not a number")
            else:
                found.append(example)
        bad_rows.warn()
        if not found:
            raise InputError(f"{path} has no row whose label is a number")
        return found

    def encode(self, examples, tokenizer, max_seq_length):
        """Returns the encoder's inputs and `label_values`, 0 where there is no label; see `FinetuningTask`."""
        values = np.array([_number(example.label) or 0.0 for example in examples], np.float32)
        return {**encode_and_count_cut(tokenizer, examples, max_seq_length), "label_values": values}

    def outputs(self, batch, model):
        """Returns `scores` float32 [B]; see `FinetuningTask`."""
        return {"scores": model(batch, training=False)["logits"][:, 0]}

    def predict(self, examples, features, outputs):
        """Returns the score of each text; see `FinetuningTask`."""
        return [{"score": float(score)} for score in outputs["scores"]]

    def write_predictions(self, path, examples, predictions):
        """Writes a line for each example: text(s), the label given (empty if none), the score."""
        has_pair = examples[0].text_pair is not None
        lines = [["text", *(["text_pair"] if has_pair else []), "label", "prediction"]]
        for example, prediction in zip(examples, predictions):
            texts = [example.text, example.text_pair] if has_pair else [example.text]
            lines.append([*texts, example.label or "", f"{prediction['score']:.4f}"])
        write_rows(path, lines)

    def score(self, examples, predictions):
        """Returns the measures of the data set, by name; see `FinetuningTask`."""
        truth = np.array([_number(example.label) for example in examples])
        found = np.array([prediction["score"] for prediction in predictions])
        return {name: SCORE_METRICS[name](truth, found) for name in self._files.metrics}

    def blind_scores(self, examples):
        """Returns what one number for all scores: of no correlation is one; see `FinetuningTask`."""
        truth = np.array([_number(example.label) for example in examples])
        constant = np.full(len(truth), truth.mean())
        # The correlation with a constant is not defined, and as good as none.
        scores = {name: SCORE_METRICS[name](truth, constant) for name in self._files.metrics}
        return "always the mean", {"squared_error": float(truth.var()), **scores}

    def reports(self):
        """Returns the list of differences; see `FinetuningTask`."""
        return {ERRORS_FILE: write_differences}

    def describe(self, path, examples, features):
        """Returns the range of the numbers; see `FinetuningTask`."""
        values = [_number(example.label) for example in examples]
        mean = sum(values) / len(values)
        return [f"{len(examples):,} examples in {path}: from {min(values):g} to {max(values):g}, on average {mean:.2f}"]

    def text_and_label(self, example):
        """Returns the text, or both, and no label, as each may have another number; see `FinetuningTask`."""
        return example.texts, ""

    def examples_of(self, inputs):
        """Returns texts, or pairs of them, as `LabelledText`s; see `FinetuningTask`."""
        return unlabelled_examples(inputs, self.reads_pairs)

    @classmethod
    def from_settings(cls, config, settings):
        """Returns the task of a run; see `FinetuningTask`."""
        return cls(config, files_of(settings))

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
        """Returns the columns; see `FinetuningTask`."""
        return {name: getattr(self._files, name) for name in COLUMNS}


def write_differences(path: str, examples: list[LabelledText], predictions: list[dict]) -> None:
    """Writes a line for each text: its number, the one found, how much more that is; the largest difference first.

    Args:
        path: The file.
        examples: With their labels.
        predictions: "score" of each.
    """
    has_pair = examples[0].text_pair is not None
    differences = [found["score"] - _number(example.label) for example, found in zip(examples, predictions)]
    rows = [["line", "label", "prediction", "difference", "text", *(["text_pair"] if has_pair else [])]]
    lines = line_names(examples)
    for row in np.argsort(-np.abs(differences), kind="stable"):
        example, texts = examples[row], [examples[row].text, *([examples[row].text_pair] if has_pair else [])]
        numbers = (f"{predictions[row]['score']:.4f}", f"{differences[row]:+.4f}")
        rows.append([lines[row], example.label, *numbers, *texts])
    write_rows(path, rows)


def _number(text):
    """Returns a finite number as text, None for anything else."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if np.isfinite(value) else None
