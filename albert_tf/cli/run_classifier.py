"""The command `run_classifier.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import math

from absl import flags

from albert_tf.cli.finetuning_command import DEV, TEST, TRAIN, FinetuningCommand
from albert_tf.cli.finetuning_flags import define_baselines_flag, define_finetuning_flags
from albert_tf.cli.flag_groups import in_helpfull
from albert_tf.cli.original_flags import define_original_flags
from albert_tf.config import POOLING_CHOICES
from albert_tf.errors import ON_BAD_ROW, InputError
from albert_tf.finetuning import Classification, MultiLabel, Regression, multi_label
from albert_tf.finetuning.datasets import COLUMNS, DATASETS, find_files
from albert_tf.finetuning.defaults import check_pooling_sees_the_text, default_pooling
from albert_tf.finetuning.label_sets import LabelSetReader
from albert_tf.finetuning.labelled_text import read_examples
from albert_tf.finetuning.labels import balanced_class_weights, check_labels, labels_of, labels_of_sets
from albert_tf.finetuning.metrics import LABEL_METRICS, METRICS, SCORE_METRICS, check_metrics
from albert_tf.text_fields import columns_of


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_enum(
        "task_name",
        None,
        sorted(DATASETS),
        "A public data set with its files as they are published; or tsv, csv, jsonl or parquet: train, dev and test "
        "with this ending; or datasets: a folder that the library of this name has saved.",
        case_sensitive=False,
    )
    flags.DEFINE_string("data_dir", None, "Folder of the task's files.")
    flags.DEFINE_string("text_column", None, "Column of the text, or title,text, joined; by default document.")
    with in_helpfull():
        flags.DEFINE_alias("text_fields", "text_column")
    flags.DEFINE_string("text_pair_column", None, "Column of a second text.")
    flags.DEFINE_string(
        "label_column",
        None,
        "Column of the label; by default label. With --multi_label also a,b: of each label a column of 1 and 0.",
    )
    flags.DEFINE_list("labels", None, "The labels, in order; by default the task's, or those of the training file.")
    flags.DEFINE_bool("regression", None, "Learn numbers, not labels; by default as the data set requires.")
    flags.DEFINE_bool(
        "multi_label", False, "A text may have several labels, or none: each label is predicted separately."
    )
    with in_helpfull():
        flags.DEFINE_string(
            "label_separator",
            ",",
            "With --multi_label: the separator between the labels of a text; lists in JSON need none.",
        )
    flags.DEFINE_list(
        "metrics",
        None,
        f"Measures, the first of which chooses the best checkpoint: {', '.join(METRICS)}; with --multi_label "
        f"{', '.join(multi_label.METRICS)}.",
    )
    flags.DEFINE_list(
        "class_weights", None, "How much an example of each label counts in training, or balanced; 1 each if left out."
    )
    with in_helpfull():
        flags.DEFINE_enum(
            "pooling",
            None,
            POOLING_CHOICES,
            "What the label is computed from: first, the state of [CLS]; mean, that of all pieces; last, that "
            "of the last [SEP]; aligned, pieces of a pair compared with similar ones of the other text. By "
            "default the model's own, last in causal models, and in small models aligned for pairs.",
        )
        flags.DEFINE_integer(
            "doc_stride",
            None,
            "Read texts longer than --max_seq_length in windows that begin this many pieces apart, and "
            "average their logits; by default texts are cut.",
            lower_bound=1,
        )
    flags.DEFINE_enum(
        "on_bad_row", None, ON_BAD_ROW, "Rows that can't be used: stop, or leave them out and count them."
    )
    define_finetuning_flags("longer texts are cut. By default 99.5% of the texts fit, if the model reads so much.")
    define_baselines_flag()
    define_original_flags("cached_dir")


def data_files(settings):
    """Returns the data set's files with what the settings say about them."""
    app.require(task_name=settings.task_name, data_dir=settings.data_dir)
    names = (*COLUMNS, "labels", "metrics", "on_bad_row")
    given = {name: getattr(settings, name) for name in names if getattr(settings, name)}
    if "labels" in given:
        given["labels"] = tuple(given["labels"])
        check_labels(given["labels"], "`labels`")
    files = DATASETS[settings.task_name]
    if settings.multi_label:
        return _files_of_label_sets(settings, dataclasses.replace(files, **given))
    is_regression = settings.regression
    if is_regression is not None and is_regression != files.is_regression:
        metrics = ("pearson", "spearman") if is_regression else ("accuracy",)
        files = dataclasses.replace(files, is_regression=is_regression, metrics=metrics)
    given["metrics"] = tuple(given.get("metrics", files.metrics))
    check_metrics(given["metrics"], SCORE_METRICS if files.is_regression else LABEL_METRICS)
    return dataclasses.replace(files, **given)


