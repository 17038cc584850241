"""How text is normalised and split, as flags."""

import os

import tensorflow as tf
from absl import flags

from albert_tf.cli.flag_groups import in_helpfull
from albert_tf.errors import InputError
from albert_tf.files import read_text
from albert_tf.tokenization import KoreanWordPieceTokenizer, SentencePieceTokenizer, Tokenizer
from albert_tf.tokenization.huggingface import is_of_transformers
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.words import WORDPIECE_SCHEMES

FLAGS = flags.FLAGS

# Flag name to the tokenizer's own name of the setting.
_TOKENIZER_SETTINGS = {
    "do_lower_case": "lower_case",
    **{name: name for name in ("strip_accents", "squeeze_repeats", "full_width_to_ascii", "keep_emoji")},
    **{name: name for name in ("split_punctuation", "split_digits", "split_emoji", "wordpiece_scheme")},
}
_SENTENCEPIECE_SETTINGS = {
    "do_lower_case": "lower_case",
    **{name: name for name in ("strip_accents", "split_number_commas")},
}


@in_helpfull()
def define_tokenizer_flags() -> None:
    """Defines how text is normalised and split; used where no tokenizer.json says so, which is seldom."""
    define_flags_of_new_tokenizer(split_emoji=False)


def define_flags_of_new_tokenizer(split_emoji: bool = True) -> None:
    """Defines how text is normalised and split, for a command that makes a tokenizer.

    Args:
        split_emoji: The default of --split_emoji: on for new vocabularies, off for those made before there was one.
    """
    flags.DEFINE_bool("do_lower_case", True, "Lower-case letters; Hangul always stays composed.")
    flags.DEFINE_bool("strip_accents", False, "Drop accents from letters that are not Hangul.")
    flags.DEFINE_bool(
        "squeeze_repeats",
        False,
        "Keep only two of a Hangul character, punctuation mark or symbol that repeats more often.",
    )
    flags.DEFINE_bool("full_width_to_ascii", False, "Map full-width letters, digits and punctuation to ASCII.")
    flags.DEFINE_bool("keep_emoji", True, "Keep emoji sequences whole, with their joiners and variation selectors.")
    flags.DEFINE_bool("split_punctuation", True, "Make every punctuation mark a word of its own.")
    flags.DEFINE_bool("split_digits", False, "Make every number a word of its own.")
    flags.DEFINE_bool("split_emoji", split_emoji, "Make every emoji a word of its own.")
    flags.DEFINE_enum(
        "wordpiece_scheme",
        "continuation",
        WORDPIECE_SCHEMES,
        "continuation: ## inside words; end_of_word: _ after a word that a space follows.",
    )


def define_sentencepiece_flags() -> None:
    """Defines the flags of SentencePiece, beside those of `define_tokenizer_flags`."""
    flags.DEFINE_string(
        "spm_model_file",
        None,
        "SentencePiece model, instead of --vocab_file; a tokenizer.json beside spiece.model says how to use it.",
    )
    with in_helpfull():
        flags.DEFINE_bool(
            "split_number_commas",
            True,
            "With --spm_model_file: split a piece that ends in a digit and a comma before the comma.",
        )


def tokenizer_settings() -> dict:
    """Returns the settings of `KoreanWordPieceTokenizer` that the flags give."""
    return {setting: FLAGS[flag].value for flag, setting in _TOKENIZER_SETTINGS.items()}


def load_tokenizer(vocab_file: str) -> Tokenizer:
    """Builds a tokenizer from a vocabulary file, with the settings of the files beside it or else the flags'.

    Those are tokenizer.json, or what transformers writes.

    Raises:
        InputError: The vocabulary can't be used, or a flag was given that contradicts the files beside it.
    """
    folder, name = os.path.split(vocab_file)
    settings_file = os.path.join(folder, TOKENIZER_FILE)
    if name == VOCABULARY_FILE and is_of_transformers(folder):
        return _load_from_transformers(folder)
    if name != VOCABULARY_FILE or not tf.io.gfile.exists(settings_file):
        return KoreanWordPieceTokenizer.from_vocab_file(vocab_file, **tokenizer_settings())
    tokenizer = KoreanWordPieceTokenizer.load(folder)
    _check_flags(tokenizer, _TOKENIZER_SETTINGS, settings_file)
    return tokenizer


