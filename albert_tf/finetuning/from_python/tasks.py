"""What examples of Python values are learnt by."""

import dataclasses
import os
import typing

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.finetuning import multi_label
from albert_tf.finetuning.classification import Classification
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.finetuning.defaults import (
    check_pooling_sees_the_text,
    default_character_ngrams,
    default_pooling,
    default_question_alignment,
)
from albert_tf.finetuning.entities import Entities
from albert_tf.finetuning.entities.decoding import BEST_SEQUENCE
from albert_tf.finetuning.entities.tagged_text import types_of
from albert_tf.finetuning.from_python.examples import GivenData
from albert_tf.finetuning.label_sets import LabelSetReader
from albert_tf.finetuning.labelled_text import read_examples
from albert_tf.finetuning.labels import labels_of, labels_of_sets
from albert_tf.finetuning.metrics import SCORE_METRICS, check_metrics
from albert_tf.finetuning.multi_label import MultiLabel
from albert_tf.finetuning.question_answering import ConditionalQuestionAnswering, QuestionAnswering
from albert_tf.finetuning.regression import Regression
from albert_tf.finetuning.task import FinetuningTask
from albert_tf.training.run_folder.guard import FOUND_AT
from albert_tf.training.run_folder.identity import absolute_path

# What the command is told to be between labels; ours are lists, which need none.
_SEPARATOR = ","


def make_task(
    data: GivenData, path: str, config: AlbertConfig, doc_stride: int | None = None, pooling: str | None = None
) -> tuple[FinetuningTask, dict[str, typing.Any]]:
    """Returns the task that learns examples, and what a command would keep of its settings besides the task's own.

    Args:
        data: The examples.
        path: Where `write_given` wrote them.
        config: Of the model.
        doc_stride: Read long texts in windows; see `LabelledTextTask`.
        pooling: What labels and numbers are read off; None for what is best for the model.

    Raises:
        InputError: The task reads long texts in its own way, or the file can't be used.
    """
    folder = absolute_path(os.path.dirname(path))
    if doc_stride is not None and data.kind in ("answers", "entities"):
        raise InputError(f"`doc_stride={doc_stride}` is for labels and numbers; {data.kind} are read in windows anyway")
    if data.kind == "answers":
        config = config.replace(question_alignment=default_question_alignment(config))
        may_lack = not all(data.labels)
        task = (ConditionalQuestionAnswering if may_lack else QuestionAnswering)(config, may_be_unanswerable=may_lack)
        head = "conditional" if may_lack else "independent"
        more = {"head": head, "question_alignment": config.question_alignment, "metrics": None}
        return task, {"command": "run_squad", **more, FOUND_AT: {"train_file": absolute_path(path)}}
    if data.kind == "entities":
        form, name = ("conll", "conll") if isinstance(data.texts[0], list) else ("characters", "klue_ner")
        metrics = ("entity_f1", "entity_precision", "entity_recall")
        config = config.replace(character_ngrams=default_character_ngrams(config))
        task = Entities(config, tuple(types_of(path, form)), form, metrics, decoding=BEST_SEQUENCE)
        more = {"task_name": name, "metrics": list(metrics), "character_ngrams": config.character_ngrams}
        return task, {"command": "run_ner", **more, FOUND_AT: {"data_dir": folder}}
    is_regression = data.kind == "numbers"
    files = DataFiles(
        text_column="text",
        text_pair_column="text_pair" if data.reads_pairs else None,
        metrics=("spearman", "pearson") if is_regression else ("accuracy",),
        is_regression=is_regression,
    )
    if data.kind == "multi_label":
        files = dataclasses.replace(files, metrics=tuple(multi_label.METRICS))
    check_pooling_sees_the_text(config, pooling)
    config = config.replace(classifier_pooling=pooling or default_pooling(config, data.reads_pairs))
    if is_regression:
        check_metrics(files.metrics, SCORE_METRICS)
        task = Regression(config, files, doc_stride)
    elif data.kind == "multi_label":
        examples = read_examples(path, files, needs_label=True, read_labels=LabelSetReader(_SEPARATOR))
        labels = labels_of_sets(examples, data.label_columns)
        task = MultiLabel(config, labels, files, _SEPARATOR, doc_stride)
    else:
        labels = labels_of(read_examples(path, files, needs_label=True))
        task = Classification(config, labels, files, doc_stride=doc_stride)
    more = {"task_name": "jsonl", "regression": is_regression, "metrics": list(files.metrics), "class_weights": None}
    more["multi_label"] = data.kind == "multi_label"
    more |= {"pooling": config.classifier_pooling, "doc_stride": doc_stride}
    return task, {"command": "run_classifier", **more, FOUND_AT: {"data_dir": folder}}
