"""What the scripts that train share: their flags, and what follows from the flags alone."""

import re

import tensorflow as tf
from absl import flags

from albert_tf.cli.original_flags import define_original_flags
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.modeling.kernels.attention_check import attention_functions, find_fault
from albert_tf.modeling.kernels.flash_attention import ATTENTION_CHOICES, uses_flash_attention
from albert_tf.modeling.kernels.rematerialization import REMATERIALIZATION_CHOICES
from albert_tf.optimization import AdamW, LearningRateSchedule, make_optimizer
from albert_tf.optimization.optimizers import OPTIMIZERS
from albert_tf.optimization.schedule import SCHEDULE_CHOICES
from albert_tf.training.devices.description import describe_device, unused_device_warnings
from albert_tf.training.devices.distribution import is_chief, make_strategy
from albert_tf.training.run_folder.identity import checkpoint_identity
from albert_tf.training.train_loop import TrainOptions

FLAGS = flags.FLAGS

# Flags below that decide what training computes.
TRAINING_SETTINGS = (
    "init_checkpoint",
    "train_batch_size",
    "gradient_accumulation_steps",
    "optimizer",
    "learning_rate",
    "scale_learning_rate",
    "poly_power",
    "schedule",
    "weight_decay",
    "bias_correction",
    "ema_decay",
    "freeze",
    "random_seed",
    "use_bfloat16",
)

# The flags defined below belong to the script that asks for them, so that its --help shows them.
flags.disclaim_key_flags()


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
    flags.DEFINE_enum(
        "attention",
        "auto",
        ATTENTION_CHOICES,
        "How attention is computed: plain operations, flash kernels (with jax installed), or what suits the device.",
    )
    flags.DEFINE_enum(
        "remat", "none", REMATERIALIZATION_CHOICES, "What to compute again in the backward pass, to save memory."
    )


def strategy_from_flags() -> tf.distribute.Strategy:
    """Returns the strategy that the distribution flags ask for, and prints what it computes on."""
    strategy = make_strategy(
        FLAGS.use_tpu, FLAGS.tpu_name, FLAGS.tpu_zone, FLAGS.gcp_project, FLAGS.num_cpu_replicas, FLAGS.tpu_timeout
    )
    if is_chief(strategy):
        print(describe_device(strategy), *unused_device_warnings(strategy), sep="\n", flush=True)
    return strategy


def check_attention(strategy: tf.distribute.Strategy, config: AlbertConfig, max_seq_lengths: list[int]) -> None:
    """Checks that --attention suits the device, the model and the sequences, before anything is traced or written.

    Raises:
        InputError: It doesn't.
    """
    head_size = config.hidden_size // config.num_attention_heads
    with strategy.scope():
        for max_seq_length in max_seq_lengths:
            uses_flash_attention(FLAGS.attention, config.hidden_size, head_size, max_seq_length)


def choose_attention(strategy: tf.distribute.Strategy, config: AlbertConfig, shapes: list[tuple[int, int]]) -> str:
    """Returns how to compute attention: as --attention says, but plainly where the kernels don't work on this TPU.

    On a TPU it tries the kernels and prints what was chosen; see `find_fault`.

    Args:
        strategy: Where to run.
        config: The model's.
        shapes: For each kind of batch the length of its sequences, and how many positions of them are read.

    Raises:
        InputError: --attention does not suit the device, the model or the sequences; or it asks for kernels that don't
            work.
    """
    check_attention(strategy, config, [max_seq_length for max_seq_length, _ in shapes])
    if not isinstance(strategy, tf.distribute.TPUStrategy) or FLAGS.attention == "plain":
        return FLAGS.attention
    hidden_size, head_size = config.hidden_size, config.hidden_size // config.num_attention_heads
    dtype = tf.keras.mixed_precision.Policy(dtype_policy()).compute_dtype
    functions = attention_functions(head_size, config.attention_probs_dropout_prob)
    with strategy.scope():
        tried = [shape for shape in shapes if uses_flash_attention(FLAGS.attention, hidden_size, head_size, shape[0])]
        faults = [find_fault(strategy, *functions, hidden_size, *shape, dtype) for shape in tried]
    fault = next(filter(None, faults), None)
    if fault and FLAGS.attention == "flash":
        raise InputError(f"--attention=flash: on this TPU the kernels {fault}; use --attention=plain")
    if fault:
        print(f"attention: plain operations, for on this TPU the flash kernels {fault}", flush=True)
        return "plain"
    print(f"attention: {'flash kernels, tried on this TPU' if tried else 'plain operations'}", flush=True)
    return FLAGS.attention


def dtype_policy() -> str:
    """Returns the Keras dtype policy that --use_bfloat16 stands for."""
    return "mixed_bfloat16" if FLAGS.use_bfloat16 else "float32"


