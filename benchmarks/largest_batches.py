"""Which batch of each ALBERT fits one replica of a TPU, by the length of its sequences. Needs no TPU.

python -m benchmarks.largest_batches --output_dir=largest_batches

Pre-training with LAMB in bfloat16 without dropout, 15% of the pieces masked. Prints a table and writes
largest_batches.json and largest_batches.png. Takes hours: each number is searched for by compiling, and xxlarge needs
16 GB of this machine's memory. What has been found is kept in the folder, so that a run goes on where another ended,
and two can share the work (--models=xxlarge --remat=block).
"""

import functools
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags

from albert_tf.base.console import ProgressLine
from albert_tf.base.files import read_json, write_json
from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.rematerialization import REMATERIALIZATION_CHOICES
from albert_tf.objectives import make_objective
from albert_tf.runs.tpu_compiler import lower_step, uncounted_flops
from albert_tf.runs.tpu_planner import CompiledSteps, find_largest_batch, find_tpu
from benchmarks.stage import ROOT

FLAGS = flags.FLAGS

flags.DEFINE_string("tpu", "v5e", "The TPU, as albert-tf plan-tpu names it.")
flags.DEFINE_list("models", ["base", "large", "xlarge", "xxlarge"], "Models.")
flags.DEFINE_list("lengths", ["512", "256", "128", "64"], "Pieces of an example.")
flags.DEFINE_multi_enum("remat", ["none", "block"], REMATERIALIZATION_CHOICES, "What is computed again.")
flags.DEFINE_float("compile_timeout", 150.0, "Seconds of compiling after which a batch counts as too large.", 1.0)
flags.DEFINE_string("output_dir", "largest_batches", "Folder of the results.")


def find(model: str, length: int, remat: str, line: ProgressLine) -> dict:
    """Returns the largest batch, what the step takes with it, and whether the compiler recomputes."""
    config = AlbertConfig.from_json_file(os.path.join(ROOT, "configs", f"albert_{model}_v2.json"))
    objective = make_objective("albert", config)
    tpu, steps = find_tpu(FLAGS.tpu), CompiledSteps(None, FLAGS.compile_timeout)

    @functools.cache
    def figures_of(batch_size):
        line.show(f"{model}, {length}, {remat}: compiling a batch of {batch_size:,}")
        lower = functools.partial(
            lower_step,
            objective,
            batch_size,
            length,
            "lamb",
            remat=remat,
            num_replicas=tpu.num_replicas,
            runs_pallas_kernels=tpu.runs_pallas_kernels,
        )
        return steps.figures(lower, tpu, uncounted_flops(objective, batch_size, length))

    largest = find_largest_batch(figures_of, tpu.memory_bytes)
    return {
        "batch_size": largest.batch_size,
        "compiler_recomputes": largest.is_recomputing,
        **(largest.figures.to_dict() if largest.figures else {}),
    }


def find_all(line: ProgressLine) -> dict[tuple[str, str], dict[int, dict]]:
    """Returns by (model, remat) and length what `find` found, now or before."""
    found = {}
    for remat in FLAGS.remat:
        for model in FLAGS.models:
            by_length = {}
            for length in sorted(map(int, FLAGS.lengths), reverse=True):
                path = os.path.join(FLAGS.output_dir, f"{FLAGS.tpu}_{model}_{remat}_{length}.json")
                if not os.path.exists(path):
                    write_json(path, find(model, length, remat, line))
                by_length[length] = read_json(path, "a result")
            found[model, remat] = by_length
    return found


def plot(found: dict[tuple[str, str], dict[int, dict]], path: str) -> None:
    """Writes the batches over the lengths as a picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    colors = {model: f"C{number}" for number, model in enumerate(FLAGS.models)}
    for (model, remat), by_length in found.items():
        points = {length: result["batch_size"] for length, result in by_length.items() if result["batch_size"]}
        style = "-o" if remat == "none" else "--o"
        label = model if remat == "none" else f"{model}, --remat={remat}"
        axes.plot(list(points), list(points.values()), style, color=colors[model], label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks([int(length) for length in FLAGS.lengths], FLAGS.lengths)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set(title=f"largest batch on one {FLAGS.tpu} chip", xlabel="pieces of an example", ylabel="examples")
    axes.grid(True, alpha=0.3)
    axes.legend(ncols=2, fontsize="small")
    figure.savefig(path, dpi=110)


def main(_):
    line = ProgressLine(sys.stderr)
    found = find_all(line)
    line.finish()
    lengths = sorted(map(int, FLAGS.lengths))
    print(f"| | `--remat` | {' | '.join(map(str, lengths))} |\n|{'---|' * (2 + len(lengths))}")
    for (model, remat), by_length in found.items():
        cells = [f"{by_length[length]['batch_size']:,}" for length in lengths]
        print(f"| {model} | {remat} | {' | '.join(cells)} |")
    rows = [
        {"model": model, "remat": remat, "max_seq_length": length, **result}
        for (model, remat), by_length in found.items()
        for length, result in by_length.items()
    ]
    write_json(os.path.join(FLAGS.output_dir, "largest_batches.json"), {"tpu": FLAGS.tpu, "found": rows})
    plot(found, os.path.join(FLAGS.output_dir, "largest_batches.png"))


if __name__ == "__main__":
    app.run(main)
