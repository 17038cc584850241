"""What fine-tuning comes to on every kind of task: majority, linear model, random weights, pre-trained; as a table.

python -m benchmarks.fine_tuning --data_dir=data --output_dir=benchmark/fine_tuning \
    --model=models/albert_ko_small

Every training is a command of this project in a folder of its own, with no flag but those of the data: what a user
gets who tunes nothing. Medians over --num_trials seeds. What is done is kept in fine_tuning.json, and the command goes
on where it was stopped. The linear model needs scikit-learn.
"""

import collections
import dataclasses
import json
import os
import shutil
import subprocess
import sys

from absl import app, flags

from albert_tf.config import AlbertConfig
from albert_tf.files import read_json, write_json
from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.labelled_text import read_examples
from albert_tf.finetuning.metrics import LABEL_METRICS, SCORE_METRICS
from benchmarks.linear_model import linear_accuracy, linear_pairs, majority_accuracy

FLAGS = flags.FLAGS

flags.DEFINE_string("data_dir", None, "Folder of the data sets' folders.", required=True)
flags.DEFINE_string("output_dir", None, "Folder for runs and results.", required=True)
flags.DEFINE_string("model", "models/albert_ko_small", "Folder of the pre-trained model.")
flags.DEFINE_string("larger_config", None, "Config of a larger model to train from random weights as well, once.")
flags.DEFINE_integer("num_trials", 3, "Trainings of each.", 1)
flags.DEFINE_list("only", [], "Tasks to run; all if left out.")

MAJORITY, LINEAR, RANDOM, PRETRAINED, LARGER = "majority", "linear", "random weights", "pre-trained", "larger, random"


@dataclasses.dataclass(frozen=True)
class Task:
    """A data set and how to train on it.

    Attributes:
        script: The command.
        metric: Name of what is measured, as eval_results.json has it; and the unit that it is printed in.
        files: The files of a folder that is made for it: by name there, by name in the data, or a function of
            (data_dir) that returns the lines of two files, one to train on and one to judge by.
        flags: Of the command.
        dataset: Of the classifier's data sets, whose columns the linear model reads; None for no linear model.
    """

    script: str
    metric: str
    files: dict
    flags: tuple[str, ...] = ()
    dataset: str | None = None


def klue_nli(data_dir):
    """Returns five sixths of KLUE-NLI's dev file to train on, and the rest; no premise is in both."""
    with open(os.path.join(data_dir, "klue", "klue-nli-v1.1_dev.json"), encoding="utf-8") as file:
        rows = json.load(file)
    premises = list(dict.fromkeys(row["premise"] for row in rows))
    kept_out = set(premises[::6])
    parts = ([row for row in rows if (row["premise"] in kept_out) == is_dev] for is_dev in (False, True))
    return [json.dumps(part, ensure_ascii=False) for part in parts]


def klue_ner(data_dir):
    """Returns four fifths of the sentences of KLUE-NER's dev file to train on, and the rest."""
    with open(os.path.join(data_dir, "klue", "klue-ner-v1.1_dev.tsv"), encoding="utf-8") as file:
        sentences = file.read().strip("\n").split("\n\n")
    parts = ([text for number, text in enumerate(sentences) if (number % 5 == 0) == is_dev] for is_dev in (False, True))
    return ["\n\n".join(part) + "\n" for part in parts]


def by_name(script, dataset, metric, **files):
    """Returns a task of `run_classifier.py` whose files have the names in the data set."""
    return Task(script, metric, files, (f"--task_name={dataset}",), dataset)


NSMC = {"ratings_train.txt": "nsmc/ratings_train.txt", "ratings_dev.txt": "nsmc/ratings_dev.txt"}
KORNLI = {"multinli.train.ko.tsv": "kornli/xnli.dev.ko.tsv", "xnli.dev.ko.tsv": "kornli/xnli.test_part.ko.tsv"}
KORSTS = {f"sts-{part}.tsv": f"korsts/sts-{part}.tsv" for part in ("train", "dev")}
PAIRS = {f"{part}.tsv": f"question_pair/{part}.tsv" for part in ("train", "dev")}
NER = {f"{part}.tsv": f"naver_ner/{part}.tsv" for part in ("train", "dev")}
KORQUAD = {f"{part}.json": f"korquad/KorQuAD_v1.0_{part}.json" for part in ("train", "dev")}
QUESTIONS = ("--train_file={folder}/train.json", "--predict_file={folder}/dev.json")

TASKS = {
    "NSMC": by_name("run_classifier", "nsmc", "accuracy", **NSMC),
    "KorNLI (XNLI's)": by_name("run_classifier", "kornli", "accuracy", **KORNLI),
    "KLUE-NLI": Task(
        "run_classifier",
        "accuracy",
        {("klue-nli-v1.1_train.json", "klue-nli-v1.1_dev.json"): klue_nli},
        ("--task_name=klue_nli",),
        "klue_nli",
    ),
    "KorSTS": by_name("run_classifier", "korsts", "spearman", **KORSTS),
    "Question Pair": by_name("run_classifier", "question_pair", "accuracy", **PAIRS),
    "Naver NER": Task("run_ner", "entity_f1", NER, ("--task_name=naver_ner",)),
    "KLUE-NER": Task(
        "run_ner",
        "entity_f1",
        {("klue-ner-v1.1_train.tsv", "klue-ner-v1.1_dev.tsv"): klue_ner},
        ("--task_name=klue_ner",),
    ),
    "KorQuAD": Task("run_squad", "f1", KORQUAD, QUESTIONS),
}


