"""The command that plans a training on TPUs."""

from albert_tf.cli.app import command  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import functools
import os
import sys

from albert_tf.base.console import ProgressLine, tell
from albert_tf.base.errors import InputError
from albert_tf.base.files import to_json, write_json
from albert_tf.base.settings import DEVICE, MODEL, TRAINING, setting
from albert_tf.modeling.kernels.flash_attention import ATTENTION_CHOICES
from albert_tf.modeling.kernels.rematerialization import REMATERIALIZATION_CHOICES
from albert_tf.objectives import usual_objective
from albert_tf.optimization.optimizers import OPTIMIZERS
from albert_tf.runs.model_files import read_planned_config, with_planned_teacher
from albert_tf.runs.phases import config_for_plan
from albert_tf.runs.settings.pretraining import ObjectiveSettings
from albert_tf.runs.tpu_compiler import ReplicaStrategy, lower_step, planned_names, planned_objective, uncounted_flops
from albert_tf.runs.tpu_planner import (
    TPUS,
    CompiledSteps,
    find_gradient_accumulation,
    find_largest_batch,
    find_tpu,
    format_table,
    make_plan,
)
from albert_tf.training.attention_choice import check_attention


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanSettings(ObjectiveSettings):
    """Which step is planned, and for which TPUs."""

    albert_config_file: str | None = setting(
        None, "JSON file of the model's hyper-parameters; config.json of transformers, too."
    )
    init_checkpoint: str | None = setting(
        None,
        "Instead of --albert_config_file: the folder of a model of albert_tf or transformers; its weights are not "
        "needed.",
        group=MODEL,
    )
    tpu: tuple[str, ...] = setting(
        ("v2-8", "v3-8", "v4-8", "v5e-1", "v5e-8", "v5p-8", "v6e-8"), f"TPUs: {', '.join(TPUS)}."
    )
    task: str | None = setting(
        None,
        "What is trained; by default what suits the model: albert, roberta or causal.",
        choices=planned_names(),
    )
    train_batch_size: int | None = setting(
        None, "Batch of one replica; by default the largest that fits.", least=1, group=TRAINING
    )
    max_seq_length: int = setting(512, "Length of the examples.", least=8, group=TRAINING)
    max_predictions_per_seq: int | None = setting(
        None, "Maximum number of masked pieces; by default 15% of the length.", least=1
    )
    optimizer: str = setting("lamb", "Optimizer.", choices=tuple(sorted(OPTIMIZERS)))
    remat: str = setting(
        "none", "What the backward pass recomputes instead of keeping.", choices=REMATERIALIZATION_CHOICES
    )
    attention: str = setting("auto", "How attention is computed; auto: flash, from v4 on.", choices=ATTENTION_CHOICES)
    use_bfloat16: bool = setting(True, "Compute matrix products in bfloat16.", group=DEVICE)
    target_batch_size: int = setting(4096, "Global batch to reach by gradient accumulation.", least=1)
    num_train_steps: int = setting(
        125000, "Number of pre-training steps, to compute the total time.", least=1, group=TRAINING
    )
    compile_timeout: float = setting(600.0, "Seconds of compiling after which a batch counts as too large.", least=1)
    json: bool = setting(False, "Print only JSON.")
    output_dir: str | None = setting(None, "Folder for plan.json and compiled steps, to resume from.", group=MODEL)


def make_compiler(settings, objective, line):
    """Returns a function that compiles a step for a TPU and returns its figures, None if it doesn't fit."""
    known = settings.output_dir and os.path.join(settings.output_dir, "compiled_steps.json")
    steps = CompiledSteps(known, settings.compile_timeout)

    @functools.cache
    def figures_of(tpu, batch_size, gradient_accumulation_steps=1):
        parts = f" in {gradient_accumulation_steps} parts" if gradient_accumulation_steps > 1 else ""
        line.show(f"{tpu.name}: compiling a batch of {batch_size:,} a replica{parts}")
        lower = functools.partial(
            lower_step,
            objective,
            batch_size,
            settings.max_seq_length,
            settings.optimizer,
            "mixed_bfloat16" if settings.use_bfloat16 else "float32",
            settings.remat,
            settings.attention,
            gradient_accumulation_steps,
            num_replicas=tpu.num_replicas,
            runs_pallas_kernels=tpu.runs_pallas_kernels,
        )
        part = batch_size // gradient_accumulation_steps
        return steps.figures(lower, tpu, uncounted_flops(objective, part, settings.max_seq_length))

    return figures_of


