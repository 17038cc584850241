"""How text is normalised and split, as flags."""

import os

import tensorflow as tf
from absl import flags

from albert_tf.cli.original_flags import define_original_flags
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
