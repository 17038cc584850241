"""Says what a training step takes on a TPU, and which batch fits, by asking the TPU's own compiler. Needs no TPU.

albert-tf plan-tpu --albert_config_file=configs/albert_base_v2.json --tpu=v5e --train_batch_size=32
albert-tf plan-tpu --albert_config_file=configs/albert_base_v2.json --max_seq_length=512 --output_dir=plan
"""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import functools
import os
import sys

from absl import flags

from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.cli.model_files import read_planned_config, with_planned_teacher
from albert_tf.cli.objective_flags import define_objective_flags, objective_settings
from albert_tf.errors import InputError
from albert_tf.files import to_json, write_json
from albert_tf.modeling.kernels.flash_attention import ATTENTION_CHOICES
from albert_tf.modeling.kernels.rematerialization import REMATERIALIZATION_CHOICES
from albert_tf.objectives import usual_objective
from albert_tf.optimization.optimizers import OPTIMIZERS
from albert_tf.pretraining.entities import config_for_plan
from albert_tf.progress_line import ProgressLine
from albert_tf.tpu.chips import TPUS, find_tpu
from albert_tf.tpu.planner import (
    CompiledSteps,
    find_gradient_accumulation,
    find_largest_batch,
    format_table,
    make_plan,
)
from albert_tf.tpu.replica_strategy import ReplicaStrategy
from albert_tf.tpu.steps import lower_step, planned_names, planned_objective, uncounted_flops
from albert_tf.training.devices.attention_choice import check_attention

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string(
        "albert_config_file", None, "JSON file of the model's hyper-parameters; config.json of transformers, too."
    )
    flags.DEFINE_string(
        "init_checkpoint",
        None,
        "Instead of --albert_config_file: the folder of a model of albert_tf or transformers; its weights "
        "are not needed.",
    )
    flags.DEFINE_list("tpu", ["v2-8", "v3-8", "v4-8", "v5e-1", "v5e-8", "v5p-8", "v6e-8"], f"TPUs: {', '.join(TPUS)}.")
    flags.DEFINE_enum(
        "task",
        None,
        planned_names(),
        "What is trained; by default what suits the model: albert, roberta or causal.",
    )
    flags.DEFINE_integer("train_batch_size", None, "Batch of one replica; by default the largest that fits.", 1)
    flags.DEFINE_integer("max_seq_length", 512, "Length of the examples.", 8)
    flags.DEFINE_integer(
        "max_predictions_per_seq", None, "Maximum number of masked pieces; by default 15% of the length.", 1
    )
    flags.DEFINE_enum("optimizer", "lamb", sorted(OPTIMIZERS), "Optimizer.")
    flags.DEFINE_enum(
        "remat", "none", REMATERIALIZATION_CHOICES, "What the backward pass recomputes instead of keeping."
    )
    flags.DEFINE_enum("attention", "auto", ATTENTION_CHOICES, "How attention is computed; auto: flash, from v4 on.")
    flags.DEFINE_bool("use_bfloat16", True, "Compute matrix products in bfloat16.")
    flags.DEFINE_integer("target_batch_size", 4096, "Global batch to reach by gradient accumulation.", 1)
    flags.DEFINE_integer("num_train_steps", 125000, "Number of pre-training steps, to compute the total time.", 1)
    flags.DEFINE_float("compile_timeout", 600.0, "Seconds of compiling after which a batch counts as too large.", 1.0)
    define_objective_flags()
    flags.DEFINE_bool("json", False, "Print only JSON.")
    flags.DEFINE_string("output_dir", None, "Folder for plan.json and compiled steps, to resume from.")


