"""The command `run_classifier.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import itertools
import os

import tensorflow as tf
from absl import flags

from albert_tf.checkpoint_files import find_beside_checkpoint
from albert_tf.cli import training_flags
from albert_tf.cli.original_flags import define_original_flags
from albert_tf.cli.run_flags import settings_flags, take_from_run
from albert_tf.cli.tokenizer_flags import define_tokenizer_flags, load_tokenizer
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.finetuning import Classification, runner
from albert_tf.finetuning.datasets import DATASETS, find_file
from albert_tf.finetuning.defaults import (
    WARMUP_PROPORTION,
    choose_max_seq_length,
    default_learning_rate,
    default_num_train_epochs,
    default_token_dropout,
    num_steps,
    with_default_dropout,
)
from albert_tf.finetuning.labelled_text import read_examples
from albert_tf.finetuning.labels import check_labels, labels_of
from albert_tf.modeling.pretrained import CONFIG_FILE
from albert_tf.tokenization.tokenizer import VOCABULARY_FILE
from albert_tf.training import TrainingRun
from albert_tf.training.devices.batches import per_replica_batch_size
from albert_tf.training.run_folder.guard import FOUND_AT, check_model
from albert_tf.training.run_folder.identity import absolute_path, file_identity
from albert_tf.training.run_folder.results import EVAL_RESULTS_FILE

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
    flags.DEFINE_string("output_dir", None, "Folder for checkpoints, logs and results; a run found there is resumed.")
    flags.DEFINE_string("init_checkpoint", None, "Pre-trained checkpoint, or its folder; random weights if left out.")
    flags.DEFINE_string("albert_config_file", None, "JSON file of the model; by default that beside --init_checkpoint.")
    flags.DEFINE_string("vocab_file", None, "Vocabulary; by default the one beside --init_checkpoint.")
    define_tokenizer_flags()
    flags.DEFINE_bool("do_train", False, "Train.")
    flags.DEFINE_bool("do_eval", False, "Evaluate on the dev file; writes eval_results.json.")
    flags.DEFINE_bool("do_predict", False, "Label the test file; writes predictions.tsv.")
    flags.DEFINE_integer(
        "max_seq_length",
        None,
        "Longest input in pieces; what is longer is cut. By default what leaves 99.5% of the training texts whole.",
        lower_bound=8,
    )
    flags.DEFINE_integer("train_step", None, "Number of training steps, instead of --num_train_epochs.", lower_bound=1)
    flags.DEFINE_float(
        "num_train_epochs",
        None,
        "Passes over the training file; by default the fewer the larger it is, from 30 to 3.",
        0.0,
    )
    flags.DEFINE_integer("warmup_step", None, "Steps in which the learning rate rises; by default 10% of all.", 0)
    flags.DEFINE_float(
        "dropout",
        None,
        "Dropout of hidden states and attention; by default the config's, in small models at least 0.1.",
        0.0,
        1.0,
    )
    flags.DEFINE_float(
        "token_dropout",
        None,
        "Share of the pieces of training texts to hide, others each time; by default 0.15 for small models and single "
        "texts, else 0.",
        0.0,
        1.0,
    )
    flags.DEFINE_integer("predict_batch_size", 64, "Batch size of prediction, all replicas.", lower_bound=1)
    training_flags.define_training_flags(
        train_batch_size=32,
        eval_batch_size=64,
        optimizer="adamw",
        learning_rate=None,
        save_checkpoints_steps=1000,
        bias_correction=True,
        evaluates_often=False,
    )
    training_flags.define_distribution_flags()
    define_original_flags("albert_hub_module_handle", "cached_dir", "export_dir", "threshold_to_export")


COLUMNS = ("text_column", "text_pair_column", "label_column")
STEP_FLAGS = {"num_train_steps": "train_step", "num_warmup_steps": "warmup_step"}


def data_files():
    """Returns the data set's files with what the flags say about their columns."""
    given = {name: FLAGS[name].value for name in (*COLUMNS, "labels") if FLAGS[name].value}
    if "labels" in given:
        given["labels"] = tuple(given["labels"])
        check_labels(given["labels"], "--labels")
    return dataclasses.replace(DATASETS[FLAGS.task_name], **given)


def find_labels(files):
    """Returns the labels: the flag's, the run's or the data set's, or else those of the training file."""
    if files.labels:
        return files.labels
    path = find_file(FLAGS.data_dir, files.train)
    return labels_of(path, read_examples(path, files, needs_label=True))


def find_model_file(flag, name, run):
    """Returns a flag's value, or the file of that name in the folder of the run or beside --init_checkpoint."""
    found = FLAGS[flag].value or (run and run.find(name))
    found = found or find_beside_checkpoint(FLAGS.init_checkpoint, name)
    found = found or find_beside_checkpoint(FLAGS.output_dir, name)
    if not found:
        raise InputError(
            f"--{flag} is missing, and there is no {name} beside --init_checkpoint={FLAGS.init_checkpoint}"
        )
    return found


def find_run():
    """Returns the run that --output_dir holds, None for a new one; flags that are not given become the run's."""
    names = settings_flags(**STEP_FLAGS)
    names.update((name, name) for name in ("task_name", *COLUMNS, "labels", "max_seq_length", "token_dropout"))
    if FLAGS["num_train_epochs"].present:
        del names["num_train_steps"]  # how many steps that is follows from the data
    return take_from_run("run_classifier", names, ["data_dir"])


