"""Finding what goes with a model that is fine-tuned: what flags name, or what lies beside the model."""

import os

import tensorflow as tf
from absl import flags

from albert_tf.checkpoint_files import find_beside_checkpoint, refuse_trials
from albert_tf.cli.run_flags import KnownRun
from albert_tf.cli.tokenizer_flags import load_any_tokenizer
from albert_tf.errors import InputError
from albert_tf.tokenization import SentencePieceTokenizer, Tokenizer
from albert_tf.tokenization.loading import kind_of_tokenizer
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE

FLAGS = flags.FLAGS


def find_model_file(flag: str, name: str, run: KnownRun | None) -> str:
    """Returns a flag's value, or the file of that name in the folder of the run or beside --init_checkpoint.

    Raises:
        InputError: There is neither, or --init_checkpoint names nothing.
    """
    found = FLAGS[flag].value or _find_beside_model(name, run)
    if not found:
        refuse_trials(FLAGS.init_checkpoint or FLAGS.output_dir)
    if not found and FLAGS.init_checkpoint is None:
        raise InputError(f"--{flag} is missing; name it, or a model to start from by --init_checkpoint")
    if not found and not any(tf.io.gfile.exists(FLAGS.init_checkpoint + ending) for ending in ("", ".index")):
        raise InputError(f"--init_checkpoint={FLAGS.init_checkpoint}: there is no such folder or checkpoint")
    if not found:
        raise InputError(
            f"--{flag} is missing, and there is no {name} beside --init_checkpoint={FLAGS.init_checkpoint}"
        )
    return found


def _find_beside_model(name, run):
    """Returns the file of that name in the folder of the run or beside --init_checkpoint, None if there is none."""
    found = run and run.find(name)
    found = found or find_beside_checkpoint(FLAGS.init_checkpoint, name)
    return found or find_beside_checkpoint(FLAGS.output_dir, name)


def load_model_tokenizer(run: KnownRun | None) -> Tokenizer:
    """Returns the tokenizer that the flags name, or the one of the run or of --init_checkpoint.

    Raises:
        InputError: There is none, or it can't be used.
    """
    vocab_file, model_file = FLAGS.vocab_file, FLAGS.spm_model_file
    if vocab_file or model_file:
        return load_any_tokenizer(vocab_file, model_file)
    settings_file = _find_beside_model(TOKENIZER_FILE, run)
    if settings_file and kind_of_tokenizer(settings_file) is SentencePieceTokenizer:
        return load_any_tokenizer(None, os.path.join(os.path.dirname(settings_file), MODEL_FILE))
    # Earlier versions have left a model without settings beside what they converted.
    if not settings_file and not _find_beside_model(VOCABULARY_FILE, run):
        model_file = _find_beside_model(MODEL_FILE, run)
    if model_file:
        return load_any_tokenizer(None, model_file)
    return load_any_tokenizer(find_model_file("vocab_file", VOCABULARY_FILE, run), None)