def prepare(task, folder):
    """Puts the files of a task into a folder of its own."""
    os.makedirs(folder, exist_ok=True)
    for names, source in task.files.items():
        if callable(source):
            for name, text in zip(names, source(FLAGS.data_dir)):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
        else:
            shutil.copyfile(os.path.join(FLAGS.data_dir, source), os.path.join(folder, names))


def train(name, task, data_folder, contestant):
    """Runs the task's command and returns the measure of each trial."""
    output_dir = os.path.join(FLAGS.output_dir, "runs", f"{name} {contestant}".replace(" ", "_"))
    places = task.flags if "--train_file={folder}/train.json" in task.flags else (*task.flags, "--data_dir={folder}")
    command = [sys.executable, f"{task.script}.py", "--do_train", "--do_eval", f"--output_dir={output_dir}"]
    command += [flag.format(folder=data_folder) for flag in places]
    if contestant == PRETRAINED:
        command += [f"--init_checkpoint={FLAGS.model}"]
    else:
        config = larger_config() if contestant == LARGER else os.path.join(FLAGS.model, "albert_config.json")
        command += [f"--albert_config_file={config}", f"--vocab_file={os.path.join(FLAGS.model, 'vocab.txt')}"]
    num_trials = 1 if contestant == LARGER else FLAGS.num_trials
    with open(f"{FLAGS.output_dir}/last_command.log", "w", encoding="utf-8") as log:
        subprocess.run([*command, f"--num_trials={num_trials}"], stdout=log, stderr=subprocess.STDOUT, check=True)
    if num_trials == 1:
        return [read_json(os.path.join(output_dir, "eval_results.json"), "the results")[task.metric]]
    trials = read_json(os.path.join(output_dir, "trials.json"), "the trials")["trials"]
    return [trial["results"][task.metric] for trial in trials]


def larger_config():
    """Writes the larger model's config for the vocabulary of the other one, and returns its path."""
    path = os.path.join(FLAGS.output_dir, "larger_config.json")
    vocab_size = AlbertConfig.from_json_file(os.path.join(FLAGS.model, "albert_config.json")).vocab_size
    write_json(path, AlbertConfig.from_json_file(FLAGS.larger_config).replace(vocab_size=vocab_size).to_dict())
    return path


def baselines(task, folder):
    """Returns what the most frequent answer and the linear model come to, as far as there are such."""
    if task.dataset is None:
        return {}
    files = DATASETS[task.dataset]

    def read(names):
        path = next(path for path in (os.path.join(folder, name) for name in names) if os.path.exists(path))
        return read_examples(path, files, needs_label=True)

    parts = read(files.train), read(files.dev)
    if files.text_pair_column is None:
        return {MAJORITY: majority_accuracy(*parts), LINEAR: linear_accuracy(*parts)}
    found = linear_pairs(*parts, files.is_regression)
    truth = [example.label for example in parts[1]]
    if files.is_regression:
        return {MAJORITY: 0.0, LINEAR: SCORE_METRICS[task.metric]([float(value) for value in truth], found)}
    labels = sorted(set(truth))
    most = collections.Counter(example.label for example in parts[0]).most_common(1)[0][0]
    return {
        MAJORITY: LABEL_METRICS[task.metric](truth, [most] * len(truth), labels),
        LINEAR: LABEL_METRICS[task.metric](truth, list(found), labels),
    }


def measure(name, task, results, results_file):
    """Fills in what is missing of a task's results."""
    folder = os.path.join(FLAGS.output_dir, "data", name.replace(" ", "_"))
    prepare(task, folder)
    found = results.setdefault(name, {"metric": task.metric})
    for contestant, value in baselines(task, folder).items() if MAJORITY not in found else ():
        found[contestant] = [float(value)]
    contestants = [RANDOM, PRETRAINED, *([LARGER] if FLAGS.larger_config else [])]
    for contestant in contestants:
        if contestant not in found:
            found[contestant] = train(name, task, folder, contestant)
            print(f"{name}, {contestant}: {found[contestant]}", flush=True)
        write_json(results_file, results)


def print_table(results):
    """Prints the medians, and in brackets the lowest and the highest."""
    columns = (MAJORITY, LINEAR, RANDOM, LARGER, PRETRAINED)
    print(f"\n| task | measure | {' | '.join(columns)} |\n|{'---|' * (2 + len(columns))}")
    for name, found in results.items():
        cells = [_describe(found.get(column), 1 if found["metric"] == "f1" else 100) for column in columns]
        print(f"| {name} | {found['metric']} | {' | '.join(cells)} |")


def _describe(values, factor):
    if not values:
        return ""
    values = sorted(factor * value for value in values)
    median = f"{values[len(values) // 2]:.1f}"
    return median if len(values) == 1 else f"{median} ({values[0]:.1f} to {values[-1]:.1f})"


def main(_):
    results_file = os.path.join(FLAGS.output_dir, "fine_tuning.json")
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    results = read_json(results_file, "the results") if os.path.exists(results_file) else {}
    for name, task in TASKS.items():
        if not FLAGS.only or name in FLAGS.only:
            measure(name, task, results, results_file)
    print_table(results)


if __name__ == "__main__":
    app.run(main)
