"""What the scripts that train share: their flags, and what follows from the flags alone."""

import dataclasses

import tensorflow as tf
from absl import flags

from albert_tf.cli.command import with_flags
from albert_tf.cli.flag_groups import in_helpfull
from albert_tf.cli.original_flags import define_original_flags
from albert_tf.config import AlbertConfig
from albert_tf.cores import computes_in_bfloat16
from albert_tf.errors import InputError
from albert_tf.modeling.kernels.flash_attention import ATTENTION_CHOICES
from albert_tf.modeling.kernels.rematerialization import REMATERIALIZATION_CHOICES
from albert_tf.optimization.optimizers import OPTIMIZERS
from albert_tf.optimization.schedule import SCHEDULE_CHOICES
from albert_tf.training import RunSettings
from albert_tf.training.devices.attention_choice import choose_attention
from albert_tf.training.devices.description import describe_device, unused_device_warnings
from albert_tf.training.devices.strategy import make_strategy
from albert_tf.training.devices.whole_step import JIT_COMPILE_CHOICES, has_ampere, is_of_gpus
from albert_tf.training.devices.workers import is_chief
from albert_tf.training.settings import LARGEST_SEED
from albert_tf.training.trackers import Tracker, load_tracker

FLAGS = flags.FLAGS


@in_helpfull()
def define_distribution_flags() -> None:
    """Defines where to run."""
    flags.DEFINE_bool("use_tpu", False, "Run on a TPU; otherwise on all GPUs of this machine, or its CPU.")
    flags.DEFINE_string("tpu_name", None, "Name or grpc:// address of a Cloud TPU; by default this machine's own TPU.")
    flags.DEFINE_string("tpu_zone", None, "Zone of the Cloud TPU that --tpu_name names.")
    flags.DEFINE_string("gcp_project", None, "Project of the Cloud TPU that --tpu_name names.")
    flags.DEFINE_float("tpu_timeout", 300.0, "Seconds to wait for a TPU to answer.", lower_bound=0.0)
    define_original_flags("master", "num_tpu_cores")
    flags.DEFINE_integer("num_cpu_replicas", 1, "Number of CPU replicas, where there is no TPU or GPU.", lower_bound=1)
    flags.DEFINE_bool("use_bfloat16", False, "Compute matrix products in bfloat16; variables stay float32.")
    flags.DEFINE_bool(
        "use_float16", False, "The same in float16, with a scaled loss: for GPUs before Ampere, such as a T4."
    )
    flags.DEFINE_enum(
        "jit_compile",
        "auto",
        JIT_COMPILE_CHOICES,
        "Whether XLA compiles whole steps, or TensorFlow runs one operation after the other; auto compiles them on one "
        "GPU, and always on a TPU.",
    )
    flags.DEFINE_enum(
        "attention",
        "auto",
        ATTENTION_CHOICES,
        "How attention is computed: plain operations, flash kernels (with jax installed), or what suits the device.",
    )
    flags.DEFINE_enum(
        "remat",
        "none",
        REMATERIALIZATION_CHOICES,
        "What the backward pass recomputes instead of keeping, to save memory.",
    )


def strategy_from_flags(given) -> tf.distribute.Strategy:
    """Returns the strategy that the distribution flags ask for, and prints what it computes on."""
    strategy = make_strategy(
        given.use_tpu,
        given.tpu_name,
        given.tpu_zone,
        given.gcp_project,
        given.num_cpu_replicas,
        given.tpu_timeout,
        given.jit_compile,
    )
    if is_chief(strategy):
        lines = [describe_device(strategy), *map(with_flags, unused_device_warnings(strategy))]
        print(*lines, sep="\n", flush=True)
    return strategy


def model_options(
    strategy: tf.distribute.Strategy,
    config: AlbertConfig,
    shapes: list[tuple[int, int]],
    given,
    **more,
) -> dict[str, str]:
    """Returns the options of a model that the flags ask for; prints what `choose_attention` chose.

    Args:
        strategy: As for `choose_attention`.
        config: As for `choose_attention`.
        shapes: As for `choose_attention`.
        given: The settings.
        **more: For `choose_attention`: `lengths` and `has_documents`.
    """
    dtype = _dtype(strategy, given)
    attention, line = choose_attention(strategy, given.attention, config, dtype, shapes, **more)
    if line:
        print(with_flags(line), flush=True)
    return {"remat": given.remat, "attention": attention, "dtype": dtype}


