"""The worth of each way to distil in pre-training after the same processor time on the same text, as a table.

python -m benchmarks.distillation_worth --input_file='shards/train-*.tfrecord' --data_dir=nsmc \
    --output_dir=benchmark/distillation

One shape of the student for all, from random weights, so one that every way can compare with the teacher. Each learns
for as many steps as its step's processor time allows (`python -m benchmarks.objective_steps`); one has no teacher, and
learns what the shards were made for. Then `benchmarks.labels_needed` fine-tunes them as a user does who
tunes nothing, with the linear model and the same shape from random weights beside. What is done is kept, and the
command goes on where it was stopped. Needs scikit-learn and matplotlib.
"""

import os
import subprocess
import sys
import typing

from absl import app, flags

from albert_tf.base.startup import computes_in_bfloat16
from benchmarks.stage import ROOT, run_stage

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", None, "Shards to pre-train on, made with the teacher's vocabulary.", required=True)
flags.DEFINE_string("data_dir", None, "Folder of NSMC.", required=True)
flags.DEFINE_string("output_dir", None, "Folder for everything.", required=True)
flags.DEFINE_string("teacher", os.path.join(ROOT, "models", "albert_ko_small"), "Folder of the model to distil.")
flags.DEFINE_string("albert_config_file", os.path.join(ROOT, "configs", "albert_ko_half.json"), "The student.")
flags.DEFINE_integer("num_train_steps", 800, "Steps of 32 examples, of relations.", 1)
flags.DEFINE_integer("num_pretrainings", 1, "Pre-trainings of each student, each with its own seed.", 1)
flags.DEFINE_list("num_labels", ["1000"], "How many labelled reviews to draw.")
flags.DEFINE_integer("num_seeds", 3, "How many draws of each size.", 1)


class Contestant(typing.NamedTuple):
    """A student's lesson.

    Attributes:
        distillation: Of its teacher; None without one.
        step: Processor time of a step, as a multiple of that of relations.
    """

    distillation: str | None
    step: float = 1.0


CONTESTANTS = {
    "no teacher": Contestant(None, 0.59),
    "relations": Contestant("relations"),
    "logits": Contestant("logits", 3.11),
    "layers": Contestant("layers", 0.84),
}


def pretrain(name, contestant, number):
    """Pre-trains a contestant, with a seed of its own for each number from 1, and returns the folder of its run."""
    folder = os.path.join(FLAGS.output_dir, name.replace(" ", "_"))
    num_steps = round(FLAGS.num_train_steps / contestant.step)
    settings = {}
    if contestant.distillation:
        settings = {"objective": "distil", "teacher": FLAGS.teacher, "distillation": contestant.distillation}
    if not os.path.exists(os.path.join(folder, "eval_results.json")):
        run_stage(
            "run_pretraining.py",
            input_file=FLAGS.input_file,
            output_dir=folder,
            flagfile=os.path.join(ROOT, "configs", "recipes", "ko_small.cfg"),
            albert_config_file=FLAGS.albert_config_file,
            use_bfloat16=computes_in_bfloat16(),
            num_train_steps=num_steps,
            num_warmup_steps=num_steps // 20,
            eval_every_steps=num_steps,
            random_seed=12344 + number,
            **settings,
        )
    return folder


def main(_):
    runs = {}
    for number in range(1, 1 + FLAGS.num_pretrainings):
        for contestant, ways in CONTESTANTS.items():
            name = contestant if number == 1 else f"{contestant} {number}"
            runs[name] = pretrain(name, ways, number)
    arguments = [
        f"--data_dir={FLAGS.data_dir}",
        f"--output_dir={os.path.join(FLAGS.output_dir, 'nsmc')}",
        f"--num_labels={','.join(FLAGS.num_labels)}",
        f"--num_seeds={FLAGS.num_seeds}",
        *(f"--model={name}={folder}" for name, folder in runs.items()),
    ]
    subprocess.run([sys.executable, "-m", "benchmarks.labels_needed", *arguments], check=True, cwd=ROOT)


if __name__ == "__main__":
    app.run(main)