def define_training_flags(**defaults) -> None:
    """Defines how to train; the defaults are those of the original script that asks.

    Args:
        **defaults: `optimizer`, `learning_rate`, `train_batch_size`, `eval_batch_size`, `save_checkpoints_steps`.
    """
    batch_size = defaults["train_batch_size"]
    flags.DEFINE_integer("train_batch_size", batch_size, "Examples in one update, over all replicas.", 1)
    flags.DEFINE_integer(
        "gradient_accumulation_steps", 1, "Parts of a replica's batch, computed one after the other to save memory.", 1
    )
    flags.DEFINE_integer("eval_batch_size", defaults["eval_batch_size"], "Batch size of evaluation, all replicas.", 1)
    flags.DEFINE_enum("optimizer", defaults["optimizer"], sorted(OPTIMIZERS), "Optimizer.")
    flags.DEFINE_float("learning_rate", defaults["learning_rate"], "Peak learning rate.")
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
    flags.DEFINE_bool("bias_correction", False, "Correct the bias of the optimizer's moments.")
    flags.DEFINE_float(
        "ema_decay", 0.0, "Keep a moving average of the weights, and evaluate it; such as 0.999; 0 for none.", 0.0
    )
    flags.DEFINE_list(
        "freeze", [], "Regular expressions of variables to leave as they are, such as encoder/embeddings."
    )
    flags.DEFINE_integer("max_skipped_steps", 10, "Most steps to skip because loss or gradient is not finite.", 0)
    flags.DEFINE_integer(
        "save_checkpoints_steps", defaults["save_checkpoints_steps"], "Steps between checkpoints.", lower_bound=1
    )
    flags.DEFINE_integer(
        "keep_checkpoint_max", 5, "Number of checkpoints to keep, not counting the best one.", lower_bound=1
    )
    flags.DEFINE_integer(
        "eval_every_steps", None, "With --do_eval: steps between evaluations while training; each saves.", 1
    )
    flags.DEFINE_string(
        "eval_checkpoint", "latest", "What to evaluate in the end: latest, best, or the path of a checkpoint."
    )
    flags.DEFINE_integer(
        "iterations_per_loop", None, "Most steps between two progress lines; by default 1000 on TPU, else 50.", 1
    )
    flags.DEFINE_list("profile_steps", None, "Two steps a,b: write a TensorBoard profile of the steps from a to b.")
    flags.DEFINE_float(
        "peak_tflops", None, "Peak of one replica in 1e12 operations a second, to show what share of it is used.", 0.0
    )
    flags.DEFINE_integer("random_seed", 12345, "Seed of weights, order, masks and dropout.", lower_bound=0)


def train_options(evaluates_first: bool) -> TrainOptions:
    """Returns when to look up from training.

    Args:
        evaluates_first: Whether to evaluate before the first step too.

    Raises:
        InputError: --profile_steps is not two steps in order.
    """
    profile_steps = None
    if FLAGS.profile_steps:
        try:
            first, end = map(int, FLAGS.profile_steps)
        except ValueError:
            first, end = 0, 0
        if not 0 <= first < end:
            raise InputError(
                f"--profile_steps={','.join(FLAGS.profile_steps)} must be two steps, the first and the one to end "
                "before, such as 100,110"
            )
        profile_steps = (first, end)
    return TrainOptions(
        FLAGS.iterations_per_loop or (1000 if FLAGS.use_tpu else 50),
        FLAGS.save_checkpoints_steps,
        FLAGS.random_seed,
        FLAGS.eval_every_steps,
        evaluates_first,
        FLAGS.max_skipped_steps,
        profile_steps,
    )


def make_schedule(num_train_steps: int, warmup_flag: str, steps_flag: str) -> LearningRateSchedule:
    """Returns the learning rate that the training flags ask for.

    Args:
        num_train_steps: Length of the training.
        warmup_flag: Name of the flag that gives the number of warm-up steps.
        steps_flag: Name of the flag that the length comes from.

    Raises:
        InputError: A value is out of range.
    """
    num_warmup_steps = FLAGS[warmup_flag].value
    if num_warmup_steps >= num_train_steps:
        raise InputError(
            f"--{warmup_flag}={num_warmup_steps} must be less than the number of training steps, {num_train_steps} "
            f"(--{steps_flag})"
        )
    learning_rate = FLAGS.learning_rate
    if FLAGS.scale_learning_rate == "sqrt":
        learning_rate *= (FLAGS.train_batch_size / FLAGS["train_batch_size"].default) ** 0.5
    return LearningRateSchedule(learning_rate, num_train_steps, num_warmup_steps, FLAGS.poly_power, FLAGS.schedule)


def optimizer_from_flags(variables: dict[str, tf.Variable], schedule: LearningRateSchedule) -> AdamW:
    """Returns the optimizer that the training flags ask for; call it in the strategy's scope."""
    return make_optimizer(
        FLAGS.optimizer,
        _without_frozen(variables),
        schedule,
        weight_decay=FLAGS.weight_decay,
        bias_correction=FLAGS.bias_correction,
        ema_decay=FLAGS.ema_decay,
    )


def _without_frozen(variables):
    for pattern in FLAGS.freeze:
        try:
            is_found = any(re.search(pattern, name) for name in variables)
        except re.error as error:
            raise InputError(f"--freeze: {pattern} is not a regular expression ({error})") from error
        if not is_found:
            names = sorted({"/".join(name.split("/")[:2]) for name in variables})
            raise InputError(f"--freeze: no variable matches {pattern}; their names begin with {', '.join(names)}")
    trained = {
        name: variable
        for name, variable in variables.items()
        if not any(re.search(pattern, name) for pattern in FLAGS.freeze)
    }
    if not trained:
        raise InputError(f"--freeze={','.join(FLAGS.freeze)} leaves nothing to train")
    return trained


def training_settings() -> dict:
    """Returns the flags that decide what training computes, for `claim_output_dir`."""
    settings = {name: FLAGS[name].value for name in TRAINING_SETTINGS}
    return {**settings, "init_checkpoint": checkpoint_identity(FLAGS.init_checkpoint)}
