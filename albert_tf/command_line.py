"""What the scripts at the top level share: flags that several of them take, and errors without tracebacks.

Scripts import it before anything else, because it keeps TensorFlow's start-up messages away from the user (unless
TF_CPP_MIN_LOG_LEVEL asks for them), which works only where tensorflow is first imported.
"""

import contextlib
import os
import sys
import tempfile


@contextlib.contextmanager
def _without_messages_of_libraries():
    """Holds back what C++ code writes to standard error; shows it after all if there is an exception."""
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") != "3":
        yield
        return
    sys.stderr.flush()
    standard_error = os.dup(2)
    with tempfile.TemporaryFile() as held_back:
        os.dup2(held_back.fileno(), 2)
        try:
            yield
        except BaseException:
            held_back.seek(0)
            os.write(standard_error, held_back.read())
            raise
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)


with _without_messages_of_libraries():
    import tensorflow as tf

from absl import app, flags, logging

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.optimization import AdamW, LearningRateSchedule, make_optimizer
from albert_tf.optimization.optimizers import OPTIMIZERS
from albert_tf.optimization.schedule import SCHEDULE_CHOICES
from albert_tf.original_flags import check_original_flags, define_original_flags
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.words import WORDPIECE_SCHEMES
from albert_tf.training.checkpoints import Checkpointer, find_beside_checkpoint, load_weights
from albert_tf.training.distribution import make_strategy

FLAGS = flags.FLAGS

# The flags defined below belong to the script that asks for them, so that its --help shows them.
flags.disclaim_key_flags()

# Flag name to the tokenizer's own name of the setting.
_TOKENIZER_SETTINGS = {
    "do_lower_case": "lower_case",
    "strip_accents": "strip_accents",
    "squeeze_repeats": "squeeze_repeats",
    "full_width_to_ascii": "full_width_to_ascii",
    "keep_emoji": "keep_emoji",
    "split_punctuation": "split_punctuation",
    "split_digits": "split_digits",
    "wordpiece_scheme": "wordpiece_scheme",
}


def run(main) -> None:
    """Runs a script's `main()`; a user's mistake ends in one sentence on standard error and exit code 1."""

    def main_without_arguments(arguments):
        if len(arguments) > 1:
            raise app.UsageError(f"unexpected argument {arguments[1]}; every setting is a flag, --name=value")
        try:
            check_original_flags()
            main()
        except InputError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(1)

    logging.use_absl_handler()
    logging.set_verbosity(logging.WARNING)
    app.run(main_without_arguments)


def require(**flag_values) -> None:
    """Checks that flags were given a value.

    Raises:
        InputError: One is empty or None.
    """
    for name, value in flag_values.items():
        if value in (None, "", []):
            raise InputError(f"--{name} is missing; see --help")


def refuse_to_overwrite(paths: list[str], overwrite: bool) -> None:
    """Checks that no file is there yet, unless the user asked to overwrite.

    Raises:
        InputError: One is there.
    """
    for path in paths:
        if not overwrite and tf.io.gfile.exists(path):
            raise InputError(f"{path} is there already; choose another folder, or pass --overwrite to replace it")


def define_tokenizer_flags() -> None:
    """Defines how text is normalised and split; used where no tokenizer.json says so."""
    flags.DEFINE_bool("do_lower_case", True, "Lower-case letters; Hangul always stays composed.")
    flags.DEFINE_bool("strip_accents", False, "Drop accents from letters that are not Hangul.")
    flags.DEFINE_bool(
        "squeeze_repeats", False, "Leave two of a Hangul character, punctuation mark or symbol repeated more often."
    )
    flags.DEFINE_bool("full_width_to_ascii", False, "Map full-width letters, digits and punctuation to ASCII.")
    flags.DEFINE_bool("keep_emoji", True, "Keep emoji sequences whole, with their joiners and variation selectors.")
    flags.DEFINE_bool("split_punctuation", True, "Make every punctuation mark a word of its own.")
    flags.DEFINE_bool("split_digits", False, "Make every number a word of its own.")
    define_original_flags("spm_model_file")
    flags.DEFINE_enum(
        "wordpiece_scheme",
        "continuation",
        WORDPIECE_SCHEMES,
        "continuation: ## inside words; end_of_word: _ after a word that a space follows.",
    )