def _dtype(strategy, given):
    """Returns the Keras dtype policy that the flags ask for; warns where the device has no such products."""
    if not given.use_float16:
        if given.use_bfloat16 and is_chief(strategy):
            _warn_of_slow_bfloat16(strategy)
        return "mixed_bfloat16" if given.use_bfloat16 else "float32"
    if given.use_bfloat16:
        raise InputError("--use_bfloat16 and --use_float16 exclude one another; leave one out")
    if isinstance(strategy, tf.distribute.TPUStrategy):
        raise InputError("--use_float16: a TPU computes in bfloat16; pass --use_bfloat16 instead")
    return "mixed_float16"


def _warn_of_slow_bfloat16(strategy):
    if is_of_gpus(strategy):
        if not has_ampere(strategy.extended.worker_devices[0]):
            print("warning: this GPU has no products in bfloat16; --use_float16 would be faster", flush=True)
    elif not isinstance(strategy, tf.distribute.TPUStrategy) and computes_in_bfloat16() is False:
        print("warning: this processor has no products in bfloat16; without --use_bfloat16 it is faster", flush=True)


@in_helpfull()
def define_training_flags(**defaults) -> None:
    """Defines how to train; the defaults are those of the original script that asks.

    Args:
        **defaults: `optimizer`, `learning_rate` (None to choose it by the model), `bias_correction`,
            `train_batch_size`, `eval_batch_size`, `save_checkpoints_steps`; and `evaluates_often`, whether to evaluate
            whenever a checkpoint is saved.
    """
    batch_size = defaults["train_batch_size"]
    flags.DEFINE_integer("train_batch_size", batch_size, "Examples in one update, over all replicas.", 1)
    flags.DEFINE_integer(
        "gradient_accumulation_steps", 1, "Parts of a replica's batch, computed one after the other to save memory.", 1
    )
    flags.DEFINE_integer("eval_batch_size", defaults["eval_batch_size"], "Batch size of evaluation, all replicas.", 1)
    flags.DEFINE_string(
        "license", None, "Licence of the model, for the model card; such as apache-2.0 or cc-by-sa-4.0."
    )
    flags.DEFINE_enum("optimizer", defaults["optimizer"], sorted(OPTIMIZERS), "Optimizer.")
    by_size = (
        "; by default 5e-5 for models of hidden size 768 and more, and the smaller the model the higher, up to 1.5e-4; "
        "up to 5e-4 without checkpoint (less in more than 4 layers), for answers to questions and for aligned pairs, "
        "and up to 1e-3 for entities"
    )
    learning_rate = defaults["learning_rate"]
    flags.DEFINE_float("learning_rate", learning_rate, f"Peak learning rate{'' if learning_rate else by_size}.")
    flags.DEFINE_enum(
        "scale_learning_rate",
        "none",
        ["none", "sqrt"],
        f"With sqrt --learning_rate belongs to a batch of {batch_size}, and is multiplied by the root of "
        f"--train_batch_size / {batch_size}.",
    )
    flags.DEFINE_float("poly_power", 1.0, "Power of the learning rate's decay; 1 is linear.", lower_bound=0.0)
    flags.DEFINE_enum("schedule", "continuous", SCHEDULE_CHOICES, "Learning rate: without jumps, or as the original's.")
    flags.DEFINE_float("weight_decay", 0.01, "Weight decay; LayerNorm and biases have none.", lower_bound=0.0)
    flags.DEFINE_bool("bias_correction", defaults["bias_correction"], "Correct the bias of the optimizer's moments.")
    flags.DEFINE_float(
        "layer_decay",
        1.0,
        "Factor by which the learning rate falls from each block to the one below it; 0.8 in ELECTRA, 1 for no decay.",
        0.0,
        1.0,
    )
    flags.DEFINE_float("beta_2", 0.999, "Decay of the second moment; 0.98 in RoBERTa.", 0.0, 1.0)
    flags.DEFINE_float("clip_norm", 1.0, "Largest global norm of the gradients; 0 for any, as in RoBERTa.", 0.0)
    flags.DEFINE_float(
        "ema_decay",
        0.0,
        "Decay of a moving average of the weights, which is then evaluated, such as 0.999; 0 for none.",
        0.0,
    )
    flags.DEFINE_list(
        "freeze", [], "Regular expressions of variables to leave as they are, such as encoder/embeddings."
    )
    flags.DEFINE_integer(
        "max_skipped_steps", 10, "Maximum number of steps to skip if loss or gradient is not finite.", 0
    )
    flags.DEFINE_integer(
        "save_checkpoints_steps", defaults["save_checkpoints_steps"], "Steps between checkpoints.", lower_bound=1
    )
    flags.DEFINE_integer(
        "keep_checkpoint_max", 5, "Number of checkpoints to keep, not counting the best one.", lower_bound=1
    )
    flags.DEFINE_integer(
        "eval_every_steps",
        None,
        "With --do_eval: steps between evaluations while training, each of which saves; by default "
        + (
            "--save_checkpoints_steps."
            if defaults["evaluates_often"]
            else "only the last, or with --early_stopping 10 to 20 times a run, without --save_checkpoints_steps."
        ),
        1,
    )
    flags.DEFINE_integer(
        "early_stopping",
        0,
        "With --do_eval: end training after this many evaluations in a row without an improvement; 0 for never.",
        0,
    )
    flags.DEFINE_string(
        "eval_checkpoint",
        None,
        "Checkpoint to evaluate at the end: best, latest, or a path; by default the best on held-out "
        "data, or else the latest.",
    )
    flags.DEFINE_integer(
        "iterations_per_loop", None, "Most steps between two progress lines; by default 1000 on TPU, else 50.", 1
    )
    flags.DEFINE_list(
        "trackers",
        [],
        "Functions to call with what is measured, each as module:function, for Weights & Biases, MLflow and the like; "
        "docs/library.md has examples. TensorBoard finds everything in --output_dir.",
    )
    flags.DEFINE_list("profile_steps", None, "Two steps a,b: write a TensorBoard profile of the steps from a to b.")
    flags.DEFINE_float(
        "peak_tflops", None, "Peak of one replica in 1e12 operations a second, to show what share of it is used.", 0.0
    )
    flags.DEFINE_integer("random_seed", 12345, "Seed of weights, order, masks and dropout.", 0, LARGEST_SEED)


