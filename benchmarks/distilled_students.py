"""How much of a deep teacher's gain students of a half and a quarter of its time keep, with few labels, as a table.

python -m benchmarks.distilled_students --input_file='shards/train-*.tfrecord' --data_dir=nsmc \
    --unlabelled_file=reviews.tsv --output_dir=benchmark/students

The teacher has twelve layers: the four of models/albert_ko_small, each with two behind it that add nothing at first. It
is trained further on the shards and fine-tuned on all labels of --data_dir. Students start from six or three of its
layers (`--student_layers`), learn its relations on the same shards, and are fine-tuned on the first --num_labels
labels, with the fine-tuned teacher and --unlabelled_file, and without: --num_seeds times each. The linear model learns
from the same labels. The gain is what the teacher has above the linear model. Time is CPU time of the encoder for 32
texts of 128 pieces. What is done is kept, and the command goes on where it was stopped. Needs scikit-learn.
"""

import dataclasses
import itertools
import json
import os
import shutil
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

import numpy as np
import tensorflow as tf
from absl import app, flags

from albert_tf.base.checkpoint_files import CheckpointReader, resolve_checkpoint, write_checkpoint
from albert_tf.base.files import read_json
from albert_tf.base.startup import computes_in_bfloat16
from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertEncoder
from benchmarks.stage import ROOT, run_stage

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", None, "Shards with the vocabulary of models/albert_ko_small.", required=True)
flags.DEFINE_string("data_dir", None, "Folder of NSMC.", required=True)
flags.DEFINE_string("unlabelled_file", None, "Reviews that nobody has labelled.", required=True)
flags.DEFINE_string("output_dir", None, "Folder for everything.", required=True)
flags.DEFINE_integer("num_teacher_steps", 1500, "Steps of 32 examples of the teacher's pre-training.", 1)
flags.DEFINE_integer("num_student_steps", 1200, "The same of each student.", 1)
flags.DEFINE_integer("num_labels", 1000, "How many labelled reviews the students have.", 1)
flags.DEFINE_integer("num_seeds", 3, "How often each student is fine-tuned.", 1)

START = os.path.join(ROOT, "models", "albert_ko_small")
# How often a layer of START is there in the teacher: once as it is, and then as one that adds nothing at first.
DEPTH = 3
STUDENTS = {"half": (0, 1, 3, 6, 9, 10), "quarter": (0, 6, 9)}
BATCH_SIZE, LENGTH = 32, 128


def in_output_dir(*names):
    """Returns a path in --output_dir."""
    return os.path.join(FLAGS.output_dir, *names)


def run_once(script, folder, **flag_values):
    """Runs a command that has not been run to its end, and returns what it measured."""
    results = os.path.join(folder, "eval_results.json")
    if not os.path.exists(results):
        run_stage(script, output_dir=folder, do_train=True, do_eval=True, **flag_values)
    return read_json(results, "the results")


def pretrain(name, num_steps, **settings):
    """Pre-trains a model as models/albert_ko_small was, in fewer steps, and returns its folder."""
    folder = in_output_dir(name)
    results = run_once(
        "run_pretraining.py",
        folder,
        flagfile=os.path.join(ROOT, "configs", "recipes", "ko_small.cfg"),
        input_file=FLAGS.input_file,
        word_embeddings="random",  # they come from a model
        use_bfloat16=computes_in_bfloat16(),
        num_train_steps=num_steps,
        num_warmup_steps=num_steps // 20,
        eval_every_steps=num_steps,
        **settings,
    )
    print(f"{name}: {json.dumps(results)}", flush=True)
    return folder


def deepen():
    """Writes START with more layers that compute almost the same, and returns the folder.

    Such a layer is a copy of the one before it, but what its attention and its feed-forward network add is multiplied
    by 0 (Chen et al. 2016, Net2DeeperNet).
    """
    folder = in_output_dir("deepened")
    os.makedirs(folder, exist_ok=True)
    config = AlbertConfig.from_json_file(os.path.join(START, "albert_config.json"))
    number = DEPTH * config.num_hidden_layers
    deep = dataclasses.replace(config, num_hidden_layers=number, num_hidden_groups=number)
    with open(os.path.join(folder, "albert_config.json"), "w", encoding="utf-8") as file:
        json.dump(deep.to_dict(), file, indent=2)
    for name in ("vocab.txt", "tokenizer.json", "untrained.json"):
        shutil.copy(os.path.join(START, name), folder)
    reader, values = CheckpointReader(resolve_checkpoint(START)), {}
    for name, value in reader.read(reader.shapes).items():
        parts = name.split("/")
        if not parts[2].endswith("_layers"):
            values[name] = value.astype(np.float32)
            continue
        for copy in range(DEPTH):
            parts[3] = str(DEPTH * int(name.split("/")[3]) + copy)
            adds = copy == 0 or "output_dense" not in parts
            values["/".join(parts)] = adds * value.astype(np.float32)
    write_checkpoint(os.path.join(folder, "model.ckpt-0"), values)
    return folder


