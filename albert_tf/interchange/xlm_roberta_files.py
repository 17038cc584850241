"""XLM-RoBERTa's tokenizer: a SentencePiece model with the ids that fairseq gives its pieces, or tokenizer.json alone.

fairseq has four special tokens before the pieces and `<mask>` behind them. A model with its pieces in that order gives
the same ids by itself, so that no embedding has to move.
"""

import base64
import os
import typing

import tensorflow as tf

from albert_tf.errors import InputError, shorten
from albert_tf.files import read_json
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.tokenizer_kinds import BY_FILE, OF_ALL, Kind
from albert_tf.interchange.tokenizer_settings import check_added_tokens, choose, template_of
from albert_tf.tokenization import SentencePieceModel, SentencePieceTokenizer
from albert_tf.tokenization.base import TOKENIZER_FILE
from albert_tf.tokenization.sentencepiece.model import CONTROL, NORMAL, SPACE_MARK, UNKNOWN, Piece
from albert_tf.tokenization.sentencepiece.tokenizer import XLM_ROBERTA as FORM

MODEL_FILE = "sentencepiece.bpe.model"

_UNKNOWN, _MASK = "<unk>", "<mask>"
_FIRST = ("<s>", "<pad>", "</s>", _UNKNOWN)
_SPECIAL = (*_FIRST, _MASK)
# How models of fairseq begin; what is special has no score, and is no piece of text.
_FIRST_IN_MODEL = (_UNKNOWN, "<s>", "</s>")
_SWITCHES = ("do_lower_case", "strip_accents", "split_number_commas")
_RUNS_OF_SPACES = ({"Regex": " {2,}"}, {"String": "  "})
# Segments are ignored.
_TEMPLATES = [(["<s>", "A0", "</s>"], ["<s>", "A0", "</s>", "</s>", second, "</s>"]) for second in ("B0", "B1")]
_DIFFERS = (
    "ids are those of SentencePiece, as fairseq's and XLMRobertaTokenizer's in Python (version 4, use_fast=False) are; "
    "the fast one leaves some letters of Hangul apart that stand side by side (ㅋㅠ), and chooses otherwise of two "
    "ways to cut a text that are as probable"
)


def is_unigrams(values: dict) -> bool:
    """Whether a tokenizer.json holds pieces of SentencePiece with their scores."""
    model = values.get("model")
    return isinstance(model, dict) and model.get("type") == "Unigram"


def read_xlm_roberta(
    path: str | None, folder: str, options: ReadOptions, *_: typing.Any
) -> tuple[SentencePieceTokenizer, tuple[str, ...]]:
    """Returns XLM-RoBERTa's tokenizer, of a SentencePiece model or of tokenizer.json alone, and sentences on it.

    The two have to say the same, and flags may not ask for other steps.
    """
    for name in _SWITCHES:
        choose(name, False, options, False, folder)
    file = os.path.join(folder, TOKENIZER_FILE)
    unigrams = _read_unigrams(file) if tf.io.gfile.exists(file) else None
    if path is not None:
        model = _with_ids_of_fairseq(SentencePieceModel.from_file(path))
        if unigrams is not None and [piece.text for piece in model.pieces] != [piece.text for piece in unigrams.pieces]:
            raise InputError(f"{path} and the {TOKENIZER_FILE} beside it have different pieces; leave the right one")
    else:
        model = unigrams
    switches = dict.fromkeys(("lower_case", "strip_accents", "split_number_commas"), False)
    tokenizer = SentencePieceTokenizer(model, **switches, form=FORM)
    return tokenizer, (f"tokenizer: SentencePiece with form={FORM}", _DIFFERS)


def _with_ids_of_fairseq(model):
    first, pieces = model.pieces[: len(_FIRST_IN_MODEL)], model.pieces[len(_FIRST_IN_MODEL) :]
    if tuple(piece.text for piece in first) != _FIRST_IN_MODEL:
        raise InputError(f"{model.source} does not begin with {', '.join(_FIRST_IN_MODEL)}, as XLM-RoBERTa's models do")
    return model.arranged([*_FIRST, *(piece.text for piece in pieces), _MASK], _UNKNOWN)