def show_batch(settings, tpus, figures_of, line):
    """Prints the figures of a step of `train_batch_size` on each TPU."""
    results = []
    for tpu in tpus:
        figures = figures_of(tpu, settings.train_batch_size)
        line.finish()
        if figures is None:
            raise InputError(
                f"`train_batch_size={settings.train_batch_size}` does not fit a replica of {tpu.name}, or took longer "
                f"than `compile_timeout={settings.compile_timeout:g}` seconds to compile; lower `train_batch_size`, "
                "choose another `remat`, or raise `compile_timeout`"
            )
        results.append(
            {
                "tpu": tpu.name,
                "batch_size": settings.train_batch_size,
                **figures.to_dict(),
                "roofline_seconds": figures.roofline_seconds(tpu),
            }
        )
    if settings.json:
        print(to_json(results[0] if len(results) == 1 else {"plans": results}))
    else:
        print("\n\n".join("\n".join(f"{name}: {value}" for name, value in result.items()) for result in results))


def show_plans(settings, tpus, figures_of, line):
    """Prints, and writes if asked to, the largest batch of each TPU and the time of the recipe with it."""
    plans = []
    for tpu in tpus:
        largest = find_largest_batch(functools.partial(figures_of, tpu), tpu.memory_bytes)
        parts = find_gradient_accumulation(
            lambda *step, tpu=tpu: figures_of(tpu, *step) is not None,
            tpu.num_replicas,
            largest.batch_size,
            settings.target_batch_size,
        )
        plans.append(make_plan(tpu, largest, parts, settings.target_batch_size, settings.num_train_steps))
    line.finish()
    print(to_json({"plans": plans}) if settings.json else format_table(plans))
    if settings.output_dir:
        write_json(os.path.join(settings.output_dir, "plan.json"), {"plans": plans})


@command(PlanSettings, output_flag="output_dir")
def plan_tpu(settings):
    """Says what a training step takes on a TPU, and which batch fits, by asking the TPU's own compiler. Needs no TPU.

    albert-tf plan-tpu --albert_config_file=configs/albert_base_v2.json --tpu=v5e --train_batch_size=32
    albert-tf plan-tpu --albert_config_file=configs/albert_base_v2.json --max_seq_length=512 --output_dir=plan
    """
    settings.require("tpu")
    with with_planned_teacher(settings) as planned:
        plan(planned)


def plan(settings):
    config = read_planned_config(settings)
    if settings.entity_vectors and not config.num_entities:
        config = config_for_plan(config, settings.entity_vectors)
    config.check_max_seq_length(settings.max_seq_length, "`max_seq_length`")
    task = settings.task or usual_objective(config)
    objective = planned_objective(task, config, settings.max_predictions_per_seq, settings.of_objective(task))
    tpus = [find_tpu(name) for name in settings.tpu]
    for tpu in tpus:
        strategy = ReplicaStrategy(tpu.num_replicas, tpu.runs_pallas_kernels)
        check_attention(strategy, settings.attention, config, [settings.max_seq_length])
    if settings.task is None and not settings.json:
        tell(f"`task={task}`, which suits the model; if it is to learn something else, pass `task`")
    line = ProgressLine(sys.stderr)
    figures_of = make_compiler(settings, objective, line)
    if settings.train_batch_size:
        show_batch(settings, tpus, figures_of, line)
    else:
        show_plans(settings, tpus, figures_of, line)
