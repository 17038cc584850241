"""The tables of the ALBERT paper, at a size that two cores can train: pair losses, embedding size, sharing, depth.

python -m benchmarks.ablations --input_file=wiki.txt.gz,rulings.txt.gz --hours=13 --output_dir=ablations --data_dir=data
python -m benchmarks.ablations ... --pilot       (the first setting alone, for a tenth of the hours: is order learnt?)
python -m benchmarks.ablations ... --show        (the tables so far)
python -m benchmarks.ablations --plan=v5e-8      (the paper's own grids, and the hours that each would take on a TPU)

All settings of a table learn for equal steps on the same text, as the paper's do: sharing and depth change what a step
costs, and the hours that each took stand beside its losses. `--hours` are shared out evenly among all runs, by the
time that the first setting's step takes here; what would get less than --least_minutes is refused, not thinned.
Evaluated are the held-out masked-LM loss, the model's own pair loss on both evaluation sets (two segments in their
order or swapped, and a segment with its successor or a stranger), and with --data_dir three tasks of
`benchmarks.fine_tuning`. Runs are made one after the other, and the command goes on where it was stopped, also inside
a run. results.json, results.md, results.tsv and ablations.png in `--output_dir` are written anew after each.
"""

import collections.abc
import json
import os
import statistics
import subprocess
import sys
import time
import types
import typing

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags

from albert_tf.base.files import read_json, write_json
from albert_tf.base.startup import computes_in_bfloat16
from benchmarks.stage import ROOT, run_stage

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", None, "Text of documents: comma-separated paths or globs.")
flags.DEFINE_string("output_dir", None, "Folder for everything.")
flags.DEFINE_string("data_dir", None, "Folder of labelled data sets' folders; no fine-tuning if left out.")
flags.DEFINE_float("hours", 13.0, "Time of all pre-trainings together.", 0.001)
flags.DEFINE_float("least_minutes", 20.0, "Least time of one pre-training.", 0.0)
flags.DEFINE_list("only", [], "Settings to train; all if left out.")
flags.DEFINE_list("tasks", ["KLUE-NLI", "Naver NER"], "Tasks of benchmarks.fine_tuning, besides NSMC.")
flags.DEFINE_bool("pilot", False, "Train the first setting alone, for a tenth of the hours.")
flags.DEFINE_bool("show", False, "Train nothing; show what there is.")
flags.DEFINE_string("plan", None, "Plan the paper's own grids for a TPU such as v5e-8, and do nothing else.")


class Setting(typing.NamedTuple):
    """One row of a table.

    Attributes:
        table: The tables that it stands in.
        objective: What is learnt.
        changes: Of the config of the first setting.
        seeds: How many times it is trained.
        paper: What the paper has for it: the average of its five tasks.
    """

    table: tuple[str, ...]
    objective: str = "albert"
    changes: collections.abc.Mapping = types.MappingProxyType({})
    seeds: int = 3
    paper: float | None = None


PAIRS, EMBEDDING, DEPTH = "pair loss (Table 5)", "embedding size and sharing (Tables 3 and 4)", "depth (Table 11)"
OWN, WIDE = {"sharing": "none"}, {"embedding_size": 256}
FIRST = "sentence order"
SETTINGS = {
    FIRST: Setting((PAIRS, EMBEDDING, DEPTH), paper=80.1),
    "no pair loss": Setting((PAIRS,), "roberta", paper=79.0),
    "next sentence": Setting((PAIRS,), "bert", paper=79.2),
    "word order besides": Setting((PAIRS,), "korealbert"),
    "E = H": Setting((EMBEDDING,), changes=WIDE, seeds=2, paper=79.8),
    "own blocks": Setting((EMBEDDING,), changes=OWN, seeds=2, paper=81.7),
    "own blocks, E = H": Setting((EMBEDDING,), changes=OWN | WIDE, seeds=2, paper=82.3),
    "3 layers": Setting((DEPTH,), changes={"num_hidden_layers": 3}, paper=71.2),
}
# The paper's Tables 3, 4, 11, 12 and 8, for --plan: base, and large where depth and width change.
GRIDS = {
    "E": [{"embedding_size": size, "sharing": sharing} for sharing in ("none", "all") for size in (64, 128, 256, 768)],
    "sharing": [{"sharing": each} for each in ("all", "attention", "ffn", "none")],
    "depth": [{"num_hidden_layers": layers} for layers in (1, 3, 6, 12, 24, 48)],
    "width": [{"num_hidden_layers": 3, "hidden_size": size} for size in (1024, 2048, 4096, 6144)],
    "dropout": [{"hidden_dropout_prob": share, "attention_probs_dropout_prob": share} for share in (0.0, 0.1)],
}
SHAPE = {
    "vocab_size": 8000,
    "embedding_size": 128,
    "hidden_size": 256,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "max_position_embeddings": 128,
}
PACKINGS, EXAMPLES = ("order", "next"), {"order": "albert", "next": "bert"}
SPEED_STEPS = 20, 60


