"""SentencePiece models that lie beside other people's checkpoints, read with the settings of their tokenizers."""

import os

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.tokenization import SentencePieceTokenizer
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE

# What reads a checkpoint and the tokenizer beside it.
ALBERT_TF, GOOGLE, HUGGINGFACE, KERAS_HUB = "albert_tf", "google", "huggingface", "keras_hub"

# Of Hugging Face, of Google's archives and TF-Hub modules, and of KerasHub.
_FILES = (
    MODEL_FILE,
    "30k-clean.model",
    os.path.join(os.pardir, "assets", "30k-clean.model"),
    os.path.join("assets", "tokenizer", "vocabulary.spm"),
)
# What Hugging Face's tokenizers that do what the original does around SentencePiece begin with; others do none of it.
_LIKE_ALBERT = ("Albert", "XLNet")


def find_sentencepiece(folder: str) -> str | None:
    """Returns the path of the SentencePiece model of a checkpoint's folder, None if there is none."""
    return next(filter(tf.io.gfile.exists, (os.path.join(folder, name) for name in _FILES)), None)


def is_of_sentencepiece(settings: dict, has_vocabulary: bool) -> bool:
    """Whether the SentencePiece model is the tokenizer, and not a WordPiece vocabulary beside it.

    Args:
        settings: What tokenizer_config.json says, maybe nothing.
        has_vocabulary: Whether there is a vocab.txt.
    """
    name = _class_of(settings)
    return not name.startswith("Bert") and (name.startswith(_LIKE_ALBERT) or not has_vocabulary)


def read_sentencepiece(
    path: str, settings: dict, options: ReadOptions, library: str
) -> tuple[SentencePieceTokenizer, tuple[str, ...]]:
    """Returns a tokenizer with the settings of a tokenizer_config.json, and sentences on it.

    Args:
        path: The model.
        settings: What tokenizer_config.json says, maybe nothing.
        options: What the flags say, which comes first.
        library: What reads the checkpoint: `GOOGLE` or another.

    Raises:
        InputError: The model or a setting can't be used.
    """
    name = _class_of(settings)
    is_like_albert = not name or name.startswith(_LIKE_ALBERT)
    notes = []
    if not is_like_albert:
        notes.append(
            f"SentencePiece alone, as tokenizer_class={name} is not ALBERT's: letters keep case and accents unless "
            "--do_lower_case and --strip_accents say otherwise"
        )
    keeps_accents = settings.get("keep_accents", not is_like_albert)
    chosen = {
        "lower_case": _first(options.do_lower_case, settings.get("do_lower_case"), is_like_albert),
        "strip_accents": _first(options.strip_accents, not keeps_accents),
        "normalize_quotes": library == HUGGINGFACE and is_like_albert,
        "split_number_commas": _first(options.split_number_commas, is_like_albert),
    }
    if settings.get("remove_space") is False:
        raise InputError(f"{path}: its config has remove_space=false, and ours makes one of every run of spaces")
    tokenizer = SentencePieceTokenizer.from_model_file(path, **chosen)
    said = ", ".join(f"{setting}={str(value).lower()}" for setting, value in chosen.items())
    return tokenizer, (f"tokenizer: SentencePiece with {said}", *notes)


def _class_of(settings):
    name = settings.get("tokenizer_class")
    return name if isinstance(name, str) else ""


def _first(*values):
    return next(value for value in values if value is not None)