def make_compiler(given, objective, line):
    """Returns a function that compiles a step on a TPU and tells its figures, None if it doesn't fit."""
    known = given.output_dir and os.path.join(given.output_dir, "compiled_steps.json")
    steps = CompiledSteps(known, given.compile_timeout)

    @functools.cache
    def figures_of(tpu, batch_size, gradient_accumulation_steps=1):
        parts = f" in {gradient_accumulation_steps} parts" if gradient_accumulation_steps > 1 else ""
        line.show(f"{tpu.name}: compiling a batch of {batch_size:,} a replica{parts}")
        lower = functools.partial(
            lower_step,
            objective,
            batch_size,
            given.max_seq_length,
            given.optimizer,
            "mixed_bfloat16" if given.use_bfloat16 else "float32",
            given.remat,
            given.attention,
            gradient_accumulation_steps,
            num_replicas=tpu.num_replicas,
            runs_pallas_kernels=tpu.runs_pallas_kernels,
        )
        part = batch_size // gradient_accumulation_steps
        return steps.figures(lower, tpu, uncounted_flops(objective, part, given.max_seq_length))

    return figures_of


def show_batch(given, tpus, figures_of, line):
    """Prints what a step of --train_batch_size takes on each TPU."""
    results = []
    for tpu in tpus:
        figures = figures_of(tpu, given.train_batch_size)
        line.finish()
        if figures is None:
            raise InputError(
                f"--train_batch_size={given.train_batch_size} does not fit a replica of {tpu.name}, or took longer "
                f"than --compile_timeout={given.compile_timeout:g} seconds to compile; lower --train_batch_size, "
                "choose another --remat, or raise --compile_timeout"
            )
        results.append(
            {
                "tpu": tpu.name,
                "batch_size": given.train_batch_size,
                **figures.to_dict(),
                "roofline_seconds": figures.roofline_seconds(tpu),
            }
        )
    if given.json:
        print(to_json(results[0] if len(results) == 1 else {"plans": results}))
    else:
        print("\n\n".join("\n".join(f"{name}: {value}" for name, value in result.items()) for result in results))


def show_plans(given, tpus, figures_of, line):
    """Prints, and writes if asked to, the largest batch of each TPU and what the recipe takes with it."""
    plans = []
    for tpu in tpus:
        largest = find_largest_batch(functools.partial(figures_of, tpu), tpu.memory_bytes)
        parts = find_gradient_accumulation(
            lambda *step, tpu=tpu: figures_of(tpu, *step) is not None,
            tpu.num_replicas,
            largest.batch_size,
            given.target_batch_size,
        )
        plans.append(make_plan(tpu, largest, parts, given.target_batch_size, given.num_train_steps))
    line.finish()
    print(to_json({"plans": plans}) if given.json else format_table(plans))
    if given.output_dir:
        write_json(os.path.join(given.output_dir, "plan.json"), {"plans": plans})


def main():
    given = resolved_flags()
    app.require(tpu=given.tpu)
    with with_planned_teacher(given) as given:
        plan(given)


def plan(given):
    """Prints what the settings ask for."""
    config = read_planned_config(given)
    if given.entity_vectors and not config.num_entities:
        config = config_for_plan(config, given.entity_vectors)
    config.check_max_seq_length(given.max_seq_length, "--max_seq_length")
    task = given.task or usual_objective(config)
    objective = planned_objective(task, config, given.max_predictions_per_seq, objective_settings(given, task))
    tpus = [find_tpu(name) for name in given.tpu]
    for tpu in tpus:
        strategy = ReplicaStrategy(tpu.num_replicas, tpu.runs_pallas_kernels)
        check_attention(strategy, given.attention, config, [given.max_seq_length])
    if given.task is None and not given.json:
        print(f"--task={task}, which suits the model; if it is to learn something else, pass --task", flush=True)
    line = ProgressLine(sys.stderr)
    figures_of = make_compiler(given, objective, line)
    if given.train_batch_size:
        show_batch(given, tpus, figures_of, line)
    else:
        show_plans(given, tpus, figures_of, line)


def run():
    """Runs the command."""
    app.run(main, define_flags, output_flag="output_dir")