def path_of(*names):
    return os.path.join(FLAGS.output_dir, *names)


def prepare():
    """Builds the vocabulary and the shards of both packings, unless they are there."""
    if not os.path.exists(path_of("vocabulary", "vocab.txt")):
        run_stage(
            "build_vocab.py",
            input_file=FLAGS.input_file,
            output_dir=path_of("vocabulary"),
            vocab_size=SHAPE["vocab_size"],
            limit_alphabet=2500,
        )
    for packing in PACKINGS:
        if not os.path.exists(path_of("data", packing, "manifest.json")):
            run_stage(
                "create_pretraining_data.py",
                input_file=FLAGS.input_file,
                output_file=path_of("data", packing, "train.tfrecord"),
                vocab_file=path_of("vocabulary", "vocab.txt"),
                sentence_pair=packing,
                max_seq_length=128,
                dupe_factor=1,
                held_out_fraction=0.01,
                num_shards=4,
                resume=True,
            )


def packing_of(setting):
    return "next" if setting.objective == "bert" else "order"


def pretrain(setting, folder, num_steps, seed):
    """Pre-trains, or goes on, and returns the seconds that this call took."""
    config = f"{folder}.config.json"
    os.makedirs(os.path.dirname(config), exist_ok=True)
    base = read_json(os.path.join(ROOT, "configs", "albert_small.json"), "a config")
    write_json(config, base | SHAPE | {"classifier_pooling": "mean"} | dict(setting.changes))
    begin = time.monotonic()
    run_stage(
        "run_pretraining.py",
        input_file=path_of("data", packing_of(setting), "train-*.tfrecord"),
        output_dir=folder,
        albert_config_file=config,
        objective=setting.objective,
        do_train=True,
        do_eval=True,
        train_batch_size=32,
        optimizer="adamw",
        bias_correction=True,
        learning_rate=1e-3,
        num_train_steps=num_steps,
        num_warmup_steps=num_steps // 20,
        save_checkpoints_steps=max(1, num_steps // 10),
        iterations_per_loop=20,
        keep_checkpoint_max=1,
        use_bfloat16=computes_in_bfloat16(),
        random_seed=seed,
    )
    return time.monotonic() - begin


def cross_evaluate(folder):
    """Returns loss and accuracy of a model on both held-out sets, by packing: what its pair head says of each."""
    from albert_tf.modeling import AlbertForPreTraining
    from albert_tf.pretraining_data.shards import find_shards
    from albert_tf.runs.phases import make_held_out_dataset, objective_of
    from albert_tf.training import RunSettings
    from albert_tf.training.devices import make_strategy
    from albert_tf.training.evaluation import Evaluator

    strategy, found = make_strategy(), {}
    with strategy.scope():
        model = AlbertForPreTraining.from_pretrained(folder, verbose=False)
    for packing, objective in EXAMPLES.items():
        shards = find_shards([path_of("data", packing, "train-*.tfrecord")], model.config)
        learnt = objective_of(model.config, shards, objective)
        dataset = make_held_out_dataset(
            learnt, shards, RunSettings(num_train_steps=1, train_batch_size=32, learning_rate=1e-3)
        )()
        found[packing] = Evaluator(strategy, learnt, {"model": model}).evaluate(dataset)
    return found


def fine_tune(folder):
    """Returns the scores of a model after fine-tuning, by task."""
    tasks = ["NSMC", *FLAGS.tasks]
    subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.fine_tuning", f"--data_dir={FLAGS.data_dir}", f"--model={folder}"),
            *(f"--output_dir={folder}_tasks", f"--only={','.join(tasks)}", "--num_trials=1", "--norandom_weights"),
        ],
        check=True,
        cwd=ROOT,
    )
    results = read_json(os.path.join(f"{folder}_tasks", "fine_tuning.json"), "the results")
    return {task: statistics.median(results[task]["pre-trained"]) for task in tasks}


