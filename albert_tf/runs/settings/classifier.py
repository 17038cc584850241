"""The settings of `run_classifier.py`: labels, several labels or numbers of texts and of pairs."""

import dataclasses
import math
import typing

from albert_tf.base.errors import InputError
from albert_tf.base.settings import RARE, changed, place, setting
from albert_tf.config import POOLING_CHOICES, AlbertConfig
from albert_tf.finetuning import Classification, FinetuningTask, MultiLabel, Regression, Vectors
from albert_tf.finetuning.datasets import COLUMNS, DATASETS, DataFiles, find_files
from albert_tf.finetuning.defaults import check_pooling_sees_the_text, default_pooling
from albert_tf.finetuning.metrics import LABEL_METRICS, METRICS, SCORE_METRICS, check_metrics
from albert_tf.finetuning.tasks.labelled_text import (
    LabelSetReader,
    balanced_class_weights,
    check_labels,
    labels_of,
    labels_of_sets,
    read_examples,
)
from albert_tf.finetuning.tasks.multi_label import METRICS as METRICS_OF_SETS
from albert_tf.finetuning.tasks.vectors import LEARNS_FROM
from albert_tf.reading.values import columns_of
from albert_tf.runs.settings.finetuning import TRAIN, FinetuningSettings, bad_rows, linear_baselines


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassifierSettings(FinetuningSettings):
    """Settings of classification and regression: the label, and the files."""

    command = "run_classifier"

    task_name: str | None = setting(
        None,
        "A public data set with its files as they are published; or tsv, csv, jsonl or parquet: train, dev and test "
        "with this ending; or datasets: a folder that the library of this name has saved.",
        choices=tuple(sorted(DATASETS)),
        in_python=False,
    )
    data_dir: str | None = place(None, "Folder of the task's files.")
    text_column: str | None = setting(
        None,
        "Column of the text, or title,text, joined; by default document.",
        in_python=False,
        aliases=("text_fields",),
    )
    text_pair_column: str | None = setting(None, "Column of a second text.", in_python=False)
    label_column: str | None = setting(
        None,
        "Column of the label; by default label. With --multi_label also a,b: of each label a column of 1 and 0.",
        in_python=False,
    )
    labels: tuple[str, ...] | None = setting(
        None, "The labels, in order; by default the task's, or those of the training file."
    )
    regression: bool | None = setting(
        None, "Learn numbers, not labels; by default as the data set requires.", in_python=False
    )
    vectors: str | None = setting(
        None,
        "Learn a vector for each text, so that the cosine of two says how alike they are: from numbers, the labels of "
        "pairs; from pairs that belong together, without labels; or from texts, each told from all others.",
        choices=tuple(LEARNS_FROM),
        in_python=False,
    )
    multi_label: bool = setting(
        False, "A text may have several labels, or none: each label is predicted separately.", in_python=False
    )
    label_separator: str = setting(
        ",",
        "With --multi_label: the separator between the labels of a text; lists in JSON need none.",
        group=RARE,
        in_python=False,
    )
    metrics: tuple[str, ...] | None = setting(
        None,
        f"Measures, the first of which chooses the best checkpoint: {', '.join(METRICS)}; with --multi_label "
        f"{', '.join(METRICS_OF_SETS)}.",
        is_free_in_use=True,
    )
    class_weights: tuple[str, ...] | None = setting(
        None, "How much an example of each label counts in training, or balanced; 1 each if left out.", group=RARE
    )
    pooling: str | None = setting(
        None,
        "What the label is computed from: first, the state of [CLS]; mean, that of all pieces; last, that of the last "
        "[SEP]; aligned, pieces of a pair compared with similar ones of the other text. By default the model's own, "
        "last in causal models, and in small models aligned for pairs.",
        choices=tuple(POOLING_CHOICES),
        group=RARE,
        search=True,
    )
    doc_stride: int | None = setting(
        None,
        "Read texts longer than --max_seq_length in windows that begin this many pieces apart, and average their "
        "logits; by default texts are cut.",
        least=1,
        group=RARE,
        search=True,
    )
    on_bad_row: str | None = bad_rows("Rows that can't be used: stop, or leave them out and count them.", None)
    max_seq_length: int | None = changed(
        help="Longest input in pieces; longer texts are cut. By default 99.5% of the texts fit, if the model reads so "
        "much.",
    )
    baselines: bool = linear_baselines()

    def data_files(self) -> DataFiles:
        """Returns the data set's files with what the settings say about them."""
        self.require("task_name", "data_dir")
        names = (*COLUMNS, "labels", "metrics", "on_bad_row")
        given = {name: getattr(self, name) for name in names if getattr(self, name)}
        if "labels" in given:
            check_labels(given["labels"], "`labels`")
        files = DATASETS[self.task_name]
        if self.vectors:
            self._check_vectors()
        if self.multi_label:
            return self._files_of_label_sets(dataclasses.replace(files, **given))
        is_regression = True if self.vectors == "numbers" else self.regression
        if is_regression is not None and is_regression != files.is_regression:
            metrics = ("pearson", "spearman") if is_regression else ("accuracy",)
            files = dataclasses.replace(files, is_regression=is_regression, metrics=metrics)
        check_metrics(given.get("metrics", files.metrics), SCORE_METRICS if files.is_regression else LABEL_METRICS)
        return dataclasses.replace(files, **given)

    def _check_vectors(self):
        """Checks that no setting says how one text is read, where two are compared, or what else is learnt."""
        for name in ("multi_label", "class_weights", "labels", "pooling", "doc_stride", "teacher"):
            if getattr(self, name):
                raise InputError(f"`{name}` can't be used with `vectors`; leave one of them out")

    def _files_of_label_sets(self, files):
        """Returns the files where a text may have several labels, which settings of one label don't go with."""
        for name in ("regression", "class_weights"):
            if getattr(self, name):
                raise InputError(f"`{name}` is for texts with one label each, and can't be used with `multi_label`")
        if self.label_separator.strip() != self.label_separator or not self.label_separator:
            raise InputError("`label_separator` must be characters without spaces around them, such as , or |")
        metrics = self.metrics or tuple(METRICS_OF_SETS)
        for name in metrics:
            if name not in METRICS_OF_SETS:
                raise InputError(f"`metrics={name}` is not a metric of `multi_label`: {', '.join(METRICS_OF_SETS)}")
        return dataclasses.replace(files, metrics=metrics, is_regression=False)

    def find_paths(self, part):
        files = self.data_files()
        return find_files(self.data_dir, getattr(files, part))

    def completed(self, config, is_known):
        """Returns settings that say what the label is read off."""
        if self.vectors:
            return self
        check_pooling_sees_the_text(config, self.pooling)
        if self.pooling is not None:
            return self
        if not self.do_train:  # a head that is there reads what it was trained on
            return self.changed(pooling=config.classifier_pooling)
        return self.changed(pooling=default_pooling(config, self.data_files().text_pair_column is not None))

    def make_task(self, config: AlbertConfig) -> FinetuningTask:
        """Returns the task; its labels are those set, the run's or the data set's, or else the training file's."""
        files = self.data_files()
        if self.vectors:
            return Vectors(config, files, self.vectors)
        config = config.replace(classifier_pooling=self.pooling)
        if self.multi_label:
            labels = files.labels
            if not labels:
                examples = read_examples(self.find_paths(TRAIN), files, True, LabelSetReader(self.label_separator))
                labels = labels_of_sets(examples, columns_of(files.label_column, ()))
            return MultiLabel(config, labels, files, self.label_separator, self.doc_stride)
        if files.is_regression:
            return Regression(config, files, self.doc_stride)
        train_examples = None
        if not files.labels or (self.do_train and self.class_weights == ("balanced",)):
            train_examples = read_examples(self.find_paths(TRAIN), files, needs_label=True)
        labels = files.labels or labels_of(train_examples)
        weights = self._weights_of(labels, train_examples)
        return Classification(config, labels, files, weights, self.doc_stride)

    def _weights_of(self, labels, train_examples) -> typing.Any:
        """Returns the weight of each label in the loss, None where all are 1."""
        given = self.class_weights
        if not given or not self.do_train:
            return None
        if given == ("balanced",):
            return balanced_class_weights(labels, train_examples)
        try:
            weights = tuple(map(float, given))
        except ValueError:
            weights = ()
        if len(weights) != len(labels) or not all(0 < weight < math.inf for weight in weights):
            raise InputError(
                f"`class_weights={','.join(given)}` must be balanced, or a number above 0 for each of the "
                f"{len(labels)} labels {', '.join(labels)}"
            )
        return weights
