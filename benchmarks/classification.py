"""Fine-tuning a pre-trained model, the same model from random weights, and a linear model on character n-grams.

python -m benchmarks.classification --data_dir=nsmc --init_checkpoint=benchmark/model --output_dir=benchmark/nsmc

Prints the accuracy of each on the dev file, in one run. Needs scikit-learn.
"""

import os

from absl import app, flags

from albert_tf.base.files import read_json
from albert_tf.finetuning.datasets import DATASETS, find_files
from albert_tf.finetuning.linear_models import classify
from albert_tf.finetuning.metrics import accuracy
from albert_tf.finetuning.tasks.labelled_text import read_examples
from benchmarks.stage import run_stage

FLAGS = flags.FLAGS

flags.DEFINE_enum("task_name", "nsmc", sorted(DATASETS), "What the files in --data_dir look like.")
flags.DEFINE_string("data_dir", None, "Folder of the labelled files.", required=True)
flags.DEFINE_string("init_checkpoint", None, "Folder of the pre-trained model.", required=True)
flags.DEFINE_string("output_dir", None, "Folder for the classifiers.", required=True)
flags.DEFINE_float("learning_rate", 5e-4, "Peak learning rate of both fine-tunings.")
flags.DEFINE_integer("num_train_epochs", 4, "Passes over the training file, in both fine-tunings.")


def fine_tuned_accuracy(name, **flag_values):
    """Fine-tunes and returns the accuracy on the dev file."""
    output_dir = os.path.join(FLAGS.output_dir, name)
    run_stage(
        "run_classifier.py",
        task_name=FLAGS.task_name,
        data_dir=FLAGS.data_dir,
        output_dir=output_dir,
        do_train=True,
        do_eval=True,
        max_seq_length=64,
        train_batch_size=32,
        learning_rate=FLAGS.learning_rate,
        num_train_epochs=FLAGS.num_train_epochs,
        warmup_step=200,
        bias_correction=True,
        iterations_per_loop=500,
        **flag_values,
    )
    return read_json(os.path.join(output_dir, "eval_results.json"), "the results")["accuracy"]


def read_data():
    """Returns the examples of the training file and of the dev file."""
    files = DATASETS[FLAGS.task_name]
    return [read_examples(find_files(FLAGS.data_dir, names), files, True) for names in (files.train, files.dev)]


def linear_accuracy():
    """Returns the accuracy of a linear model on the dev file."""
    train, dev = read_data()
    return accuracy([example.label for example in dev], classify(train, dev))


def main(_):
    model_files = {
        "albert_config_file": os.path.join(FLAGS.init_checkpoint, "albert_config.json"),
        "vocab_file": os.path.join(FLAGS.init_checkpoint, "vocab.txt"),
    }
    accuracies = {
        "pre-trained": fine_tuned_accuracy("pretrained", init_checkpoint=FLAGS.init_checkpoint),
        "the same model from random weights": fine_tuned_accuracy("random_weights", **model_files),
        "character n-grams, logistic regression": linear_accuracy(),
    }
    for name, found in accuracies.items():
        print(f"{name:<40} {found:.2%}  ({found / accuracies['pre-trained']:.3f} of the pre-trained model's)")


if __name__ == "__main__":
    app.run(main)
