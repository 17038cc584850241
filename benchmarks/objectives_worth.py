"""The worth of each pre-training objective after the same processor time on the same text, as a table.

python -m benchmarks.objectives_worth --corpus='corpus_reviews/nsmc_reviews.txt.gz,corpus/*.txt.gz' --data_dir=data \
    --output_dir=benchmark/objectives

One vocabulary and one shape of model for all. Each objective gets data packed for it and as many steps as its step's
processor time allows (`python -m benchmarks.objective_steps`). Then every model is fine-tuned as a user does who tunes
nothing: NSMC with 200 and 1,000 labels, drawn --num_trials times, and the tasks of `benchmarks.fine_tuning` in --tasks.
What is done is kept, and the command goes on where it was stopped. Needs scikit-learn and matplotlib.
"""

import collections.abc
import os
import statistics
import subprocess
import sys
import types
import typing

from absl import app, flags

from albert_tf.base.files import read_json
from albert_tf.base.startup import computes_in_bfloat16
from benchmarks.stage import ROOT, run_stage

FLAGS = flags.FLAGS

flags.DEFINE_string("corpus", None, "Text files, one sentence a line; comma-separated paths or globs.", required=True)
flags.DEFINE_string("data_dir", None, "Folder of the labelled data sets' folders.", required=True)
flags.DEFINE_string("output_dir", None, "Folder for everything.", required=True)
flags.DEFINE_integer("num_train_steps", 2000, "Steps of 32 examples, of an objective that only guesses masked pieces.")
flags.DEFINE_integer("num_pretrainings", 1, "Pre-trainings of each objective, each with its own seed.", 1)
flags.DEFINE_integer("num_trials", 3, "Fine-tunings of each model on each task.", 1)
flags.DEFINE_list("tasks", ["KorSTS", "KLUE-NLI", "Naver NER"], "Tasks of benchmarks.fine_tuning.")
flags.DEFINE_list("only", [], "Contestants to take part; all if left out.")


class Contestant(typing.NamedTuple):
    """An objective with its settings.

    Attributes:
        objective: Its name.
        packing: Of the examples that it learns from.
        step: Processor time of a step, as a multiple of that of masked language modelling alone.
        settings: Flags of run_pretraining.py besides.
    """

    objective: str
    packing: str
    step: float = 1.0
    settings: collections.abc.Mapping = types.MappingProxyType({})


CONTESTANTS = {
    "masked pieces alone": Contestant("roberta", "full_sentences"),
    "sentence order": Contestant("albert", "order"),
    "halves": Contestant("halves", "halves"),
    "replaced tokens": Contestant("electra", "full_sentences", 1.5),
    "replaced tokens, disentangled": Contestant("electra", "full_sentences", 1.5, {"disentangled_embeddings": True}),
    "replaced tokens, its own generator": Contestant("electra", "full_sentences", 2.0, {"share_generator": True}),
    "replaced tokens, its own generator, weight 2": Contestant(
        "electra", "full_sentences", 2.0, {"share_generator": True, "replaced_token_weight": 2.0}
    ),
}
NSMC_SIZES = "200", "1000"


def prepare(packings):
    """Builds the vocabulary, and the shards of each packing; returns the folders of these by packing."""
    vocabulary = os.path.join(FLAGS.output_dir, "vocabulary")
    if not os.path.exists(os.path.join(vocabulary, "tokenizer.json")):
        run_stage(
            "build_vocab.py",
            input_file=FLAGS.corpus,
            output_dir=vocabulary,
            vocab_size=8000,
            limit_alphabet=2000,
            overwrite=True,
        )
    folders = {packing: os.path.join(FLAGS.output_dir, f"data_{packing}") for packing in packings}
    for packing, folder in folders.items():
        if not os.path.exists(os.path.join(folder, "manifest.json")):
            run_stage(
                "create_pretraining_data.py",
                input_file=FLAGS.corpus,
                output_file=os.path.join(folder, "train.tfrecord"),
                vocab_file=os.path.join(vocabulary, "vocab.txt"),
                sentence_pair=packing,
                max_seq_length=128,
                masked_lm_prob=0.3,
                ngram=1,
                held_out_fraction=0.01,
                num_shards=4,
                num_workers=2,
                resume=True,
            )
    return folders


