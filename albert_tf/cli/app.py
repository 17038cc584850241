"""What the scripts at the top level share: flags that several of them take, and errors without tracebacks.

Scripts import it before anything else, because it keeps TensorFlow's start-up messages away from the user (unless
TF_CPP_MIN_LOG_LEVEL asks for them), which works only where tensorflow is first imported.
"""

import contextlib
import os
import sys

from albert_tf.startup import end_in_one_line_if_interrupted, without_messages_of_libraries

end_in_one_line_if_interrupted()
with without_messages_of_libraries():
    import tensorflow as tf

from absl import app, flags, logging

from albert_tf.cli.flag_parsing import parse_flags
from albert_tf.cli.original_flags import check_original_flags, define_original_flags
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.words import WORDPIECE_SCHEMES

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


def run(main, define_flags) -> None:
    """Runs a command; a user's mistake ends in one sentence on standard error and exit code 1.

    Args:
        main: Does the work, once the flags have been read.
        define_flags: Defines them.
    """
    define_flags()

    def main_without_arguments(_):
        with _one_sentence():
            check_original_flags()
            main()

    def parse(arguments):
        with _one_sentence():
            parse_flags(arguments)

    logging.use_absl_handler()
    logging.set_verbosity(logging.WARNING)
    app.run(main_without_arguments, flags_parser=parse)


@contextlib.contextmanager
def _one_sentence():
    """Ends the process in one sentence where a user's mistake is found."""
    try:
        yield
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


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
