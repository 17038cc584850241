"""The command that runs every stage once, and says what came of it."""

from albert_tf.cli.app import command  # first: it keeps TensorFlow quiet at its start

# isort: split
import csv
import dataclasses
import json
import math
import os
import subprocess
import sys
import time

import numpy as np

from albert_tf.base.checkpoint_files import EVAL_RESULTS_FILE
from albert_tf.base.errors import InputError
from albert_tf.base.files import read_json, remove, write_json
from albert_tf.base.settings import MODEL, TRAINING, Settings, setting
from albert_tf.base.shipped_files import shipped_path
from albert_tf.finetuning import Classification
from albert_tf.reading.documents import find_corpus_files
from albert_tf.training.progress import METRICS_FILE, PLOT_FILE, format_seconds
from albert_tf.training.run_folder.guard import SETTINGS_FILE


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoSettings(Settings):
    """The text that the demo learns from, and where it writes."""

    output_dir: str = setting("demo_output", "Folder for everything the demo writes.", group=MODEL)
    corpus: str | None = setting(None, "Your own text: a file, a glob, or a folder of such files.")
    num_train_steps: int = setting(1000, "Number of pre-training steps.", least=1, group=TRAINING)
    random_seed: int = setting(12345, "Seed of everything that is drawn.", least=0, group=TRAINING)
    overwrite: bool = setting(False, "Replace an existing demo in --output_dir.")


CONFIG = shipped_path("configs/albert_demo.json")
RECIPE = shipped_path("configs/recipes/demo.cfg")
SAMPLES = shipped_path("samples")
REVIEWS = os.path.join(SAMPLES, "reviews")
# Texts to classify are worth reading beforehand: so the reviews to learn from are here too, without their labels.
SAMPLE_TEXTS = [os.path.join(SAMPLES, name) for name in ("corpus", "reviews/texts_of_train.txt", "unlabelled_reviews")]
SHIPPED_MODEL = shipped_path("models/albert_ko_small")
RESULTS_FILE = "demo_results.json"
STAGES = (
    "vocabulary",
    "data",
    "pretraining",
    "classifier_from_random_weights",
    "classifier_from_own_text",
    "classifier_from_shipped_model",
)


def prepare_output_dir(settings):
    """Makes room for a new demo; deletes nothing but an earlier one."""
    path = os.path.join(settings.output_dir, RESULTS_FILE)
    if os.listdir(settings.output_dir):
        if not os.path.exists(path):
            raise InputError(f"`output_dir={settings.output_dir}` holds no demo but something else; choose another")
        if read_json(path, "the demo's results") and not settings.overwrite:
            raise InputError(f"`output_dir={settings.output_dir}` holds a demo; pass `overwrite` to replace it")
    write_json(path, {})  # first, for an empty one says that the rest, of a demo that was killed, may be deleted
    for stage in STAGES:
        remove(os.path.join(settings.output_dir, stage))


def run_stage(title, command, **flag_values):
    """Runs a command in a process of its own, showing it and what it prints."""
    arguments = [f"--{name}" if value is True else f"--{name}={value}" for name, value in flag_values.items()]
    start, typed = command_line(command)
    print(f"\n== {title}\n{typed} " + " \\\n    ".join(arguments), flush=True)
    if subprocess.run([*start, *arguments], check=False).returncode:
        raise InputError(f"the stage '{title}' failed; see above")


def command_line(command):
    """Returns arguments to start a command with this Python, and the line that a user would type."""
    script = os.path.join(shipped_path(), f"{command}.py")
    if os.path.isfile(script):
        return [sys.executable, script], f"python {command}.py"
    stage = command.replace("_", "-")
    return [sys.executable, "-m", "albert_tf", stage], f"albert-tf {stage}"


