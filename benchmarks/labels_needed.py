"""How many labels a task needs, with and without pre-training: accuracy by number of labels, as table, JSON and plot.

python -m benchmarks.labels_needed --data_dir=nsmc --output_dir=benchmark/labels \
    --model='this model=models/albert_ko_small' --model='pre-trained on documentation=benchmark/model'

Compares on the dev file: the majority class, logistic regression on character n-grams, the first model's shape from
random weights, and each model, fine-tuned as `run_classifier.py` does where no flag says otherwise. Each is trained on
the same random draws of the training file. What is done is kept in labels_needed.json, and the command goes on where it
was stopped. Needs scikit-learn and matplotlib.
"""

import collections
import os
import statistics
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

import numpy as np
import tensorflow as tf
from absl import app, flags
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from albert_tf.base.files import read_json, write_json
from albert_tf.cli.command import exit_stopped
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import Classification, runner
from albert_tf.finetuning.datasets import DATASETS, find_files
from albert_tf.finetuning.defaults import (
    choose_max_seq_length,
    default_token_dropout,
    finetuning_settings,
    with_default_dropout,
)
from albert_tf.finetuning.linear_models import classify
from albert_tf.finetuning.metrics import accuracy
from albert_tf.finetuning.tasks.labelled_text import labels_of, read_examples
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.training import TrainingRun
from albert_tf.training.devices import make_strategy

FLAGS = flags.FLAGS

flags.DEFINE_enum("task_name", "nsmc", sorted(DATASETS), "What the files in --data_dir look like.")
flags.DEFINE_string("data_dir", None, "Folder of the labelled files.", required=True)
flags.DEFINE_multi_string("model", [], "A name and the folder of a model, as in 'this model=models/albert_ko_small'.")
flags.DEFINE_string("output_dir", None, "Folder for the results.", required=True)
flags.DEFINE_list("num_labels", ["50", "200", "1000", "5000", "20000"], "How many training examples to draw.")
flags.DEFINE_integer("num_seeds", 3, "How many draws of each size.", 1)

MAJORITY, LINEAR, RANDOM = "majority class", "linear model, character n-grams", "the same model from random weights"


class Contestants:
    """The contestants: functions of (training examples, seed) by name, each of which returns an accuracy.

    Args:
        models: The folder of each pre-trained model, by name.
        train_path: The training file.
        dev_path: The file to judge by.
    """

    def __init__(self, models, train_path, dev_path):
        files = DATASETS[FLAGS.task_name]
        self._files, self._dev_path = files, dev_path
        self.train_examples = read_examples(train_path, files, needs_label=True)
        self._dev_examples = read_examples(dev_path, files, needs_label=True)
        self._labels = files.labels or labels_of(self.train_examples)
        self.functions = {
            MAJORITY: lambda examples, seed: self._accuracy([most_frequent(examples)] * len(self._dev_examples)),
            LINEAR: lambda examples, seed: self._accuracy(classify(examples, self._dev_examples)),
        }
        if models:
            shape = next(iter(models.values()))
            self.functions[RANDOM] = lambda examples, seed: self._fine_tune(shape, False, examples, seed)
        for name, folder in models.items():
            self.functions[name] = lambda examples, seed, folder=folder: self._fine_tune(folder, True, examples, seed)

    def _accuracy(self, found):
        return accuracy([example.label for example in self._dev_examples], found)

    def _fine_tune(self, folder, is_pretrained, examples, seed):
        config = AlbertConfig.from_json_file(os.path.join(folder, "albert_config.json"))
        tokenizer = KoreanWordPieceTokenizer.load(folder)
        config = with_default_dropout(config, len(examples))
        task = Classification(config, self._labels, self._files)
        length = choose_max_seq_length(task, examples, tokenizer)
        features = task.encode(examples, tokenizer, length)
        # Nothing of the run is kept, so that the file it is told of is any.
        train_file = runner.EncodedFile(self._dev_path, examples, features, length)
        dev_features = task.encode(self._dev_examples, tokenizer, length)
        dev_file = runner.EncodedFile(self._dev_path, self._dev_examples, dev_features, length)
        settings = finetuning_settings(
            config, len(examples), init_checkpoint=folder if is_pretrained else None, random_seed=seed
        )
        tf.keras.utils.set_random_seed(seed)
        with make_strategy().scope():
            model = task.make_model()
        with tempfile.TemporaryDirectory() as temporary:
            run = TrainingRun(temporary, task, model, settings, tokenizer)
            token_dropout = default_token_dropout(config, task.may_hide_pieces)
            if not runner.train(run, train_file, token_dropout=token_dropout):
                exit_stopped(run.stopped_by)  # the same command goes on
            return runner.evaluate(run, dev_file)["accuracy"]