def make_teacher():
    """Returns the folders of the teacher, pre-trained and fine-tuned."""
    start = deepen()
    pretrained = pretrain(
        "teacher",
        FLAGS.num_teacher_steps,
        albert_config_file=os.path.join(start, "albert_config.json"),
        init_checkpoint=start,
        learning_rate=1e-3,  # of a model that has been trained already
    )
    fine_tuned = in_output_dir("teacher_nsmc")
    run_once("run_classifier.py", fine_tuned, task_name="nsmc", data_dir=FLAGS.data_dir, init_checkpoint=pretrained)
    return pretrained, fine_tuned


def make_student(name, teacher):
    """Returns the folder of a student that has learnt the relations of the pre-trained teacher."""
    return pretrain(
        name,
        FLAGS.num_student_steps,
        albert_config_file="",
        objective="distil",
        teacher=teacher,
        student_layers=",".join(map(str, STUDENTS[name])),
    )


def few_labels():
    """Returns a folder like --data_dir, with the first --num_labels labels."""
    folder = in_output_dir("few_labels")
    os.makedirs(folder, exist_ok=True)
    for name, count in (("ratings_train.txt", 1 + FLAGS.num_labels), ("ratings_dev.txt", None)):
        with open(os.path.join(FLAGS.data_dir, name), encoding="utf-8") as source:
            lines = list(itertools.islice(source, count))
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.writelines(lines)
    return folder


def fine_tune(student, folder, data, **settings):
    """Returns a student's accuracies, one a seed, and what a linear model has."""
    runs = [
        run_once(
            "run_classifier.py",
            f"{folder}_{seed}",
            task_name="nsmc",
            data_dir=data,
            init_checkpoint=student,
            random_seed=seed,
            **settings,
        )
        for seed in range(FLAGS.num_seeds)
    ]
    return [results["accuracy"] for results in runs], runs[0]["linear_accuracy"]


def encoder_seconds(folder):
    """Returns the CPU time of a batch, the median of several."""
    config = AlbertConfig.from_json_file(os.path.join(folder, "albert_config.json"))
    encoder = AlbertEncoder(config)
    batch = {
        "input_ids": tf.fill([BATCH_SIZE, LENGTH], 10),
        "input_mask": tf.ones([BATCH_SIZE, LENGTH], tf.int32),
        "segment_ids": tf.zeros([BATCH_SIZE, LENGTH], tf.int32),
    }
    compute = tf.function(lambda: encoder(batch)["sequence_output"], autograph=False)
    compute()
    seconds = []
    for _ in range(15):
        began_at = time.process_time()
        compute()
        seconds.append(time.process_time() - began_at)
    return statistics.median(seconds)


def describe(accuracies):
    """Returns the median in percent, with the lowest and the highest."""
    low, median, high = (100 * value for value in (min(accuracies), statistics.median(accuracies), max(accuracies)))
    return f"{median:.1f} ({low:.1f} to {high:.1f})" if len(accuracies) > 1 else f"{median:.1f}"


def main(_):
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    pretrained, teacher = make_teacher()
    teacher_accuracy = read_json(os.path.join(teacher, "eval_results.json"), "the results")["accuracy"]
    data, rows, full = few_labels(), [], encoder_seconds(pretrained)
    for name in STUDENTS:
        student = make_student(name, pretrained)
        alone, linear = fine_tune(student, in_output_dir(f"{name}_alone"), data)
        taught, _ = fine_tune(
            student, in_output_dir(f"{name}_taught"), data, teacher=teacher, unlabelled_file=FLAGS.unlabelled_file
        )
        kept = (statistics.median(taught) - linear) / (teacher_accuracy - linear)
        share = encoder_seconds(student) / full
        rows.append(f"| {name} | {share:.2f} | {describe(alone)} | {describe(taught)} | {kept:.0%} |")
    print("\n| | encoder time | labels alone | with the teacher | share of its gain |\n|---|---|---|---|---|")
    print(f"| linear model | none | {describe([linear])} | | 0% |")
    print(f"| teacher, all labels | 1 | {describe([teacher_accuracy])} | | 100% |")
    print("\n".join(rows))


if __name__ == "__main__":
    app.run(main)