def pretrain(name, contestant, data, number):
    """Pre-trains a contestant, with a seed of its own for each number from 1, and returns the folder of its run."""
    folder = os.path.join(FLAGS.output_dir, nth(name, number).replace(" ", "_").replace(",", ""))
    num_steps = round(FLAGS.num_train_steps / contestant.step)
    if not os.path.exists(os.path.join(folder, "eval_results.json")):
        run_stage(
            "run_pretraining.py",
            input_file=os.path.join(data, "train-*.tfrecord"),
            objective=contestant.objective,
            output_dir=folder,
            flagfile=os.path.join(ROOT, "configs", "recipes", "ko_small.cfg"),
            albert_config_file=os.path.join(ROOT, "configs", "albert_ko_small.json"),
            use_bfloat16=computes_in_bfloat16(),
            num_train_steps=num_steps,
            num_warmup_steps=num_steps // 20,
            random_seed=12344 + number,
            **contestant.settings,
        )
    return folder


def nth(name, number):
    """Returns the name of a contestant's pre-training of this number."""
    return name if number == 1 else f"{name} {number}"


def fine_tune(runs):
    """Fine-tunes all runs, lists of folders by name of the contestant, with the other benchmarks' commands."""
    labels = [
        f"--model={nth(name, number)}={folder}"
        for name, folders in runs.items()
        for number, folder in enumerate(folders, start=1)
    ]
    run_benchmark(
        "labels_needed",
        f"--data_dir={os.path.join(FLAGS.data_dir, 'nsmc')}",
        f"--output_dir={os.path.join(FLAGS.output_dir, 'nsmc')}",
        f"--num_labels={','.join(NSMC_SIZES)}",
        f"--num_seeds={FLAGS.num_trials}",
        *labels,
    )
    for folder, *_ in runs.values() if FLAGS.tasks else ():
        run_benchmark(
            "fine_tuning",
            f"--data_dir={FLAGS.data_dir}",
            f"--output_dir={folder}_tasks",
            f"--model={folder}",
            f"--num_trials={FLAGS.num_trials}",
            f"--only={','.join(FLAGS.tasks)}",
            "--norandom_weights",
        )


def run_benchmark(module, *arguments):
    """Runs another benchmark; its output goes to the terminal."""
    subprocess.run([sys.executable, "-m", f"benchmarks.{module}", *arguments], check=True, cwd=ROOT)


def print_table(runs):
    """Prints a row for each contestant: medians in percent, with the lowest and the highest in brackets."""
    nsmc = read_json(os.path.join(FLAGS.output_dir, "nsmc", "labels_needed.json"), "the results")
    columns = [f"NSMC, {int(size):,} labels" for size in NSMC_SIZES] + FLAGS.tasks
    models = {name: [nth(name, number) for number in range(1, 1 + len(folders))] for name, folders in runs.items()}
    blind = {name: [name] for name in nsmc if name.startswith(("majority", "linear", "the same"))}
    rows = {
        name: [[accuracy for each in same for accuracy in nsmc[each][size]] for size in NSMC_SIZES]
        for name, same in (blind | models).items()
    }
    for name, (folder, *_) in runs.items() if FLAGS.tasks else ():
        tasks = read_json(os.path.join(f"{folder}_tasks", "fine_tuning.json"), "the results")
        rows[name] += [tasks[task]["pre-trained"] for task in FLAGS.tasks]
        for kind in ("majority", "linear"):
            row = next(row for row in rows if row.startswith(kind))
            rows[row] = rows[row][: len(NSMC_SIZES)] + [tasks[task][kind] for task in FLAGS.tasks]
    print(f"\n| | {' | '.join(columns)} |\n|{'---|' * (1 + len(columns))}")
    for name, cells in rows.items():
        cells = [describe(values) for values in cells] + ["not run"] * (len(columns) - len(cells))
        print(f"| {name} | {' | '.join(cells)} |")


def describe(values):
    """Returns the median in percent, and the range where there is one."""
    low, median, high = (100 * value for value in (min(values), statistics.median(values), max(values)))
    return f"{median:.1f}" if high - low < 0.05 else f"{median:.1f} ({low:.1f} to {high:.1f})"


def main(_):
    FLAGS.output_dir, FLAGS.data_dir = os.path.abspath(FLAGS.output_dir), os.path.abspath(FLAGS.data_dir)
    chosen = {name: each for name, each in CONTESTANTS.items() if not FLAGS.only or name in FLAGS.only}
    data = prepare(dict.fromkeys(each.packing for each in chosen.values()))
    numbers = range(1, 1 + FLAGS.num_pretrainings)
    runs = {
        name: [pretrain(name, each, data[each.packing], number) for number in numbers] for name, each in chosen.items()
    }
    fine_tune(runs)
    print_table(runs)


if __name__ == "__main__":
    app.run(main)
