"""Fine-tunes a pre-trained model to label texts, evaluates it, and predicts.

python run_classifier.py --task_name=nsmc --data_dir=nsmc --init_checkpoint=run --output_dir=run/nsmc \\
    --do_train --do_eval --do_predict --max_seq_length=128 --num_train_epochs=3
"""

from albert_tf import command_line  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import os

import tensorflow as tf
from absl import flags

from albert_tf import training_flags
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.files import read_json
from albert_tf.modeling import AlbertForSequenceClassification
from albert_tf.modeling.operations import classification_operations
from albert_tf.original_flags import define_original_flags
from albert_tf.tasks import classification
from albert_tf.tasks.labelled_text import TASKS, encode_examples, find_file, label_ids, read_examples
from albert_tf.tokenization.tokenizer import VOCABULARY_FILE
from albert_tf.training.checkpoint_files import find_beside_checkpoint
from albert_tf.training.distribution import per_replica_batch_size
from albert_tf.training.progress import StepSize
from albert_tf.training.run_folder import CONFIG_FILE, SETTINGS_FILE
from albert_tf.training.train_loop import Phase
from albert_tf.training_command import TrainingCommand

FLAGS = flags.FLAGS

flags.DEFINE_enum("task_name", None, sorted(TASKS), "tsv: train.tsv, dev.tsv, test.tsv; nsmc: ratings_train.txt, ...")
flags.DEFINE_string("data_dir", None, "Folder of the task's tab-separated files, each with a header line.")
flags.DEFINE_string("text_column", None, "Column of the text; by default document.")
flags.DEFINE_string("text_pair_column", None, "Column of a second text.")
flags.DEFINE_string("label_column", None, "Column of the label; by default label.")
flags.DEFINE_list("labels", None, "The labels, in order; by default the task's, or those of the training file.")
flags.DEFINE_string("output_dir", None, "Folder for checkpoints, logs and results; a run found there is resumed.")
flags.DEFINE_string("init_checkpoint", None, "Pre-trained checkpoint, or its folder; random weights if left out.")
flags.DEFINE_string("albert_config_file", None, "JSON file of the model; by default the one beside --init_checkpoint.")
flags.DEFINE_string("vocab_file", None, "Vocabulary; by default the one beside --init_checkpoint.")
command_line.define_tokenizer_flags()
flags.DEFINE_bool("do_train", False, "Train.")
flags.DEFINE_bool("do_eval", False, "Evaluate on the dev file; writes eval_results.json.")
flags.DEFINE_bool("do_predict", False, "Label the test file; writes predictions.tsv.")
flags.DEFINE_integer("max_seq_length", 512, "Longest input in pieces; what is longer is cut.", lower_bound=8)
flags.DEFINE_integer("train_step", 1000, "Number of training steps.", lower_bound=1)
flags.DEFINE_float("num_train_epochs", None, "Number of passes over the training file, instead of --train_step.", 0.0)
flags.DEFINE_integer("warmup_step", 0, "Number of steps in which the learning rate rises.", lower_bound=0)
flags.DEFINE_integer("predict_batch_size", 8, "Batch size of prediction, all replicas.", lower_bound=1)
training_flags.define_training_flags(
    train_batch_size=32, eval_batch_size=8, optimizer="adamw", learning_rate=5e-5, save_checkpoints_steps=1000
)
training_flags.define_distribution_flags()
define_original_flags("albert_hub_module_handle", "cached_dir", "export_dir", "threshold_to_export")


def data_files():
    """Returns the task's files with what the flags say about their columns."""
    names = ("text_column", "text_pair_column", "label_column", "labels")
    given = {name: FLAGS[name].value for name in names if FLAGS[name].value}
    if "labels" in given:
        given["labels"] = tuple(given["labels"])
    return dataclasses.replace(TASKS[FLAGS.task_name], **given)


def find_labels(files):
    """Returns the labels: the task's, or those an earlier run in --output_dir had, or the training file's."""
    if files.labels:
        return files.labels
    settings_path = os.path.join(FLAGS.output_dir, SETTINGS_FILE)
    if tf.io.gfile.exists(settings_path):
        labels = read_json(settings_path, "the settings of the run").get("labels")
        if labels:
            return tuple(labels)
    examples = read_examples(find_file(FLAGS.data_dir, files.train), files, needs_label=True)
    return tuple(sorted({example.label for example in examples}))


def find_model_file(flag, name):
    """Returns a flag's value, or the file of that name beside --init_checkpoint or in --output_dir."""
    found = FLAGS[flag].value or find_beside_checkpoint(FLAGS.init_checkpoint, name)
    found = found or find_beside_checkpoint(FLAGS.output_dir, name)
    if not found:
        raise InputError(
            f"--{flag} is missing, and there is no {name} beside --init_checkpoint={FLAGS.init_checkpoint}"
        )
    return found


