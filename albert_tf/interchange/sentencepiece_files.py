"""SentencePiece models that lie beside other people's checkpoints, read with the settings of their tokenizers."""

import os

import tensorflow as tf

from albert_tf.errors import InputError, listed, shorten
from albert_tf.families import FAMILIES
from albert_tf.files import read_json
from albert_tf.interchange.families import family_named
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.tokenizer_kinds import ALBERT, BERT, KOBERT, XLM_ROBERTA, Kind
from albert_tf.interchange.tokenizer_settings import SPLIT, choose
from albert_tf.interchange.xlm_roberta_files import MODEL_FILE as XLM_ROBERTA_FILE
from albert_tf.tokenization import SentencePieceModel, SentencePieceTokenizer
from albert_tf.tokenization.base import TOKENIZER_FILE, check_switches
from albert_tf.tokenization.sentencepiece.model import CONTROL, UNKNOWN
from albert_tf.tokenization.sentencepiece.tokenizer import GOOGLE as GOOGLE_FORM
from albert_tf.tokenization.sentencepiece.tokenizer import HUGGINGFACE as HUGGINGFACE_FORM
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE, SENTENCEPIECE
from albert_tf.tokenization.sentencepiece.vocabulary import SentencePieceVocabulary
from albert_tf.tokenization.tokenizer import VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import UNK, Vocabulary

# What reads a checkpoint and the tokenizer beside it.
ALBERT_TF, GOOGLE, HUGGINGFACE, KERAS_HUB = "albert_tf", "google", "huggingface", "keras_hub"

KOBERT_FILE = "tokenizer_78b3253a26.model"
# Of Hugging Face, of Google's archives and TF-Hub modules, and of KerasHub.
_FILES = (
    MODEL_FILE,
    "30k-clean.model",
    os.path.join(os.pardir, "assets", "30k-clean.model"),
    os.path.join("assets", "tokenizer", "vocabulary.spm"),
    XLM_ROBERTA_FILE,
    KOBERT_FILE,
)
# Keys of KerasHub's tokenizers and of what cuts texts to a length, and the values that ours has.
_ONLY_IN_KERAS_HUB = {
    TOKENIZER_FILE: {"proto": None, "sequence_length": None, "add_bos": False, "add_eos": False},
    "preprocessor.json": {"truncate": "round_robin"},
}
_SWITCHES = ("do_lower_case", "keep_accents", SPLIT)
# Length, and how many pieces are masked, flags say here.
_WITHOUT_EFFECT = {
    *("name", "trainable", "dtype", "config_file", "tokenizer", "sequence_length"),
    *("mask_selection_rate", "mask_token_rate", "random_token_rate", "mask_selection_length"),
}
_FAST_DIFFERS = (
    "ids are those of transformers' AlbertTokenizer in Python (version 4, use_fast=False), as the original's are; the "
    "fast one cuts numbers off from commas by scores or not at all, drops marks of all kinds, leaves Hangul apart that "
    "it has taken apart (keep_accents=false), and chooses otherwise of two ways to cut a text that are as probable"
)


def find_sentencepiece(folder: str) -> str | None:
    """Returns the path of the SentencePiece model of a checkpoint's folder, None if there is none."""
    return next(filter(tf.io.gfile.exists, (os.path.join(folder, name) for name in _FILES)), None)


def kind_of_sentencepiece(path: str, settings: dict, has_vocabulary: bool) -> Kind | None:
    """Returns the kind of tokenizer that a SentencePiece model is; None if a WordPiece vocabulary beside it is meant.

    Settings are what tokenizer_config.json says, maybe nothing.
    """
    name = settings.get("tokenizer_class")
    name = name.removesuffix("Fast") if isinstance(name, str) else ""
    by_class = {**dict.fromkeys(ALBERT.classes, ALBERT), **dict.fromkeys(KOBERT.classes, KOBERT)}
    by_class |= {XLM_ROBERTA.classes[0]: XLM_ROBERTA, **dict.fromkeys(BERT.classes[:3])}
    by_file = {XLM_ROBERTA_FILE: XLM_ROBERTA, KOBERT_FILE: KOBERT}
    default = None if has_vocabulary else _of_family(os.path.dirname(path))
    return by_class[name] if name in by_class else by_file.get(os.path.basename(path), default)