def train_classifier(settings, start, output_dir, **flag_values):
    """Fine-tunes on the sample's reviews; returns which held-out ones are classified correctly, bool [reviews]."""
    run_stage(
        f"A classifier from {start}",
        "run_classifier",
        task_name="tsv",
        data_dir=REVIEWS,
        output_dir=output_dir,
        do_train=True,
        do_eval=True,
        do_predict=True,
        random_seed=settings.random_seed,
        **flag_values,
    )
    with open(os.path.join(output_dir, Classification.predictions_file), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return np.array([row["prediction"] == row["label"] for row in rows])


def held_out_metrics(output_dir):
    """Returns the held-out metrics before the first step of a run, and those with the lowest loss."""
    with open(os.path.join(output_dir, METRICS_FILE), encoding="utf-8") as file:
        records = [record for record in map(json.loads, file) if record["split"] == "held_out"]
    return records[0], min(records, key=lambda record: record["loss"])


def conclusion(right, right_from_random):
    """Returns a verdict on two classifiers, by the reviews that each is right about, both bool [reviews]."""
    points = f"{100 * (right.mean() - right_from_random.mean()):+.1f} points"
    gained, lost = np.sum(right & ~right_from_random), np.sum(right_from_random & ~right)
    # McNemar (1947): by chance alone, each review that they disagree about is as likely gained as lost.
    if abs(gained - lost) <= 2 * math.sqrt(gained + lost):
        return f"{points} over random weights, but {len(right)} reviews can't tell that from chance"
    if gained > lost:
        return f"{points} over random weights: pre-training pays"
    return f"{points} against random weights: too little text, or of another kind"


def print_table(title, rows):
    """Prints rows of (name, value), aligned."""
    width = max(len(name) for name, _ in rows)
    print(f"\n{title}\n{'-' * len(title)}")
    for name, value in rows:
        print(f"{name:<{width}}  {value}")


@command(DemoSettings, output_flag="output_dir")
def demo(settings):
    """Runs the whole road on the built-in sample or on your text: vocabulary, shards, pre-training, a classifier.

    albert-tf demo --output_dir=demo_output

    Every stage is one of the commands that you would type yourself, and is printed before it runs.
    """
    started_at = time.monotonic()
    corpus = find_corpus_files([settings.corpus] if settings.corpus else SAMPLE_TEXTS, "corpus")
    prepare_output_dir(settings)
    vocabulary, data, pretraining, from_random, from_own, from_shipped = (
        os.path.join(settings.output_dir, stage) for stage in STAGES
    )
    vocab_file = os.path.join(vocabulary, "vocab.txt")

    run_stage(
        "A vocabulary",
        "build_vocab",
        input_file=",".join(corpus),
        output_dir=vocabulary,
        vocab_size=read_json(CONFIG, "the configuration")["vocab_size"],
        limit_alphabet=2000,
        random_seed=settings.random_seed,
    )
    run_stage(
        "Pre-training data",
        "create_pretraining_data",
        input_file=",".join(corpus),
        output_file=os.path.join(data, "train.tfrecord"),
        vocab_file=vocab_file,
        max_seq_length=64,
        objective="halves",
        masked_lm_prob=0.3,
        ngram=1,
        dupe_factor=8,
        held_out_fraction=0.05,
        random_seed=settings.random_seed,
    )
    run_stage(
        "Pre-training",
        "run_pretraining",
        flagfile=RECIPE,
        albert_config_file=CONFIG,
        input_file=os.path.join(data, "train.tfrecord"),
        output_dir=pretraining,
        num_train_steps=settings.num_train_steps,
        num_warmup_steps=settings.num_train_steps // 10,
        random_seed=settings.random_seed,
    )
    right = {
        "random_weights": train_classifier(
            settings, "random weights", from_random, albert_config_file=CONFIG, vocab_file=vocab_file
        ),
        "own_text": train_classifier(settings, "what was just pre-trained", from_own, init_checkpoint=pretraining),
        "shipped_model": train_classifier(
            settings, "the included small model", from_shipped, init_checkpoint=SHIPPED_MODEL
        ),
    }

    accuracy = {start: float(reviews.mean()) for start, reviews in right.items()}
    found = read_json(os.path.join(from_shipped, EVAL_RESULTS_FILE), "the results")
    accuracy["majority"] = found["blind_accuracy"]
    if "linear_accuracy" in found:  # without scikit-learn nobody knows it
        accuracy["linear"] = found["linear_accuracy"]
    num_labels = read_json(os.path.join(from_shipped, SETTINGS_FILE), "the settings")["train_file"]["examples"]
    manifest = read_json(os.path.join(data, "manifest.json"), "the manifest")
    before, best = held_out_metrics(pretraining)
    results = {
        "vocab_size": manifest["vocab_size"],
        "unknown_word_rate": manifest["unknown_word_rate"],
        "training_examples": manifest["splits"]["train"]["examples"],
        "masked_lm_accuracy_before": before["masked_lm_accuracy"],
        "masked_lm_accuracy_after": best["masked_lm_accuracy"],
        **{f"classifier_accuracy_{start}": value for start, value in accuracy.items()},
    }
    write_json(os.path.join(settings.output_dir, RESULTS_FILE), results)
    print_table(
        f"albert_tf demo: done in {format_seconds(time.monotonic() - started_at)}",
        [
            ("Vocabulary", f"{results['vocab_size']:,} pieces; unknown words {results['unknown_word_rate']:.2%}"),
            ("Training examples", f"{results['training_examples']:,}"),
            (
                "Masked pieces guessed",
                f"{before['masked_lm_accuracy']:.1%} before pre-training, {best['masked_lm_accuracy']:.1%} after "
                "(of text held out)",
            ),
            ("Plot of the loss", os.path.join(pretraining, PLOT_FILE)),
            ("Checkpoints, TensorBoard logs", pretraining),
            ("Predictions", os.path.join(from_shipped, Classification.predictions_file)),
        ],
    )
    own, shipped = (conclusion(right[start], right["random_weights"]) for start in ("own_text", "shipped_model"))
    rows = (
        ("always the most frequent label", "majority", "what has to be beaten"),
        ("a linear model on character n-grams", "linear", "what needs no network"),
        ("random weights", "random_weights", f"what {num_labels} labels teach without pre-training"),
        (f"pre-trained on {'your text' if settings.corpus else 'the sample'}", "own_text", own),
        ("models/albert_ko_small, which is included", "shipped_model", shipped),
    )
    print_table(
        f"{len(right['own_text'])} reviews classified, after learning from {num_labels}",
        [(name, f"{accuracy[start]:.1%}  {told}") for name, start, told in rows if start in accuracy],
    )
