"""XLM-RoBERTa's tokenizer: a SentencePiece model with the ids that fairseq gives its pieces, or tokenizer.json alone.

fairseq has four special tokens before the pieces and `<mask>` behind them. A model with its pieces in that order gives
the same ids by itself, so that no embedding has to move.
"""

import base64
import binascii
import os

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.files import read_json
from albert_tf.interchange.portable_model import ReadOptions
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
# Parts of tokenizer.json that only take spaces away, which SentencePiece does by itself.
_OF_SPACES = ("Strip", "WhitespaceSplit")
_SPACES = ({"Regex": " {2,}"}, {"String": "  "})
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
    path: str | None, folder: str, options: ReadOptions
) -> tuple[SentencePieceTokenizer, tuple[str, ...]]:
    """Returns XLM-RoBERTa's tokenizer, and sentences on it.

    Args:
        path: The SentencePiece model; None where there is tokenizer.json alone.
        folder: Of the checkpoint; a tokenizer.json in it has to say the same as the model.
        options: What the flags say.

    Raises:
        InputError: A file is none of XLM-RoBERTa's, the two contradict each other, or a flag asks for other steps.
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
        raise InputError(f"{path} holds no pieces of SentencePiece (model.type is not Unigram)")
    model = values["model"]
    if model.get("byte_fallback"):
        raise InputError(f"{path}: model.byte_fallback=true can't be kept; ours spells no unknown letters in bytes")
    check_added_tokens(values, path, _SPECIAL)
    processor = values.get("post_processor")
    if not isinstance(processor, dict) or template_of(processor) not in _TEMPLATES:
        raise InputError(f"{path}: post_processor doesn't put texts as XLM-RoBERTa does (<s> A </s></s> B </s>)")
    try:
        pieces = [Piece(text, float(score), _kind_of(text)) for text, score in model["vocab"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: model.vocab must hold pieces with their scores") from error
    if tuple(piece.text for piece in pieces[: len(_FIRST)]) != _FIRST or model.get("unk_id") != _FIRST.index(_UNKNOWN):
        raise InputError(f"{path}: its pieces don't begin with {', '.join(_FIRST)}, as XLM-RoBERTa's do")
    return SentencePieceModel.of_unigrams(pieces, _read_normalizer(values, path), path)


def _kind_of(text):
    return UNKNOWN if text == _UNKNOWN else CONTROL if text in _SPECIAL else NORMAL


def _read_normalizer(values, path):
    """Returns the table of a tokenizer.json, empty if it has none."""
    tables = []
    for key, steps in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")):
        part = values.get(key) or {}
        for step in part.get(steps) or [part] * bool(part) if isinstance(part, dict) else [part]:
            step = step if isinstance(step, dict) else {"type": str(step)[:40]}
            kind = step.get("type")
            if kind == "Precompiled":
                tables.append(step.get("precompiled_charsmap"))
            elif not (kind in _OF_SPACES or step.get("pattern") in _SPACES or _marks_spaces(step)):
                raise InputError(f"{path}: {key} holds {kind}, which gives ids that ours does not")
    try:
        return b"".join(base64.b64decode(table, validate=True) for table in tables)
    except (TypeError, binascii.Error) as error:
        raise InputError(f"{path}: the table of its normalizer is damaged; fetch it again") from error


def _marks_spaces(step):
    """Whether a step is that which puts a mark in place of a space, and one before each text."""
    always = step.get("prepend_scheme") == "always" or step.get("add_prefix_space") is True
    return step.get("type") == "Metaspace" and always and step.get("replacement") == SPACE_MARK
