"""The command `run_classifier.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import functools
import itertools
import os

import numpy as np
import tensorflow as tf
from absl import flags

from albert_tf.checkpoint_files import find_beside_checkpoint
from albert_tf.cli import training_flags
from albert_tf.cli.original_flags import define_original_flags
from albert_tf.cli.run_flags import take_from_run
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.modeling import AlbertForSequenceClassification
from albert_tf.modeling.operations import classification_operations
from albert_tf.tasks import classification
from albert_tf.tasks.labelled_text import TASKS, LabelledText, encode_examples, find_file, label_ids, read_examples
from albert_tf.tasks.labels import check_labels, label_report, labels_of
from albert_tf.tokenization.tokenizer import VOCABULARY_FILE
from albert_tf.training.devices.distribution import per_replica_batch_size
from albert_tf.training.progress import StepSize
from albert_tf.training.run_folder.guard import CONFIG_FILE, FOUND_AT
from albert_tf.training.run_folder.identity import absolute_path, file_identity
from albert_tf.training.run_folder.results import EVAL_RESULTS_FILE
from albert_tf.training.train_loop import Phase
from albert_tf.training_command import TrainingCommand

FLAGS = flags.FLAGS

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_enum("task_name", None, sorted(TASKS), "tsv: train.tsv, dev.tsv, test.tsv; nsmc: ratings_*.txt.")
    flags.DEFINE_string("data_dir", None, "Folder of the task's tab-separated files, each with a header line.")
    flags.DEFINE_string("text_column", None, "Column of the text; by default document.")
    flags.DEFINE_string("text_pair_column", None, "Column of a second text.")
    flags.DEFINE_string("label_column", None, "Column of the label; by default label.")
    flags.DEFINE_list("labels", None, "The labels, in order; by default the task's, or those of the training file.")
    flags.DEFINE_string("output_dir", None, "Folder for checkpoints, logs and results; a run found there is resumed.")
    flags.DEFINE_string("init_checkpoint", None, "Pre-trained checkpoint, or its folder; random weights if left out.")
    flags.DEFINE_string("albert_config_file", None, "JSON file of the model; by default that beside --init_checkpoint.")
    flags.DEFINE_string("vocab_file", None, "Vocabulary; by default the one beside --init_checkpoint.")
    app.define_tokenizer_flags()
    flags.DEFINE_bool("do_train", False, "Train.")
    flags.DEFINE_bool("do_eval", False, "Evaluate on the dev file; writes eval_results.json.")
    flags.DEFINE_bool("do_predict", False, "Label the test file; writes predictions.tsv.")
    flags.DEFINE_integer("max_seq_length", 512, "Longest input in pieces; what is longer is cut.", lower_bound=8)
    flags.DEFINE_integer("train_step", 1000, "Number of training steps.", lower_bound=1)
    flags.DEFINE_float("num_train_epochs", None, "Passes over the training file, instead of --train_step.", 0.0)
    flags.DEFINE_integer("warmup_step", 0, "Number of steps in which the learning rate rises.", lower_bound=0)
    flags.DEFINE_integer("predict_batch_size", 8, "Batch size of prediction, all replicas.", lower_bound=1)
    training_flags.define_training_flags(
        train_batch_size=32, eval_batch_size=8, optimizer="adamw", learning_rate=5e-5, save_checkpoints_steps=1000
    )
    training_flags.define_distribution_flags()
    define_original_flags("albert_hub_module_handle", "cached_dir", "export_dir", "threshold_to_export")


COLUMNS = ("text_column", "text_pair_column", "label_column")

# What a run's folder knows, beside the flags that all training shares.
SETTINGS = ("train_step", "warmup_step", "task_name", *COLUMNS, "labels", "max_seq_length")


def data_files():
    """Returns the task's files with what the flags say about their columns."""
    given = {name: FLAGS[name].value for name in (*COLUMNS, "labels") if FLAGS[name].value}
    if "labels" in given:
        given["labels"] = tuple(given["labels"])
        check_labels(given["labels"], "--labels")
    return dataclasses.replace(TASKS[FLAGS.task_name], **given)


def find_labels(files):
    """Returns the labels: the flag's, the run's or the task's, or else those of the training file."""
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
    names = [*training_flags.TRAINING_SETTINGS, *SETTINGS]
    if FLAGS["num_train_epochs"].present:
        names.remove("train_step")  # how many steps that is follows from the data
    return take_from_run("run_classifier", names, ["data_dir"])


@dataclasses.dataclass(frozen=True)
class DataFile:
    """One of the task's files.

    Attributes:
        path: Where it lies.
        examples: What it holds.
        features: The same for the model.
    """

    path: str
    examples: list[LabelledText]
    features: dict[str, np.ndarray]

    @property
    def identity(self):
        """What tells its content."""
        return file_identity(self.path)


def load_file(tokenizer, files, names, labels, needs_label):
    """Reads and encodes the first of the names that is there."""
    path = find_file(FLAGS.data_dir, names)
    examples = read_examples(path, files, needs_label)
    features = encode_examples(tokenizer, examples, FLAGS.max_seq_length)
    return DataFile(path, examples, {**features, "label_ids": label_ids(path, examples, labels, needs_label)})