def tokenizer_settings() -> dict:
    """Returns the settings of `KoreanWordPieceTokenizer` that the flags give."""
    return {setting: FLAGS[flag].value for flag, setting in _TOKENIZER_SETTINGS.items()}


def load_tokenizer(vocab_file: str) -> KoreanWordPieceTokenizer:
    """Builds a tokenizer from a vocabulary file, with the settings of the tokenizer.json beside it or else the flags'.

    Raises:
        InputError: The vocabulary can't be used, or a flag was given that contradicts tokenizer.json.
    """
    folder, name = os.path.split(vocab_file)
    settings_file = os.path.join(folder, TOKENIZER_FILE)
    if name != VOCABULARY_FILE or not tf.io.gfile.exists(settings_file):
        return KoreanWordPieceTokenizer.from_vocab_file(vocab_file, **tokenizer_settings())
    tokenizer = KoreanWordPieceTokenizer.load(folder)
    saved = tokenizer.to_dict()
    for flag, setting in _TOKENIZER_SETTINGS.items():
        if FLAGS[flag].present and FLAGS[flag].value != saved[setting]:
            raise InputError(
                f"--{flag}={FLAGS[flag].value} contradicts {settings_file}, which says {saved[setting]}; "
                "leave the flag out, or build a vocabulary with it"
            )
    return tokenizer


def define_distribution_flags() -> None:
    """Defines where to run."""
    flags.DEFINE_bool("use_tpu", False, "Run on a TPU; otherwise on all GPUs of this machine, or its CPU.")
    flags.DEFINE_string("tpu_name", None, "Name or grpc:// address of a Cloud TPU; by default this machine's own TPU.")
    flags.DEFINE_string("tpu_zone", None, "Zone of the Cloud TPU that --tpu_name names.")
    flags.DEFINE_string("gcp_project", None, "Project of the Cloud TPU that --tpu_name names.")
    define_original_flags("master", "num_tpu_cores")
    flags.DEFINE_integer("num_cpu_replicas", 1, "Number of CPU replicas, where there is no TPU or GPU.", lower_bound=1)
    flags.DEFINE_bool("use_bfloat16", False, "Compute matrix products in bfloat16; variables stay float32.")


def strategy_from_flags() -> tf.distribute.Strategy:
    """Returns the strategy that the distribution flags ask for."""
    return make_strategy(
        FLAGS.use_tpu, FLAGS.tpu_name, FLAGS.tpu_zone, FLAGS.gcp_project, num_cpu_replicas=FLAGS.num_cpu_replicas
    )


def dtype_policy() -> str:
    """Returns the Keras dtype policy that --use_bfloat16 stands for."""
    return "mixed_bfloat16" if FLAGS.use_bfloat16 else "float32"


def define_training_flags(**defaults) -> None:
    """Defines how to train; the defaults are those of the original script that asks.

    Args:
        **defaults: `optimizer`, `learning_rate`, `train_batch_size`, `eval_batch_size`, `save_checkpoints_steps`.
    """
    flags.DEFINE_integer("train_batch_size", defaults["train_batch_size"], "Batch size over all replicas.", 1)
    flags.DEFINE_integer("eval_batch_size", defaults["eval_batch_size"], "Batch size of evaluation, all replicas.", 1)
    flags.DEFINE_enum("optimizer", defaults["optimizer"], sorted(OPTIMIZERS), "Optimizer.")
    flags.DEFINE_float("learning_rate", defaults["learning_rate"], "Peak learning rate.")
    flags.DEFINE_float("poly_power", 1.0, "Power of the learning rate's decay; 1 is linear.", lower_bound=0.0)
    flags.DEFINE_enum("schedule", "continuous", SCHEDULE_CHOICES, "Learning rate: without jumps, or as the original's.")
    flags.DEFINE_float("weight_decay", 0.01, "Weight decay; LayerNorm and biases have none.", lower_bound=0.0)
    flags.DEFINE_bool("bias_correction", False, "Correct the bias of the optimizer's moments.")
    flags.DEFINE_integer(
        "save_checkpoints_steps", defaults["save_checkpoints_steps"], "Steps between checkpoints.", lower_bound=1
    )
    flags.DEFINE_integer("keep_checkpoint_max", 5, "Number of checkpoints to keep.", lower_bound=1)
    flags.DEFINE_integer(
        "iterations_per_loop", None, "Most steps between two progress lines; by default 1000 on TPU, else 50.", 1
    )
    flags.DEFINE_integer("random_seed", 12345, "Seed of weights, order, masks and dropout.", lower_bound=0)