def _of_family(folder):
    """Returns the kind that goes with the model in a folder, ALBERT's where its family isn't known."""
    path = os.path.join(folder, "config.json")
    name = read_json(path, "the model config").get("model_type") if tf.io.gfile.exists(path) else None
    return family_named(name).sentencepiece if isinstance(name, str) and name in FAMILIES else ALBERT


def read_sentencepiece(
    path: str, folder: str, settings: dict, options: ReadOptions, library: str, kind: Kind = ALBERT
) -> tuple[SentencePieceTokenizer, tuple[str, ...]]:
    """Returns the tokenizer that a library makes of a model that is `ALBERT` or `KOBERT`, and sentences on it.

    Settings are what tokenizer_config.json says, maybe nothing. An InputError if the model or a setting can't be used,
    or a flag contradicts the files.
    """
    model = SentencePieceModel.from_file(path)
    if kind is KOBERT:
        model = _with_ids_of_vocabulary(model, os.path.join(folder, VOCABULARY_FILE))
    if library == KERAS_HUB:
        notes = _check_keras_hub(folder)
        given = (options.do_lower_case, options.strip_accents, options.split_number_commas)
        form = GOOGLE_FORM if any(given) else SENTENCEPIECE
        lower_case, strip_accents, split_number_commas = map(bool, given)
    else:
        notes = ()
        keeps_accents = settings.get("keep_accents")
        check_switches({f"{folder}: {name}": settings[name] for name in _SWITCHES if settings.get(name) is not None})
        lower_case = choose("do_lower_case", settings.get("do_lower_case"), options, kind is ALBERT, folder)
        strips = None if keeps_accents is None else not keeps_accents
        strip_accents = choose("strip_accents", strips, options, True, folder)
        split_number_commas = options.split_number_commas is not False
        form = HUGGINGFACE_FORM if library == HUGGINGFACE and not settings.get(SPLIT) else GOOGLE_FORM
    chosen = {
        "lower_case": lower_case,
        "strip_accents": strip_accents,
        "normalize_quotes": library == HUGGINGFACE,
        "split_number_commas": split_number_commas,
    }
    said = ", ".join(f"{setting}={str(value).lower()}" for setting, value in chosen.items())
    in_text = form == GOOGLE_FORM and library != ALBERT_TF and _spells_special_pieces(model)
    tokenizer = SentencePieceTokenizer(model, **chosen, form=form, special_pieces_in_text=in_text)
    fast = (_FAST_DIFFERS,) if library == HUGGINGFACE else ()
    return tokenizer, (f"tokenizer: SentencePiece with form={form}, {said}", *notes, *fast)


def _with_ids_of_vocabulary(model, path):
    """Returns a model with the ids that a vocab.txt beside it gives its pieces, if there is one."""
    if not tf.io.gfile.exists(path):
        return model
    pieces = Vocabulary.from_file(path).pieces
    return model if pieces == [piece.text for piece in model.pieces] else model.arranged(pieces, UNK)


def _spells_special_pieces(model):
    """Whether text turns into special tokens where the model comes from, for they are ordinary pieces of it."""
    vocabulary = SentencePieceVocabulary(model)
    ordinary = (piece.text for piece in model.pieces if piece.type not in (CONTROL, UNKNOWN))
    return any(map(vocabulary.is_reserved, ordinary))


def _check_keras_hub(folder):
    """Checks what a preset says of its tokenizer and what prepares texts for it; returns sentences on unknown keys."""
    notes = []
    for name, only in _ONLY_IN_KERAS_HUB.items():
        path = os.path.join(folder, name)
        if not tf.io.gfile.exists(path):
            continue
        values = read_json(path, "the tokenizer of the preset")
        config, class_name = values.get("config"), str(values.get("class_name"))
        if not isinstance(config, dict) or not class_name.startswith("Albert"):
            raise InputError(
                f"{path}: class_name={shorten(class_name)} gives other ids than albert_tf's tokenizer; only "
                "AlbertTokenizer can be converted"
            )
        for key, value in only.items():
            if config.get(key) not in (None, value):
                said = shorten(config[key])
                raise InputError(f"{path}: {key}={said} gives other ids than albert_tf's tokenizer, which has {value}")
        unknown = sorted(config.keys() - {*only, *_WITHOUT_EFFECT})
        if unknown:
            notes.append(f"{path}: ignored, because they are unknown: {listed(unknown)}")
    return tuple(notes)
