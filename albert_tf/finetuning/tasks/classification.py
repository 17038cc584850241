"""Fine-tuning to give a text, or a pair of texts, one of several labels (original run_classifier.py)."""

import collections
import collections.abc
import functools
import importlib.util
import os
from types import MappingProxyType

import numpy as np
import tensorflow as tf

from albert_tf.asking.answers import LabelAnswer
from albert_tf.base.errors import listed, quote
from albert_tf.base.files import replacing
from albert_tf.base.texts import softmax
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.datasets import COLUMN_TYPES, DATASETS, DataFiles
from albert_tf.finetuning.linear_models import classify
from albert_tf.finetuning.metrics import LABEL_METRICS
from albert_tf.finetuning.soft_labels import has_label, labelled_cross_entropy, log_probabilities
from albert_tf.finetuning.task import OF_TEXT, TaskKind
from albert_tf.finetuning.tasks.labelled_text import LabelledText, label_report
from albert_tf.finetuning.tasks.text_task import LabelledTextTask

# Labels of plots in Korean, without empty boxes where no font has their letters; needs matplotlib.

_HANGUL_FONTS = ("NanumGothic", "Noto Sans CJK KR", "Noto Sans KR", "Malgun Gothic", "AppleGothic", "UnDotum")
_HANGUL_FILES = ("nanumgothic.ttf", "notosanscjk-regular.ttc", "notosanskr-regular.otf", "malgun.ttf", "undotum.ttf")


def hangul_font() -> str | None:
    """Returns the name of an installed font that has Hangul, None if there is none."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    installed = {font.name for font in fontManager.ttflist}
    if not installed.intersection(_HANGUL_FONTS):  # a notebook may have installed one after matplotlib's import
        for path in findSystemFonts():
            if os.path.basename(path).lower() in _HANGUL_FILES:
                fontManager.addfont(path)
        installed = {font.name for font in fontManager.ttflist}
    return next((name for name in _HANGUL_FONTS if name in installed), None)


def drawable(
    labels: collections.abc.Sequence[str], name: str = "label"
) -> tuple[collections.abc.Sequence[str], str | None]:
    """Returns labels, or `name` and a number where no font has their letters, and the font for them, None for any."""
    if all(label.isascii() for label in labels):
        return labels, None
    font = hangul_font()
    return (labels, font) if font else ([f"{name} {number}" for number in range(len(labels))], None)


# Which labels a classifier takes for which, as a plot.

CONFUSION_FILE = "confusion_matrix.png"

# Of a thousand labels a plot in full size would take more pixels than there can be, and all memory before.
_LARGEST_INCHES, _POINTS_PER_INCH = 30, 72


def confusion_matrix(truth: list[str], found: list[str], labels: tuple[str, ...]) -> np.ndarray:
    """Returns how many examples of each label (row) were given each label (column), int [labels, labels]."""
    rows = {label: index for index, label in enumerate(labels)}
    counts = np.zeros([len(labels)] * 2, int)
    np.add.at(counts, ([rows[label] for label in truth], [rows[label] for label in found]), 1)
    return counts


def f1_of_each(counts: np.ndarray) -> np.ndarray:
    """Returns the F1 of each label by a confusion matrix, 0 where it is neither true nor found: float64 [labels]."""
    return 2 * counts.diagonal() / np.maximum(1, counts.sum(axis=0) + counts.sum(axis=1))


def plot_confusion_matrix(path: str, examples: list[LabelledText], predictions: list[dict], labels) -> None:
    """Draws the confusion matrix as a PNG, each row in shares of its label, with its F1; needs matplotlib."""
    from matplotlib.figure import Figure  # optional

    truth, found = [example.label for example in examples], [prediction["label"] for prediction in predictions]
    counts = confusion_matrix(truth, found, labels)
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    size = min(2.5 + 0.55 * len(labels), _LARGEST_INCHES)
    figure = Figure(figsize=(size + 1, size), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names, font = drawable(labels)
    if names != labels:
        legend = ", ".join(f"{name} is {label}" for name, label in zip(names, labels))
        how = "install one, such as NanumGothic (on Debian and Ubuntu: apt install fonts-nanum)"
        print(f"warning: no font with Hangul is installed; {how}; in the plot {legend}", flush=True)
    # Dollar signs begin no formula. Where labels are many, their letters are small.
    style = {"fontfamily": font, "parse_math": False, "fontsize": min(10, _POINTS_PER_INCH * size / len(labels))}
    axes.set_xticks(range(len(labels)), names, rotation=45, ha="right", **style)
    axes.set_yticks(
        range(len(labels)), [f"{name}  F1 {f1:.2f}" for name, f1 in zip(names, f1_of_each(counts))], **style
    )
    axes.set(xlabel="prediction", ylabel="label")
    if len(labels) <= 20:
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, f"{count:,}", ha="center", va="center", color=color, fontsize="small")
    figure.colorbar(image, label="share of the label's examples")
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)


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