def _load_from_transformers(folder):
    """Returns the tokenizer that the model in a folder of transformers has here; says what differs."""
    # Converting takes seconds to import.
    from albert_tf.interchange.foreign_folder import tokenizer_of_transformers
    from albert_tf.interchange.portable_model import ReadOptions

    given = {flag: FLAGS[flag].value for flag in ("do_lower_case", "strip_accents") if FLAGS[flag].present}
    tokenizer, notes = tokenizer_of_transformers(folder, ReadOptions(**given))
    print(*notes, sep="\n", end="\n" if notes else "", flush=True)
    _check_flags(tokenizer, _TOKENIZER_SETTINGS, folder)
    return tokenizer


def load_any_tokenizer(vocab_file: str | None, spm_model_file: str | None) -> Tokenizer:
    """Builds a tokenizer from a SentencePiece model if there is one, else from a vocabulary file.

    Args:
        vocab_file: As for `load_tokenizer`; beside a model it must list that model's pieces.
        spm_model_file: The model; its settings are those of the tokenizer.json beside spiece.model, or else the flags'.

    Raises:
        InputError: A file can't be used, the two don't go together, or a flag was given that contradicts tokenizer.json
            or means nothing for SentencePiece.
    """
    if not spm_model_file:
        if vocab_file.endswith((".model", ".vocab")):
            raise InputError(
                f"--vocab_file={vocab_file} is a file of SentencePiece; name its .model in --spm_model_file"
            )
        return load_tokenizer(vocab_file)
    for flag in _TOKENIZER_SETTINGS.keys() - _SENTENCEPIECE_SETTINGS.keys():
        if FLAGS[flag].present:
            raise InputError(f"--{flag} does not apply to the SentencePiece model {spm_model_file}; leave it out")
    folder, name = os.path.split(spm_model_file)
    settings_file = os.path.join(folder, TOKENIZER_FILE)
    if name == MODEL_FILE and tf.io.gfile.exists(settings_file):
        tokenizer = SentencePieceTokenizer.load(folder)
        _check_flags(tokenizer, _SENTENCEPIECE_SETTINGS, settings_file)
    else:
        # Accents are kept by default for WordPiece, and dropped for SentencePiece, as the original does.
        strips_accents = FLAGS.strip_accents or not FLAGS["strip_accents"].present
        tokenizer = SentencePieceTokenizer.from_model_file(
            spm_model_file,
            lower_case=FLAGS.do_lower_case,
            strip_accents=strips_accents,
            split_number_commas=FLAGS.split_number_commas,
        )
    if vocab_file:
        _check_pieces(vocab_file, tokenizer, spm_model_file)
    return tokenizer


def _check_flags(tokenizer, settings, settings_file):
    """Checks that flags that were given say what a tokenizer.json says."""
    saved = tokenizer.to_dict()
    for flag, setting in settings.items():
        if flag in FLAGS and FLAGS[flag].present and FLAGS[flag].value != saved.get(setting):
            said = saved.get(setting, "nothing about it")
            raise InputError(
                f"--{flag}={FLAGS[flag].value} contradicts {settings_file}, which says {said}; "
                "leave the flag out, or build a vocabulary with it"
            )


def _check_pieces(vocab_file, tokenizer, spm_model_file):
    """Checks that the .vocab file that SentencePiece writes, a piece and its score a line, is that of a model."""
    lines = read_text(vocab_file, "the vocabulary").removesuffix("\n").split("\n")
    pieces = [line.removesuffix("\r").partition("\t")[0] for line in lines]
    if pieces != [piece.text for piece in tokenizer.model.pieces]:
        raise InputError(
            f"--vocab_file={vocab_file} does not list the pieces of --spm_model_file={spm_model_file}, which holds "
            "them itself; leave --vocab_file out"
        )
