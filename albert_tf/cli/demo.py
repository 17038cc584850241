"""The command `demo.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import json
import os
import shutil
import subprocess
import sys
import time

from absl import flags

from albert_tf.corpus.reader import find_corpus_files
from albert_tf.errors import InputError
from albert_tf.files import read_json, write_json
from albert_tf.finetuning.datasets import DATASETS, find_file
from albert_tf.finetuning.labelled_text import read_examples
from albert_tf.training.progress import METRICS_FILE, PLOT_FILE, format_seconds
from albert_tf.training.run_folder.results import EVAL_RESULTS_FILE

FLAGS = flags.FLAGS

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string("output_dir", "demo_output", "Folder for everything the demo writes.")
    flags.DEFINE_string("corpus", None, "Your own text: a file, a glob, or a folder of such files.")
    flags.DEFINE_integer("num_train_steps", 5000, "Number of pre-training steps.", lower_bound=1)
    flags.DEFINE_bool("overwrite", False, "Replace the demo that is in --output_dir already.")


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONFIG = os.path.join(ROOT, "configs", "albert_demo.json")
SAMPLES = os.path.join(ROOT, "samples")
RESULTS_FILE = "demo_results.json"
STAGES = ("vocabulary", "data", "pretraining", "classifier", "classifier_from_random_weights")


def prepare_output_dir():
    """Makes room for a new demo; deletes nothing but an earlier one."""
    found = sorted(os.listdir(FLAGS.output_dir)) if os.path.isdir(FLAGS.output_dir) else []
    if found and not os.path.exists(os.path.join(FLAGS.output_dir, RESULTS_FILE)):
        raise InputError(f"--output_dir={FLAGS.output_dir} holds something else than a demo; choose another folder")
    if found and not FLAGS.overwrite:
        raise InputError(f"--output_dir={FLAGS.output_dir} holds a demo; pass --overwrite to replace it")
    for stage in STAGES:
        shutil.rmtree(os.path.join(FLAGS.output_dir, stage), ignore_errors=True)
    write_json(os.path.join(FLAGS.output_dir, RESULTS_FILE), {})


def run_stage(title, script, **flag_values):
    """Runs a script of the top level in a process of its own, showing the command and what it prints."""
    arguments = [f"--{name}" if value is True else f"--{name}={value}" for name, value in flag_values.items()]
    print(f"\n== {title}\npython {script} " + " \\\n    ".join(arguments), flush=True)
    if subprocess.run([sys.executable, os.path.join(ROOT, script), *arguments], check=False).returncode:
        raise InputError(f"the stage '{title}' failed; see above")


def train_classifier(output_dir, **flag_values):
    run_stage(
        f"A classifier from {'the pre-trained model' if 'init_checkpoint' in flag_values else 'random weights'}",
        "run_classifier.py",
        task_name="tsv",
        data_dir=os.path.join(SAMPLES, "reviews"),
        output_dir=output_dir,
        do_train=True,
        do_eval=True,
        do_predict=True,
        max_seq_length=64,
        train_batch_size=16,
        learning_rate=5e-4,
        num_train_epochs=5,
        warmup_step=30,
        bias_correction=True,
        **flag_values,
    )
    return read_json(os.path.join(output_dir, EVAL_RESULTS_FILE), "the results")["accuracy"]


def held_out_metrics(output_dir):
    """Returns the held-out metrics before the first and after the last step of a run."""
    with open(os.path.join(output_dir, METRICS_FILE), encoding="utf-8") as file:
        records = [record for record in map(json.loads, file) if record["split"] == "held_out"]
    return records[0], records[-1]


def majority_accuracy():
    """Returns the share of the dev reviews that have the most frequent label of the training reviews."""
    files = DATASETS["tsv"]
    train, dev = (
        [example.label for example in read_examples(find_file(os.path.join(SAMPLES, "reviews"), names), files, True)]
        for names in (files.train, files.dev)
    )
    majority = max(sorted(set(train)), key=train.count)
    return dev.count(majority) / len(dev)


def print_table(title, rows):
    """Prints rows of (name, value), aligned."""
    width = max(len(name) for name, _ in rows)
    print(f"\n{title}\n{'-' * len(title)}")
    for name, value in rows:
        print(f"{name:<{width}}  {value}")


def main():
    started_at = time.monotonic()
    corpus = find_corpus_files([FLAGS.corpus or os.path.join(SAMPLES, "corpus")], "corpus")
    prepare_output_dir()
    vocabulary, data, pretraining, classifier, scratch = (os.path.join(FLAGS.output_dir, stage) for stage in STAGES)
    vocab_file = os.path.join(vocabulary, "vocab.txt")

    run_stage(
        "A vocabulary",
        "build_vocab.py",
        input_file=",".join(corpus),
        output_dir=vocabulary,
        vocab_size=read_json(CONFIG, "the configuration")["vocab_size"],
        limit_alphabet=2000,
    )
    run_stage(
        "Pre-training data",
        "create_pretraining_data.py",
        input_file=",".join(corpus),
        output_file=os.path.join(data, "train.tfrecord"),
        vocab_file=vocab_file,
        max_seq_length=64,
        dupe_factor=10,
        held_out_fraction=0.1,
    )
    run_stage(
        "Pre-training",
        "run_pretraining.py",
        input_file=os.path.join(data, "train.tfrecord"),
        albert_config_file=CONFIG,
        output_dir=pretraining,
        do_train=True,
        do_eval=True,
        train_batch_size=16,
        optimizer="adamw",
        bias_correction=True,
        learning_rate=1.5e-3,
        num_train_steps=FLAGS.num_train_steps,
        num_warmup_steps=FLAGS.num_train_steps // 10,
        save_checkpoints_steps=1000,
        iterations_per_loop=250,
    )
    pretrained_accuracy = train_classifier(classifier, init_checkpoint=pretraining)
    random_accuracy = train_classifier(scratch, albert_config_file=CONFIG, vocab_file=vocab_file)

    manifest = read_json(os.path.join(data, "manifest.json"), "the manifest")
    before, after = held_out_metrics(pretraining)
    results = {
        "vocab_size": manifest["vocab_size"],
        "unknown_word_rate": manifest["unknown_word_rate"],
        "training_examples": manifest["splits"]["train"]["examples"],
        **{
            f"{name}_{when}": metrics[name]
            for name in ("masked_lm_accuracy", "sentence_order_accuracy")
            for when, metrics in (("before", before), ("after", after))
        },
        "classifier_accuracy_pretrained": pretrained_accuracy,
        "classifier_accuracy_random_weights": random_accuracy,
        "classifier_accuracy_majority": majority_accuracy(),
    }
    write_json(os.path.join(FLAGS.output_dir, RESULTS_FILE), results)
    change = "{:.1%} before pre-training, {:.1%} after"
    print_table(
        f"albert_tf demo: done in {format_seconds(time.monotonic() - started_at)}",
        [
            ("Vocabulary", f"{results['vocab_size']:,} pieces"),
            ("Unknown words", f"{results['unknown_word_rate']:.2%}"),
            ("Training examples", f"{results['training_examples']:,}"),
            (
                "Masked pieces guessed (held-out)",
                change.format(results["masked_lm_accuracy_before"], results["masked_lm_accuracy_after"]),
            ),
            (
                "Sentence order guessed (held-out)",
                change.format(results["sentence_order_accuracy_before"], results["sentence_order_accuracy_after"]),
            ),
            ("Reviews classified, pre-trained", f"{pretrained_accuracy:.1%}"),
            ("Reviews classified, random weights", f"{random_accuracy:.1%}"),
            ("Reviews classified, majority class", f"{results['classifier_accuracy_majority']:.1%}"),
            ("Vocabulary file", vocab_file),
            ("Shards", data),
            ("Checkpoints", pretraining),
            ("TensorBoard logs", os.path.join(pretraining, "logs")),
            ("Plot of the loss", os.path.join(pretraining, PLOT_FILE)),
            ("Classifier", classifier),
            ("Predictions", os.path.join(classifier, "predictions.tsv")),
        ],
    )


def run():
    """Runs the command."""
    app.run(main, define_flags)