def iterations_per_loop() -> int:
    """Returns the flag's value or its default."""
    return FLAGS.iterations_per_loop or (1000 if FLAGS.use_tpu else 50)


def optimizer_from_flags(variables: dict[str, tf.Variable], num_train_steps: int, num_warmup_steps: int) -> AdamW:
    """Returns the optimizer that the training flags ask for; call it in the strategy's scope."""
    schedule = LearningRateSchedule(
        FLAGS.learning_rate, num_train_steps, num_warmup_steps, FLAGS.poly_power, FLAGS.schedule
    )
    return make_optimizer(
        FLAGS.optimizer,
        variables,
        schedule,
        weight_decay=FLAGS.weight_decay,
        bias_correction=FLAGS.bias_correction,
    )


def training_settings() -> dict:
    """Returns the flags that decide what training computes, for `claim_output_dir`."""
    names = (
        "init_checkpoint train_batch_size optimizer learning_rate poly_power schedule weight_decay bias_correction "
        "random_seed use_bfloat16"
    )
    return {name: FLAGS[name].value for name in names.split()}


def check_vocab_size(config: AlbertConfig, tokenizer: KoreanWordPieceTokenizer) -> None:
    """Checks that model and vocabulary go together.

    Raises:
        InputError: They differ in size.
    """
    if config.vocab_size != len(tokenizer.vocabulary):
        raise InputError(
            f"vocab_size in --albert_config_file is {config.vocab_size}, but {tokenizer.vocabulary.source} has "
            f"{len(tokenizer.vocabulary)} pieces; make them equal"
        )


def restore_or_initialize(
    checkpointer: Checkpointer, variables: dict[str, tf.Variable], tokenizer: KoreanWordPieceTokenizer | None
) -> None:
    """Restores the run in --output_dir, or else loads --init_checkpoint, and says what it did.

    Args:
        checkpointer: Of the run in --output_dir.
        variables: The model's, by name.
        tokenizer: What the data is encoded with, None if unknown.

    Raises:
        InputError: There is neither, and nothing is to be trained; or it goes with another tokenizer.
    """
    _check_tokenizer(checkpointer.latest or FLAGS.init_checkpoint, tokenizer)
    if checkpointer.restore_latest():
        print(f"restored {checkpointer.latest}")
    elif FLAGS.init_checkpoint:
        loaded, missing = load_weights(FLAGS.init_checkpoint, variables)
        print(f"--init_checkpoint: loaded {len(loaded)} variables; not in it: {', '.join(missing) or 'none'}")
    elif FLAGS.do_train:
        print("training from random weights")
    else:
        raise InputError(f"--output_dir={FLAGS.output_dir} holds no checkpoint, and there is no --init_checkpoint")


def _check_tokenizer(checkpoint, tokenizer):
    path = find_beside_checkpoint(checkpoint, TOKENIZER_FILE)
    if path and tokenizer is not None and not tokenizer.is_saved_as(path):
        raise InputError(
            f"the checkpoint beside {path} was trained with that tokenizer, which is not the one of "
            f"{tokenizer.vocabulary.source}; use the vocab.txt and tokenizer.json beside the checkpoint"
        )
