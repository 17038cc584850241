"""SentencePiece models that lie beside other people's checkpoints, read with the settings of their tokenizers."""

import os

import tensorflow as tf

from albert_tf.base.errors import InputError, listed, shorten
from albert_tf.base.files import read_json
from albert_tf.base.texts import ODD_TO_FIRST
from albert_tf.interchange.tokenizers.settings import OF_ALL, SPLIT, Kind, choose
from albert_tf.tokenization import SentencePieceModel, SentencePieceTokenizer
from albert_tf.tokenization.base import TOKENIZER_FILE, check_switches
from albert_tf.tokenization.sentencepiece.model import CONTROL, UNKNOWN, SentencePieceVocabulary
from albert_tf.tokenization.sentencepiece.tokenizer import GOOGLE as GOOGLE_FORM
from albert_tf.tokenization.sentencepiece.tokenizer import HUGGINGFACE as HUGGINGFACE_FORM
from albert_tf.tokenization.sentencepiece.tokenizer import SENTENCEPIECE
from albert_tf.tokenization.tokenizer import VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK, Vocabulary

# The libraries that read a checkpoint and the tokenizer beside it.
ALBERT_TF, GOOGLE, HUGGINGFACE, KERAS_HUB = "albert_tf", "google", "huggingface", "keras_hub"

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


def _read_albert(path, folder, options, settings, library):
    return _read(SentencePieceModel.from_file(path), folder, options, settings, library, lower_case=True)


def _read_kobert(path, folder, options, settings, library):
    model = _with_ids_of_vocabulary(SentencePieceModel.from_file(path), os.path.join(folder, VOCABULARY_FILE))
    tokenizer, notes = _read(model, folder, options, settings, library, lower_case=False)
    return tokenizer.with_truncation(ODD_TO_FIRST), notes  # it is one of Python, which cuts as Google's code does


def _read(model, folder, options, settings, library, lower_case):
    """Returns the tokenizer that a library makes of a model, and sentences on it; `lower_case` is a default."""
    if library == KERAS_HUB:
        notes = _check_keras_hub(folder)
        given = (options.do_lower_case, options.strip_accents, options.split_number_commas)
        form = GOOGLE_FORM if any(given) else SENTENCEPIECE
        lower_case, strip_accents, split_number_commas = map(bool, given)
    else:
        notes = ()
        keeps_accents = settings.get("keep_accents")
        check_switches({f"{folder}: {name}": settings[name] for name in _SWITCHES if settings.get(name) is not None})
        lower_case = choose("do_lower_case", settings.get("do_lower_case"), options, lower_case, folder)
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
    """Whether text can turn into special tokens where the model comes from, as they are ordinary pieces there."""
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


ALBERT = Kind(
    classes=("AlbertTokenizer",),
    only={
        **OF_ALL,
        "remove_space": (True,),
        "add_prefix_space": (True,),
        "sp_model_kwargs": ({},),
        "pad_token": (PAD, "<pad>"),
        "unk_token": ("<unk>", UNK),
        "cls_token": (CLS, "<cls>"),
        "sep_token": (SEP, "<sep>"),
        "mask_token": (MASK, "<mask>"),
    },
    read=("keep_accents",),
    reader=_read_albert,
)
# ALBERT's steps but for lower-casing, and BERT's special tokens. The folder brings a class of its own, or names that of
# XLNet, which that is made from.
KOBERT = Kind(
    classes=("KoBertTokenizer", "KoBERTTokenizer", "XLNetTokenizer"),
    only={key: allowed for key, allowed in ALBERT.only.items() if key != "auto_map"},
    read=(*ALBERT.read, "auto_map"),
    files=("tokenizer_78b3253a26.model",),
    reader=_read_kobert,
)