def most_frequent(examples):
    """Returns the label that most examples have."""
    counts = collections.Counter(example.label for example in examples)
    return min(counts, key=lambda label: (-counts[label], label))


def draw(examples, num_labels, seed):
    """Returns so many of the examples; the smaller draws of a seed are part of the larger ones."""
    return [examples[index] for index in np.random.default_rng(seed).permutation(len(examples))[:num_labels]]


def measure(contestants, sizes, results_file):
    """Returns {name: {number of labels: accuracies, one a seed}}, with what a run before this one has left."""
    found = read_json(results_file, "the results") if os.path.exists(results_file) else {}
    for num_labels in sizes:
        for name, function in contestants.functions.items():
            accuracies = found.setdefault(name, {}).setdefault(str(num_labels), [])
            for seed in range(len(accuracies), FLAGS.num_seeds):
                accuracies.append(function(draw(contestants.train_examples, num_labels, seed), seed))
                write_json(results_file, found)
                print(f"{num_labels:>7,} labels, seed {seed}, {name}: {accuracies[-1]:.1%}", flush=True)
    return found


def print_table(results, sizes):
    """Prints the median of the draws, with the lowest and the highest."""
    print("\n| labels | " + " | ".join(results) + " |\n|" + "---|" * (1 + len(results)))
    for num_labels in sizes:
        cells = [_describe(by_size[str(num_labels)]) for by_size in results.values()]
        print(f"| {num_labels:,} | " + " | ".join(cells) + " |")


def _describe(accuracies):
    median, low, high = (100 * value for value in (statistics.median(accuracies), min(accuracies), max(accuracies)))
    return f"{median:.1f}%" if high - low < 0.05 else f"{median:.1f}% ({low:.1f} to {high:.1f})"


def plot(results, sizes, path):
    """Draws the medians over the number of labels, and what lies between the lowest and the highest."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    styles = {MAJORITY: ("0.6", ":"), LINEAR: ("0.35", "--"), RANDOM: ("C1", "--")}
    for number, (name, by_size) in enumerate(results.items()):
        color, line = styles.get(name, (f"C{(0, 2, 3, 4)[number % 4]}", "-"))
        rows = [[100 * value for value in by_size[str(num_labels)]] for num_labels in sizes]
        axes.plot(sizes, [statistics.median(row) for row in rows], line, color=color, marker="o", ms=4, label=name)
        axes.fill_between(sizes, list(map(min, rows)), list(map(max, rows)), color=color, alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{num_labels:,}" for num_labels in sizes])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}%"))
    axes.set(xlabel="labelled reviews to learn from", ylabel="reviews classified correctly")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)


def main(_):
    models = dict(text.split("=", 1) for text in FLAGS.model)
    sizes = sorted(map(int, FLAGS.num_labels))
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    files = DATASETS[FLAGS.task_name]
    train_path, dev_path = (find_files(FLAGS.data_dir, names) for names in (files.train, files.dev))
    contestants = Contestants(models, train_path, dev_path)
    results = measure(contestants, sizes, os.path.join(FLAGS.output_dir, "labels_needed.json"))
    results = {name: results[name] for name in contestants.functions}
    print_table(results, sizes)
    plot(results, sizes, os.path.join(FLAGS.output_dir, "labels_needed.png"))


if __name__ == "__main__":
    app.run(main)