def _files_of_label_sets(settings, files):
    """Returns the files where a text may have several labels, which settings of one label don't go with."""
    for name in ("regression", "class_weights"):
        if getattr(settings, name):
            raise InputError(f"`{name}` is for texts with one label each, and can't be used with `multi_label`")
    if settings.label_separator.strip() != settings.label_separator or not settings.label_separator:
        raise InputError("`label_separator` must be one or more characters without spaces around them, such as , or |")
    metrics = tuple(settings.metrics or multi_label.METRICS)
    for name in metrics:
        if name not in multi_label.METRICS:
            raise InputError(f"`metrics={name}` is not a metric of `multi_label`: {', '.join(multi_label.METRICS)}")
    return dataclasses.replace(files, metrics=metrics, is_regression=False)


def find_paths(settings, part):
    """Returns the paths of the training file, the file for evaluation, or the one to predict."""
    files = data_files(settings)
    return find_files(settings.data_dir, {TRAIN: files.train, DEV: files.dev, TEST: files.test}[part])


def complete(settings, config, is_known):
    """Returns settings that say what the label is read off."""
    check_pooling_sees_the_text(config, settings.pooling)
    if settings.pooling is not None:
        return settings
    if not settings.do_train:  # a head that is there reads what it was trained on
        return dataclasses.replace(settings, pooling=config.classifier_pooling)
    pooling = default_pooling(config, data_files(settings).text_pair_column is not None)
    return dataclasses.replace(settings, pooling=pooling)


def make_task(settings, config):
    """Returns the task; its labels are those set, the run's or the data set's, or else those of the training file."""
    files = data_files(settings)
    config = config.replace(classifier_pooling=settings.pooling)
    if settings.multi_label:
        labels = files.labels or _labels_of_sets(settings, files)
        return MultiLabel(config, labels, files, settings.label_separator, settings.doc_stride)
    if files.is_regression:
        return Regression(config, files, settings.doc_stride)
    train_examples = None
    if not files.labels or (settings.do_train and settings.class_weights == ["balanced"]):
        train_examples = read_examples(find_paths(settings, TRAIN), files, needs_label=True)
    labels = files.labels or labels_of(train_examples)
    return Classification(config, labels, files, class_weights(settings, labels, train_examples), settings.doc_stride)


def _labels_of_sets(settings, files):
    """Returns the labels of a training file whose texts may have several."""
    reader = LabelSetReader(settings.label_separator)
    examples = read_examples(find_paths(settings, TRAIN), files, True, reader)
    return labels_of_sets(examples, columns_of(files.label_column, ()))


def class_weights(settings, labels, train_examples):
    """Returns the weight of each label in the loss, None where all are 1."""
    given = settings.class_weights
    if not given or not settings.do_train:
        return None
    if given == ["balanced"]:
        return balanced_class_weights(labels, train_examples)
    try:
        weights = tuple(map(float, given))
    except ValueError:
        weights = ()
    if len(weights) != len(labels) or not all(0 < weight < math.inf for weight in weights):
        raise InputError(
            f"--class_weights={','.join(map(str, given))} must be balanced, or a number above 0 for each of the "
            f"{len(labels)} labels {', '.join(labels)}"
        )
    return weights


SETTING_NAMES = ("task_name", *COLUMNS, "labels", "regression", "multi_label", "label_separator", "metrics")
COMMAND = FinetuningCommand(
    "run_classifier",
    (*SETTING_NAMES, "class_weights", "pooling", "doc_stride"),
    ("data_dir",),
    find_paths,
    make_task,
    complete,
)


def run():
    """Runs the command."""
    COMMAND.run(define_flags)