def measure(name, seed, num_steps):
    """Trains a setting with a seed, and returns its row."""
    folder = path_of("runs", f"{name}_{seed}".replace(" ", "_").replace(",", ""))
    times = f"{folder}.seconds.json"
    spent = read_json(times, "the times") if os.path.exists(times) else {"seconds": 0.0}
    spent["seconds"] += pretrain(SETTINGS[name], folder, num_steps, seed)
    write_json(times, spent)
    results, crossed = read_json(os.path.join(folder, "eval_results.json"), "the results"), cross_evaluate(folder)
    row = {
        "steps": num_steps,
        "hours": spent["seconds"] / 3600,
        "masked_lm_loss": results["masked_lm_loss"],
        "masked_lm_accuracy": 100 * results["masked_lm_accuracy"],
        "on order": 100 * crossed["order"]["sentence_order_accuracy"],
        "on next": 100 * crossed["next"]["next_sentence_accuracy"],
    }
    if "word_order_accuracy" in results:
        row["word order"] = 100 * results["word_order_accuracy"]
    return row | ({task: 100 * each for task, each in fine_tune(folder).items()} if FLAGS.data_dir else {})


def describe(values, decimals):
    """Returns the median, and the range where there are several."""
    low, median, high = min(values), statistics.median(values), max(values)
    shown = f"{median:.{decimals}f}"
    return shown if len(values) < 2 else f"{shown} ({low:.{decimals}f} to {high:.{decimals}f})"