def results_data(files):
    """Returns what tells the data of each file of results, as far as they are there."""
    data = {}
    for result, names in ((EVAL_RESULTS_FILE, files.dev), (classification.PREDICTIONS_FILE, files.test)):
        paths = filter(tf.io.gfile.exists, (os.path.join(FLAGS.data_dir, name) for name in names))
        for path in itertools.islice(paths, 1):
            data[result] = file_identity(path)
    return data


def settings(files, labels, train_file, num_train_steps):
    """Returns what decides, besides the training flags, what a run computes, and where it found its data."""
    return {
        "command": "run_classifier",
        "train_file": train_file.identity,
        "task_name": FLAGS.task_name,
        **{name: getattr(files, name) for name in COLUMNS},
        "labels": list(labels),
        "max_seq_length": FLAGS.max_seq_length,
        "train_step": num_train_steps,
        "warmup_step": FLAGS.warmup_step,
        FOUND_AT: {"data_dir": absolute_path(FLAGS.data_dir)},
    }


def train(command, config, files, labels, train_file, dev_file):
    """Trains; returns whether it came to the end."""
    batch_size, num_examples = FLAGS.train_batch_size, len(train_file.examples)
    num_train_steps, steps_flag = FLAGS.train_step, "train_step"
    if FLAGS.num_train_epochs is not None:
        num_train_steps = max(1, round(FLAGS.num_train_epochs * num_examples / batch_size))
        steps_flag = "num_train_epochs"
    schedule = training_flags.make_schedule(num_train_steps, "warmup_step", steps_flag)
    operations = classification_operations(config, FLAGS.max_seq_length, len(labels))

    def make_dataset(start_step, *_):
        return classification.train_dataset(train_file.features, batch_size, FLAGS.random_seed, start_step)

    phase = Phase(
        num_train_steps,
        make_dataset,
        StepSize(batch_size, batch_size * FLAGS.max_seq_length, batch_size * operations),
        FLAGS.gradient_accumulation_steps,
        functools.partial(make_eval_dataset, dev_file) if dev_file else None,
    )
    command.tell("\n".join(label_report(train_file.path, train_file.examples, labels)))
    known = settings(files, labels, train_file, num_train_steps)
    return command.train(schedule, [phase], [num_examples], known, results_data(files), evaluates_first=False)


def make_eval_dataset(dev_file):
    return classification.eval_dataset(dev_file.features, FLAGS.eval_batch_size)


def predict(command, strategy, model, labels, test_file):
    """Labels the examples of a file and writes that down."""
    dataset = classification.eval_dataset(test_file.features, FLAGS.predict_batch_size)
    probabilities = classification.predict(strategy, model, dataset)
    command.write_results(
        classification.PREDICTIONS_FILE,
        test_file.identity,
        f"{len(test_file.examples):,} predictions",
        lambda path: classification.write_predictions(path, test_file.examples, labels, probabilities),
    )


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
    run = find_run()
    app.require(task_name=FLAGS.task_name, data_dir=FLAGS.data_dir)
    config = AlbertConfig.from_json_file(find_model_file("albert_config_file", CONFIG_FILE, run))
    strategy = training_flags.strategy_from_flags()
    check_batch_sizes(strategy)
    tokenizer = app.load_tokenizer(find_model_file("vocab_file", VOCABULARY_FILE, run))
    app.check_vocab_size(config, tokenizer)
    if FLAGS.max_seq_length > config.max_position_embeddings:
        raise InputError(
            f"--max_seq_length={FLAGS.max_seq_length} is more than the model's max_position_embeddings, "
            f"{config.max_position_embeddings}"
        )
    attention = training_flags.choose_attention(strategy, config, [(FLAGS.max_seq_length, 1)])
    files = data_files()
    labels = find_labels(files)
    load = functools.partial(load_file, tokenizer, files, labels=labels)
    train_file = load(files.train, needs_label=True) if FLAGS.do_train else None
    dev_file = load(files.dev, needs_label=True) if FLAGS.do_eval else None
    test_file = load(files.test, needs_label=False) if FLAGS.do_predict else None

    tf.keras.utils.set_random_seed(FLAGS.random_seed)
    with strategy.scope():
        model = AlbertForSequenceClassification(
            config, len(labels), remat=FLAGS.remat, attention=attention, dtype=training_flags.dtype_policy()
        )
    task = classification.ClassificationTask()
    command = TrainingCommand(strategy, task, model, config, tokenizer, "fine-tuning loss", run)
    if train_file is None:
        command.restore()
    elif not train(command, config, files, labels, train_file, dev_file):
        return
    if dev_file:
        command.evaluate(make_eval_dataset(dev_file), dev_file.identity, num_examples=len(dev_file.examples))
    if test_file:
        predict(command, strategy, model, labels, test_file)


def run():
    """Runs the command."""
    app.run(main, define_flags)
