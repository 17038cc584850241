"""XLM-RoBERTa's tokenizer: a SentencePiece model with the ids that fairseq gives its pieces, or tokenizer.json alone.

fairseq has four special tokens before the pieces and `<mask>` behind them. A model with its pieces in that order gives
the same ids by itself, so that no embedding has to move.
"""

import typing

from albert_tf.base.errors import InputError
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.tokenizers.settings import BY_FILE, OF_ALL, Kind
from albert_tf.interchange.tokenizers.unigram import Unigrams, read_tokenizer
from albert_tf.tokenization import SentencePieceTokenizer
from albert_tf.tokenization.sentencepiece.tokenizer import XLM_ROBERTA as FORM

MODEL_FILE = "sentencepiece.bpe.model"

_UNKNOWN, _MASK = "<unk>", "<mask>"
_FIRST = ("<s>", "<pad>", "</s>", _UNKNOWN)
# How models of fairseq begin; what is special has no score, and is no piece of text.
_FIRST_IN_MODEL = (_UNKNOWN, "<s>", "</s>")
_UNIGRAMS = Unigrams(
    "XLM-RoBERTa",
    FORM,
    _FIRST,
    _MASK,
    "<s> A </s></s> B </s>",
    # Segments are ignored.
    tuple((["<s>", "A0", "</s>"], ["<s>", "A0", "</s>", "</s>", second, "</s>"]) for second in ("B0", "B1")),
    (_MASK,),
)
_DIFFERS = (
    "ids are those of SentencePiece, as fairseq's and XLMRobertaTokenizer's in Python (version 4, use_fast=False) are; "
    "the fast one leaves some letters of Hangul apart that stand side by side (ㅋㅠ), and chooses otherwise of two "
    "ways to cut a text that are as probable"
)


def read_xlm_roberta(
    path: str | None, folder: str, options: ReadOptions, *_: typing.Any
) -> tuple[SentencePieceTokenizer, tuple[str, ...]]:
    tokenizer = read_tokenizer(path, folder, options, _UNIGRAMS, _with_ids_of_fairseq)
    return tokenizer, (f"tokenizer: SentencePiece with form={FORM}", _DIFFERS)


def _with_ids_of_fairseq(model):
    first, pieces = model.pieces[: len(_FIRST_IN_MODEL)], model.pieces[len(_FIRST_IN_MODEL) :]
    if tuple(piece.text for piece in first) != _FIRST_IN_MODEL:
        raise InputError(f"{model.source} does not begin with {', '.join(_FIRST_IN_MODEL)}, as XLM-RoBERTa's models do")
    return model.arranged([*_FIRST, *(piece.text for piece in pieces), _MASK], _UNKNOWN)


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