def show(results):
    """Writes the tables and the plot of what is done."""
    columns = [
        "masked_lm_loss",
        "masked_lm_accuracy",
        "on order",
        "on next",
        "word order",
        "NSMC",
        *FLAGS.tasks,
        "hours",
    ]
    lines, cells = [], [["setting", "seed", "steps", *columns]]
    for table in (PAIRS, EMBEDDING, DEPTH):
        lines += [
            f"## {table}",
            "",
            f"| | runs | {' | '.join(columns)} | the paper's average |",
            "|---" * (len(columns) + 3) + "|",
        ]
        for name, setting in SETTINGS.items():
            rows = list(results["rows"].get(name, {}).values())
            if table not in setting.table or not rows:
                continue
            shown = [
                describe([row[column] for row in rows], 3 if column.endswith("loss") else 1)
                if column in rows[0]
                else ""
                for column in columns
            ]
            lines.append(f"| {name} | {len(rows)} | {' | '.join(shown)} | {setting.paper or ''} |")
        lines.append("")
    for name, rows in results["rows"].items():
        cells += [
            [name, seed, row["steps"], *(row.get(column, "") for column in columns)] for seed, row in rows.items()
        ]
    with open(path_of("results.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    with open(path_of("results.tsv"), "w", encoding="utf-8") as file:
        file.writelines("\t".join(map(str, line)) + "\n" for line in cells)
    print("\n".join(lines), flush=True)
    draw(results)


def draw(results):
    """Draws the held-out masked-LM loss of every run, by setting."""
    from matplotlib.figure import Figure

    names = [name for name in SETTINGS if results["rows"].get(name)]
    figure = Figure(figsize=(7, 1 + 0.4 * len(names)), layout="constrained")
    axes = figure.subplots()
    for place, name in enumerate(names):
        losses = [row["masked_lm_loss"] for row in results["rows"][name].values()]
        axes.plot(losses, [place] * len(losses), "o", color="C0")
        axes.plot(statistics.median(losses), place, "|", color="C1", markersize=18)
    axes.set(yticks=range(len(names)), yticklabels=names, xlabel="masked-LM loss on held-out text, by run and median")
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path_of("ablations.png"), dpi=150)


def plan():
    """Prints the hours that each of the paper's runs, 125,000 steps of 4,096 x 512, would take on a TPU."""
    print("| table | change | hours |\n|---|---|---|")
    for table, grid in GRIDS.items():
        size = "large" if table in ("depth", "width") else "base"
        base = read_json(os.path.join(ROOT, "configs", f"albert_{size}_v2.json"), "a config")
        for changes in grid:
            config = base | changes
            config["intermediate_size"] = 4 * config["hidden_size"]
            config["num_attention_heads"] = config["hidden_size"] // 64
            write_json(path_of("plan.json"), config)
            command = [sys.executable, "-m", "albert_tf", "plan-tpu", "--json", f"--tpu={FLAGS.plan}"]
            command += [f"--albert_config_file={path_of('plan.json')}", "--max_seq_length=512", "--optimizer=lamb"]
            command += ["--target_batch_size=4096", "--num_train_steps=125000"]
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
            if done.returncode == 0:
                told = f"{24 * json.loads(done.stdout)['roofline_days']:.1f}"
            else:
                told = done.stderr.strip().split("\n")[-1]
            change = ", ".join(f"{name} {value}" for name, value in changes.items())
            print(f"| {table} | {change} | {told} |", flush=True)


def steps_of(results, minutes, num_runs):
    """Returns the steps that fit into the minutes of a run; exits if there are too few for each of so many runs."""
    if minutes < FLAGS.least_minutes:
        sys.exit(
            f"--hours={FLAGS.hours:g} leave {minutes:.1f} minutes for each of {num_runs} runs; name fewer (--only)"
        )
    if "step_seconds" not in results:
        # What starting takes falls out of the difference.
        short, long = (pretrain(SETTINGS[FIRST], path_of("speed", str(steps)), steps, 1) for steps in SPEED_STEPS)
        results["step_seconds"] = (long - short) / (SPEED_STEPS[1] - SPEED_STEPS[0])
    return max(1, round(60 * minutes / results["step_seconds"]))


def pilot(results):
    """Trains the first setting for a tenth of the hours, and prints what it learnt of the order of two segments."""
    num_steps = results.setdefault("pilot_steps", steps_of(results, 6 * FLAGS.hours, 1))
    folder = path_of("pilot")
    pretrain(SETTINGS[FIRST], folder, num_steps, 1)
    told = read_json(os.path.join(folder, "eval_results.json"), "the results")
    print(
        f"{num_steps} steps: {100 * told['sentence_order_accuracy']:.1f}% of held-out pairs in their order or swapped"
    )
    print(f"masked_lm_loss {told['masked_lm_loss']:.3f}; below 60% take fewer settings (--only) and longer runs")


def main(_):
    for name in ("output_dir", "data_dir"):
        if getattr(FLAGS, name):
            setattr(FLAGS, name, os.path.abspath(getattr(FLAGS, name)))
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    if FLAGS.plan:
        plan()
        return
    path = path_of("results.json")
    results = read_json(path, "the results") if os.path.exists(path) else {"rows": {}}
    if not FLAGS.show:
        prepare()
        chosen = [name for name in SETTINGS if not FLAGS.only or name in FLAGS.only]
        runs = [(name, seed) for seed in range(1, 4) for name in chosen if seed <= SETTINGS[name].seeds]
        if FLAGS.pilot:
            pilot(results)
            write_json(path, results)
            return
        num_steps = results.setdefault("steps", steps_of(results, 60 * FLAGS.hours / len(runs), len(runs)))
        for name, seed in runs:
            rows = results["rows"].setdefault(name, {})
            if str(seed) not in rows:
                rows[str(seed)] = measure(name, seed, num_steps)
                write_json(path, results)
                show(results)
    show(results)


if __name__ == "__main__":
    app.run(main)
