"""Whether a run that is killed again and again ends as one that is left alone, bit for bit.

python -m benchmarks.soak --corpus='corpus/*.txt.gz' --output_dir=soak

Trains the same model twice: undisturbed, and killed with SIGKILL at random moments, after each of which the same
command starts again. Then compares every variable of the two last checkpoints (weights, moments, counters) and every
row of metrics.jsonl but for the speeds. The moments follow from --seed: a step of the run, and up to three seconds
after the run has told of it, so that kills also fall into saving and evaluating. With the defaults each run takes about
half an hour on two cores. Ends with exit code 1 if anything differs.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from absl import app, flags

from albert_tf.training.progress import format_seconds, read_metrics
from benchmarks.stage import ROOT, run_stage

FLAGS = flags.FLAGS

flags.DEFINE_string("corpus", None, "Text files, one sentence a line; comma-separated paths or globs.", required=True)
flags.DEFINE_string("output_dir", None, "Folder for the vocabulary, the shards and the two runs.", required=True)
flags.DEFINE_integer("num_train_steps", 1500, "Number of steps of 32 examples.", lower_bound=1)
flags.DEFINE_integer("num_kills", 5, "How often the second run is killed.", lower_bound=1)
flags.DEFINE_bool("side_by_side", False, "Run both at once, which takes less time on more cores.")
flags.DEFINE_integer("seed", 0, "Seed of the moments.")

LONGEST_DELAY = 3.0


def prepare():
    """Makes the vocabulary and the shards, unless they are there."""
    vocabulary, data = (os.path.join(FLAGS.output_dir, name) for name in ("vocabulary", "data"))
    if not os.path.exists(os.path.join(data, "manifest.json")):
        run_stage("build_vocab.py", input_file=FLAGS.corpus, output_dir=vocabulary, vocab_size=8000, overwrite=True)
        run_stage(
            "create_pretraining_data.py",
            input_file=FLAGS.corpus,
            output_file=os.path.join(data, "train.tfrecord"),
            num_shards=4,
            vocab_file=os.path.join(vocabulary, "vocab.txt"),
            max_seq_length=128,
            overwrite=True,
        )
    with open(os.path.join(ROOT, "configs", "albert_small.json"), encoding="utf-8") as file:
        config = {**json.load(file), "vocab_size": 8000, "hidden_dropout_prob": 0.1}
    with open(os.path.join(FLAGS.output_dir, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)


def start(name, stdout):
    """Starts a run in a process of its own."""
    flag_values = {
        "input_file": os.path.join(FLAGS.output_dir, "data", "train-*.tfrecord"),
        "albert_config_file": os.path.join(FLAGS.output_dir, "config.json"),
        "output_dir": os.path.join(FLAGS.output_dir, name),
        "do_eval": "true",
        "eval_every_steps": 250,
        "max_eval_steps": 10,
        "train_batch_size": 32,
        "scale_learning_rate": "sqrt",
        "num_train_steps": FLAGS.num_train_steps,
        "num_warmup_steps": FLAGS.num_train_steps // 10,
        "save_checkpoints_steps": 50,
        "iterations_per_loop": 10,
        "ema_decay": 0.999,
    }
    command = [sys.executable, os.path.join(ROOT, "run_pretraining.py")]
    command += [f"--{flag}={value}" for flag, value in flag_values.items()]
    return subprocess.Popen(command, stdout=stdout, text=True)


def kill_at(process, step, delay):
    """Kills a run some seconds after it has told of a step; returns what step it told of last."""
    told = 0
    for line in process.stdout:
        match = re.match(r"step ([\d,]+)/", line)
        told = int(match[1].replace(",", "")) if match else told
        if told >= step:
            break
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return told


def finish(process):
    """Waits for the end of a run.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    if process.wait():
        raise subprocess.CalledProcessError(process.returncode, process.args)


def variables(name):
    """Returns all variables of the last checkpoint of a run."""
    reader = tf.train.load_checkpoint(os.path.join(FLAGS.output_dir, name))
    names = [key for key in reader.get_variable_to_shape_map() if key.endswith("VARIABLE_VALUE")]
    return {key: reader.get_tensor(key) for key in names}


def metrics(name):
    """Returns the rows of a run's metrics.jsonl without speeds."""
    rows = read_metrics(os.path.join(FLAGS.output_dir, name))
    return [{key: value for key, value in row.items() if not key.endswith("_per_second")} for row in rows]


def main(_):
    prepare()
    draws = random.Random(FLAGS.seed)
    steps = sorted(draws.randrange(1, FLAGS.num_train_steps) for _ in range(FLAGS.num_kills))
    moments = [(step, draws.uniform(0.0, LONGEST_DELAY)) for step in steps]
    started_at = time.monotonic()
    undisturbed = start("undisturbed", subprocess.DEVNULL)
    if not FLAGS.side_by_side:
        finish(undisturbed)
        print(f"undisturbed: {format_seconds(time.monotonic() - started_at)}", flush=True)
        started_at = time.monotonic()
    for step, delay in moments:
        told = kill_at(start("killed", subprocess.PIPE), step, delay)
        print(f"killed {delay:.1f} s after it told of step {told:,} (drawn: {step:,})", flush=True)
    finish(start("killed", subprocess.DEVNULL))
    if FLAGS.side_by_side:
        finish(undisturbed)
    print(f"{'both' if FLAGS.side_by_side else 'killed'}: {format_seconds(time.monotonic() - started_at)}", flush=True)

    expected, actual = variables("undisturbed"), variables("killed")
    different = [key for key in expected if not np.array_equal(expected[key], actual.get(key))]
    different += sorted(actual.keys() - expected.keys())
    same_metrics = metrics("undisturbed") == metrics("killed")
    print(f"variables: {len(expected)}, of which differ: {', '.join(different) or 'none'}")
    print(f"metrics.jsonl: {len(metrics('undisturbed'))} rows, {'the same' if same_metrics else 'different'}")
    return 1 if different or not same_metrics else 0


if __name__ == "__main__":
    app.run(main)