def _read_unigrams(path):
    """Returns the model that a tokenizer.json holds, and checks that it does nothing else."""
    values = read_json(path, "the tokenizer")
    if not is_unigrams(values):
        raise InputError(f"{path} holds no SentencePiece vocabulary (model.type is not Unigram)")
    model = values["model"]
    if model.get("byte_fallback"):
        raise InputError(
            f"{path}: model.byte_fallback=true can't be kept; albert_tf's tokenizer doesn't spell "
            "unknown letters in bytes"
        )
    check_added_tokens(values, path, _SPECIAL)
    processor = values.get("post_processor")
    if not isinstance(processor, dict) or template_of(processor) not in _TEMPLATES:
        raise InputError(f"{path}: post_processor doesn't put texts as XLM-RoBERTa does (<s> A </s></s> B </s>)")
    kinds = dict.fromkeys(_SPECIAL, CONTROL) | {_UNKNOWN: UNKNOWN}
    try:
        pieces = [Piece(text, float(score), kinds.get(text, NORMAL)) for text, score in model["vocab"]]
        if not all(isinstance(piece.text, str) for piece in pieces):
            raise TypeError("a piece that is no text")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: model.vocab must hold pieces with their scores") from error
    if tuple(piece.text for piece in pieces[: len(_FIRST)]) != _FIRST or model.get("unk_id") != _FIRST.index(_UNKNOWN):
        raise InputError(f"{path}: its pieces don't begin with {', '.join(_FIRST)}, as XLM-RoBERTa's do")
    return SentencePieceModel.of_unigrams(pieces, _read_normalizer(values, path), path)


def _read_normalizer(values, path):
    """Returns the table of a tokenizer.json, empty if it has none, and checks that nothing else is done to texts."""
    steps = [*_steps(values.get("normalizer"), "normalizers"), *_steps(values.get("pre_tokenizer"), "pretokenizers")]
    tables = [step.get("precompiled_charsmap") for step in steps if step.get("type") == "Precompiled"]
    for step in steps:
        if not (step.get("type") == "Precompiled" or _takes_spaces_away(step) or _marks_spaces(step)):
            raise InputError(f"{path}: the step {shorten(step.get('type'))} gives other ids than albert_tf's tokenizer")
    if len(tables) > 1 or not any(map(_marks_spaces, steps)):
        raise InputError(f"{path}: XLM-RoBERTa's has at most one Precompiled, and a Metaspace; this gives other ids")
    try:
        return base64.b64decode(tables[0], validate=True) if tables else b""
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: the table of its normalizer is damaged; fetch it again") from error


def _steps(part, name):
    """Returns the steps of a part of a tokenizer.json, which is none, one, or a sequence of them."""
    steps = part.get(name, part) if isinstance(part, dict) else part
    steps = steps if isinstance(steps, list) else [] if steps is None else [steps]
    return [step if isinstance(step, dict) else {"type": step} for step in steps]


def _takes_spaces_away(step):
    """Whether a step only takes spaces away that SentencePiece takes away by itself."""
    is_run = step.get("type") == "Replace" and step.get("pattern") in _RUNS_OF_SPACES
    return step.get("type") in ("Strip", "WhitespaceSplit") or (is_run and step.get("content") in (" ", SPACE_MARK))


def _marks_spaces(step):
    """Whether a step is that which puts a mark in place of a space, and one before each text."""
    always = step.get("prepend_scheme") == "always" or step.get("add_prefix_space") is True
    return step.get("type") == "Metaspace" and always and step.get("replacement") == SPACE_MARK


XLM_ROBERTA = Kind(
    classes=("XLMRobertaTokenizer", *BY_FILE),
    only={
        **OF_ALL,
        "add_prefix_space": (True,),
        "sp_model_kwargs": ({},),
        "pad_token": ("<pad>",),
        "unk_token": ("<unk>",),
        "cls_token": ("<s>",),
        "sep_token": ("</s>",),
        "mask_token": ("<mask>",),
    },
    files=(MODEL_FILE,),
    reader=read_xlm_roberta,
    checks_json=True,
)
