"""The command `run_classifier.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses

from absl import flags

from albert_tf.cli.finetuning_command import DEV, TEST, TRAIN, FinetuningCommand, define_finetuning_flags
from albert_tf.cli.original_flags import define_original_flags
from albert_tf.finetuning import Classification
from albert_tf.finetuning.datasets import DATASETS, find_file
from albert_tf.finetuning.labelled_text import read_examples
from albert_tf.finetuning.labels import check_labels, labels_of

FLAGS = flags.FLAGS

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_enum("task_name", None, sorted(DATASETS), "tsv: train.tsv, dev.tsv, test.tsv; nsmc: ratings_*.txt.")
    flags.DEFINE_string("data_dir", None, "Folder of the task's tab-separated files, each with a header line.")
    flags.DEFINE_string("text_column", None, "Column of the text; by default document.")
    flags.DEFINE_string("text_pair_column", None, "Column of a second text.")
    flags.DEFINE_string("label_column", None, "Column of the label; by default label.")
    flags.DEFINE_list("labels", None, "The labels, in order; by default the task's, or those of the training file.")
    define_finetuning_flags("what is longer is cut. By default what leaves 99.5% of the training texts whole.")
    define_original_flags("cached_dir")


COLUMNS = ("text_column", "text_pair_column", "label_column")


def data_files():
    """Returns the data set's files with what the flags say about their columns."""
    given = {name: FLAGS[name].value for name in (*COLUMNS, "labels") if FLAGS[name].value}
    if "labels" in given:
        given["labels"] = tuple(given["labels"])
        check_labels(given["labels"], "--labels")
    return dataclasses.replace(DATASETS[FLAGS.task_name], **given)


def find_path(part):
    """Returns the path of the training file, the file for evaluation, or the one to predict."""
    app.require(task_name=FLAGS.task_name, data_dir=FLAGS.data_dir)
    files = data_files()
    return find_file(FLAGS.data_dir, {TRAIN: files.train, DEV: files.dev, TEST: files.test}[part])


def make_task(config):
    """Returns the task; its labels are the flag's, the run's or the data set's, or else those of the training file."""
    app.require(task_name=FLAGS.task_name, data_dir=FLAGS.data_dir)
    files = data_files()
    labels = files.labels
    if not labels:
        path = find_path(TRAIN)
        labels = labels_of(path, read_examples(path, files, needs_label=True))
    return Classification(config, labels, files)


COMMAND = FinetuningCommand("run_classifier", ("task_name", *COLUMNS, "labels"), ("data_dir",), find_path, make_task)


def run():
    """Runs the command."""
    COMMAND.run(define_flags)
