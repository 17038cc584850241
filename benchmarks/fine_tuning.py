"""Fine-tuning on every kind of task: majority, linear model, random weights, pre-trained; as a table.

python -m benchmarks.fine_tuning --data_dir=data --output_dir=benchmark/fine_tuning \
    --model=models/albert_ko_small

Every training is a command of this project in a folder of its own, with no flag but those of the data: what a user
gets who tunes nothing. Medians over --num_trials seeds. What is done is kept in fine_tuning.json, and the command goes
on where it was stopped. The linear model needs scikit-learn.
"""

import collections.abc
import dataclasses
import json
import os
import shutil
import subprocess
import sys

from absl import app, flags

from albert_tf.base.files import read_json, write_json
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import Classification, Entities, FinetuningTask, QuestionAnswering, Regression
from albert_tf.finetuning.baselines import compute_linear_scores
from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.tasks.tagged_text import types_of
from benchmarks.linear_reader import linear_reader

FLAGS = flags.FLAGS

flags.DEFINE_string("data_dir", None, "Folder of the data sets' folders.", required=True)
flags.DEFINE_string("output_dir", None, "Folder for runs and results.", required=True)
flags.DEFINE_string("model", "models/albert_ko_small", "Folder of the pre-trained model.")
flags.DEFINE_string("larger_config", None, "Config of a larger model to train from random weights as well, once.")
flags.DEFINE_integer("num_trials", 3, "Trainings of each.", 1)
flags.DEFINE_list("only", [], "Tasks to run; all if left out.")
flags.DEFINE_bool("train", True, "Train; --notrain leaves it at what needs no model.")
flags.DEFINE_bool("random_weights", True, "Train the same model from random weights as well.")

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
        make: Given a config and the training file, returns the task, which knows what it is compared with.
    """

    script: str
    metric: str
    files: dict
    flags: tuple[str, ...]
    make: collections.abc.Callable[[AlbertConfig, str], FinetuningTask]


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
    return Task(script, metric, files, (f"--task_name={dataset}",), labelled(dataset))


def labelled(dataset):
    """Returns what makes the task of one of the classifier's data sets."""
    files = DATASETS[dataset]
    if files.is_regression:
        return lambda config, train_path: Regression(config, files)
    return lambda config, train_path: Classification(config, files.labels, files)


def tagged(form):
    """Returns what makes a task of entities whose files have this form."""
    return lambda config, train_path: Entities(config, tuple(types_of(train_path, form)), form)


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
        labelled("klue_nli"),
    ),
    "KorSTS": by_name("run_classifier", "korsts", "spearman", **KORSTS),
    "Question Pair": by_name("run_classifier", "question_pair", "accuracy", **PAIRS),
    "Naver NER": Task("run_ner", "entity_f1", NER, ("--task_name=naver_ner",), tagged("words")),
    "KLUE-NER": Task(
        "run_ner",
        "entity_f1",
        {("klue-ner-v1.1_train.tsv", "klue-ner-v1.1_dev.tsv"): klue_ner},
        ("--task_name=klue_ner",),
        tagged("characters"),
    ),
    "KorQuAD": Task("run_squad", "f1", KORQUAD, QUESTIONS, lambda config, train_path: QuestionAnswering(config)),
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
    """Returns what the rule that reads nothing and the linear model come to."""
    names = [name for each in task.files for name in (each if isinstance(each, tuple) else (each,))]
    train_path, dev_path = (os.path.join(folder, name) for name in names)
    config = AlbertConfig.from_json_file(os.path.join(FLAGS.model, "albert_config.json"))
    made = task.make(config, train_path)
    train_examples, dev_examples = made.read(train_path), made.read(dev_path)
    found = {MAJORITY: made.blind_scores(dev_examples)[1][task.metric]}
    model = linear_reader(made) if isinstance(made, QuestionAnswering) else made.linear_model()
    found[LINEAR] = compute_linear_scores(made, model, train_examples, dev_examples).scores[task.metric]
    return found


def measure(name, task, results, results_file):
    """Fills in what is missing of a task's results."""
    folder = os.path.join(FLAGS.output_dir, "data", name.replace(" ", "_"))
    prepare(task, folder)
    found = results.setdefault(name, {"metric": task.metric})
    for contestant, value in baselines(task, folder).items() if MAJORITY not in found else ():
        found[contestant] = [float(value)]
    write_json(results_file, results)
    are_wanted = {RANDOM: FLAGS.random_weights, PRETRAINED: True, LARGER: bool(FLAGS.larger_config)}
    for contestant in [name for name, is_wanted in are_wanted.items() if is_wanted and FLAGS.train]:
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