def load_features(tokenizer, files, names, labels, needs_label):
    path = find_file(FLAGS.data_dir, names)
    examples = read_examples(path, files, needs_label)
    features = encode_examples(tokenizer, examples, FLAGS.max_seq_length)
    return examples, {**features, "label_ids": label_ids(path, examples, labels)}


def main():
    command_line.require(task_name=FLAGS.task_name, data_dir=FLAGS.data_dir, output_dir=FLAGS.output_dir)
    if not (FLAGS.do_train or FLAGS.do_eval or FLAGS.do_predict):
        raise InputError("nothing to do: pass --do_train, --do_eval or --do_predict")
    config = AlbertConfig.from_json_file(find_model_file("albert_config_file", CONFIG_FILE))
    strategy = training_flags.strategy_from_flags()
    for flag in ("eval_batch_size", "predict_batch_size"):
        per_replica_batch_size(strategy, FLAGS[flag].value, flag)
    per_replica_batch_size(strategy, FLAGS.train_batch_size, "train_batch_size", FLAGS.gradient_accumulation_steps)
    tokenizer = command_line.load_tokenizer(find_model_file("vocab_file", VOCABULARY_FILE))
    command_line.check_vocab_size(config, tokenizer)
    if FLAGS.max_seq_length > config.max_position_embeddings:
        raise InputError(
            f"--max_seq_length={FLAGS.max_seq_length} is more than the model's max_position_embeddings, "
            f"{config.max_position_embeddings}"
        )
    training_flags.check_attention(strategy, config, [FLAGS.max_seq_length])
    files = data_files()
    labels = find_labels(files)
    num_train_steps, steps_flag = FLAGS.train_step, "train_step"
    if FLAGS.do_train:
        _, train_features = load_features(tokenizer, files, files.train, labels, needs_label=True)
        num_examples = len(train_features["label_ids"])
        if FLAGS.num_train_epochs is not None:
            num_train_steps = max(1, round(FLAGS.num_train_epochs * num_examples / FLAGS.train_batch_size))
            steps_flag = "num_train_epochs"
        schedule = training_flags.make_schedule(num_train_steps, "warmup_step", steps_flag)
    if FLAGS.do_eval:
        _, dev_features = load_features(tokenizer, files, files.dev, labels, needs_label=True)
    if FLAGS.do_predict:
        test_examples, test_features = load_features(tokenizer, files, files.test, labels, needs_label=False)

    tf.keras.utils.set_random_seed(FLAGS.random_seed)
    with strategy.scope():
        model = AlbertForSequenceClassification(
            config, len(labels), remat=FLAGS.remat, attention=FLAGS.attention, dtype=training_flags.dtype_policy()
        )
    task = classification.ClassificationTask()
    command = TrainingCommand(strategy, task, model, config, tokenizer, "fine-tuning loss")

    def make_dataset(start_step, *_):
        return classification.train_dataset(train_features, FLAGS.train_batch_size, FLAGS.random_seed, start_step)

    def make_eval_dataset():
        return classification.eval_dataset(dev_features, FLAGS.eval_batch_size)

    if FLAGS.do_train:
        operations = classification_operations(config, FLAGS.max_seq_length, len(labels))
        batch_size = FLAGS.train_batch_size
        phase = Phase(
            num_train_steps,
            make_dataset,
            StepSize(batch_size, batch_size * FLAGS.max_seq_length, batch_size * operations),
            FLAGS.gradient_accumulation_steps,
            make_eval_dataset if FLAGS.do_eval else None,
        )
        settings = {
            "task_name": FLAGS.task_name,
            "labels": list(labels),
            "num_warmup_steps": FLAGS.warmup_step,
            "max_seq_length": FLAGS.max_seq_length,
        }
        if not command.train(schedule, [phase], [num_examples], settings, evaluates_first=False):
            return
    else:
        command.restore()
    if FLAGS.do_eval:
        command.evaluate(make_eval_dataset(), num_examples=len(dev_features["label_ids"]))
    if FLAGS.do_predict:
        dataset = classification.eval_dataset(test_features, FLAGS.predict_batch_size)
        probabilities = classification.predict(strategy, model, dataset)
        path = os.path.join(FLAGS.output_dir, classification.PREDICTIONS_FILE)
        if command.is_chief:
            classification.write_predictions(path, test_examples, labels, probabilities)
        command.tell(f"wrote {len(test_examples):,} predictions to {path}")


if __name__ == "__main__":
    command_line.run(main)