def with_dropout(config, known_run):
    """Returns the config with the dropout of the flag, or else the default's for a new run."""
    if FLAGS.dropout is not None:
        return config.replace(hidden_dropout_prob=FLAGS.dropout, attention_probs_dropout_prob=FLAGS.dropout)
    return with_default_dropout(config) if FLAGS.do_train and known_run is None else config


def fill_in_token_dropout(config, files, known_run):
    """Chooses which share of pieces to hide, where neither a flag nor the run says it."""
    if FLAGS.token_dropout is None:
        is_new = known_run is None
        FLAGS.token_dropout = default_token_dropout(config, bool(files.text_pair_column)) if is_new else 0.0


def fill_in_max_seq_length(task, files, tokenizer):
    """Chooses the length, where neither a flag nor the run says it, and prints it."""
    if FLAGS.max_seq_length is None and not FLAGS.do_train:
        FLAGS.max_seq_length = task.config.max_position_embeddings
    elif FLAGS.max_seq_length is None:
        examples = task.read(find_file(FLAGS.data_dir, files.train))
        FLAGS.max_seq_length = choose_max_seq_length(task, examples, tokenizer)
        print(f"--max_seq_length={FLAGS.max_seq_length}, by the lengths of the training texts", flush=True)


def make_settings(config, train_file):
    """Returns the settings of the run; what neither a flag nor the run says follows from model and training file."""
    if FLAGS.learning_rate is None:
        FLAGS.learning_rate = default_learning_rate(config, FLAGS.init_checkpoint is not None)
    num_train_steps, steps_flag = FLAGS.train_step or 1, "train_step"
    if train_file is not None and (FLAGS.num_train_epochs is not None or FLAGS.train_step is None):
        num_examples, steps_flag = len(train_file.examples), "num_train_epochs"
        epochs = default_num_train_epochs(num_examples) if FLAGS.num_train_epochs is None else FLAGS.num_train_epochs
        num_train_steps = num_steps(epochs, num_examples, FLAGS.train_batch_size)
    if FLAGS.warmup_step is None:
        FLAGS.warmup_step = int(WARMUP_PROPORTION * num_train_steps)
    return training_flags.settings_from_flags(num_train_steps, "warmup_step", steps_flag)


def results_data(task, files):
    """Returns what tells the data of each file of results, as far as they are there."""
    data = {}
    for result, names in ((EVAL_RESULTS_FILE, files.dev), (task.predictions_file, files.test)):
        paths = filter(tf.io.gfile.exists, (os.path.join(FLAGS.data_dir, name) for name in names))
        for path in itertools.islice(paths, 1):
            data[result] = file_identity(path)
    return data


def check_batch_sizes(strategy):
    """Checks that batches can be divided among the replicas."""
    for flag in ("eval_batch_size", "predict_batch_size"):
        per_replica_batch_size(strategy, FLAGS[flag].value, flag)
    if FLAGS.do_train:
        per_replica_batch_size(strategy, FLAGS.train_batch_size, "train_batch_size", FLAGS.gradient_accumulation_steps)


def main():
    app.require(output_dir=FLAGS.output_dir)
    if not (FLAGS.do_train or FLAGS.do_eval or FLAGS.do_predict):
        raise InputError("nothing to do: pass --do_train, --do_eval or --do_predict")
    known_run = find_run()
    app.require(task_name=FLAGS.task_name, data_dir=FLAGS.data_dir)
    config = AlbertConfig.from_json_file(find_model_file("albert_config_file", CONFIG_FILE, known_run))
    config = with_dropout(config, known_run)
    strategy = training_flags.strategy_from_flags()
    check_batch_sizes(strategy)
    tokenizer = load_tokenizer(find_model_file("vocab_file", VOCABULARY_FILE, known_run))
    config.check_vocab_size(len(tokenizer.vocabulary), tokenizer.vocabulary.source)
    files = data_files()
    task = Classification(config, find_labels(files), files)
    fill_in_token_dropout(config, files, known_run)
    fill_in_max_seq_length(task, files, tokenizer)
    config.check_max_seq_length(FLAGS.max_seq_length, "--max_seq_length")
    model_options = training_flags.model_options(strategy, config, [(FLAGS.max_seq_length, 1)])

    def load(names, needs_labels=True):
        path = find_file(FLAGS.data_dir, names)
        return runner.load_file(task, path, tokenizer, FLAGS.max_seq_length, needs_labels)

    train_file = load(files.train) if FLAGS.do_train else None
    dev_file = load(files.dev) if FLAGS.do_eval else None
    test_file = load(files.test, needs_labels=False) if FLAGS.do_predict else None

    settings = make_settings(config, train_file)
    tf.keras.utils.set_random_seed(FLAGS.random_seed)
    with strategy.scope():
        model = task.make_model(**model_options)
    training = TrainingRun(FLAGS.output_dir, task, model, settings, tokenizer)
    if train_file is None:
        if known_run:
            check_model(known_run.folder, known_run.settings, config, tokenizer, known_run.flag)
        training.restore()
    else:
        more_settings = {
            "command": "run_classifier",
            "task_name": FLAGS.task_name,
            FOUND_AT: {"data_dir": absolute_path(FLAGS.data_dir)},
        }
        if not runner.train(
            training, train_file, dev_file, more_settings, results_data(task, files), FLAGS.token_dropout
        ):
            return
    if dev_file:
        runner.evaluate(training, dev_file)
    if test_file:
        runner.predict(training, test_file, FLAGS.predict_batch_size)


def run():
    """Runs the command."""
    app.run(main, define_flags, STEP_FLAGS)