def settings_from_flags(num_train_steps: int, length_setting: str, given, evaluates_often: bool = False) -> RunSettings:
    """Returns the settings of a run that the training flags ask for.

    Args:
        num_train_steps: Length of the training.
        length_setting: Name of the setting that the length comes from.
        given: What `resolved_flags` returned.
        evaluates_often: Whether to evaluate whenever a checkpoint is saved, unless the flag says otherwise.
    """
    evaluates_often = evaluates_often or given.early_stopping > 0
    if given.do_train and given.num_warmup_steps >= num_train_steps:
        raise InputError(
            f"--num_warmup_steps={given.num_warmup_steps} must be less than the number of training steps, "
            f"{num_train_steps} (--{length_setting})"
        )
    names = [field.name for field in dataclasses.fields(RunSettings)]
    scales = given.scale_learning_rate == "sqrt"
    return RunSettings(
        **{
            **{name: getattr(given, name) for name in names if hasattr(given, name)},
            "num_train_steps": num_train_steps,
            "reference_batch_size": FLAGS["train_batch_size"].default if scales else None,
            "freeze": tuple(given.freeze),
            "eval_every_steps": given.eval_every_steps or (given.save_checkpoints_steps if evaluates_often else None),
            "iterations_per_loop": given.iterations_per_loop or (1000 if given.use_tpu else 50),
            "profile_steps": _two_steps(given.profile_steps),
        }
    )


def trackers_from_flags(given) -> list[Tracker]:
    """Returns the functions that --trackers names, if anything is trained."""
    return list(map(load_tracker, given.trackers)) if given.do_train else []


def _two_steps(texts):
    if not texts:
        return None
    try:
        first, end = map(int, texts)
    except ValueError:
        first, end = 0, 0
    if not 0 <= first < end:
        raise InputError(
            f"--profile_steps={','.join(texts)} must be two steps, the first and the one to end before, such as 100,110"
        )
    return first, end
