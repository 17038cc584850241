"""The tokenizer of DeBERTa-v2 and v3: a SentencePiece model with BERT's special tokens, [MASK] behind all pieces."""

from albert_tf.base.errors import InputError, quote
from albert_tf.interchange.tokenizers.settings import BY_FILE, OF_ALL, Kind
from albert_tf.interchange.tokenizers.unigram import Unigrams, read_tokenizer
from albert_tf.tokenization.sentencepiece.model import UNKNOWN
from albert_tf.tokenization.sentencepiece.tokenizer import DEBERTA as FORM
from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK

MODEL_FILE = "spm.model"

_UNIGRAMS = Unigrams(
    "DeBERTa",
    FORM,
    (PAD, CLS, SEP, UNK),
    MASK,
    "[CLS] A [SEP] B [SEP]",
    (([CLS, "A0", SEP], [CLS, "A0", SEP, "B1", SEP]),),
    (UNK,),
)
_DIFFERS = (
    "ids are those of SentencePiece, as DebertaV2Tokenizer's in Python (version 4, use_fast=False) are; the fast one "
    "chooses otherwise of two ways to cut a text that are as probable, and version 5 leaves out what the model does to "
    "texts before it cuts them (NFKC)"
)


def _read(path, folder, options, *_):
    tokenizer = read_tokenizer(path, folder, options, _UNIGRAMS, _with_mask, checks_json=not options.spm_model_file)
    return tokenizer, (f"tokenizer: SentencePiece with form={FORM}", _DIFFERS)


def _with_mask(model):
    pieces = [piece.text for piece in model.pieces]
    unknown = next(piece.text for piece in model.pieces if piece.type == UNKNOWN)
    if unknown != UNK:
        raise InputError(f"{model.source} calls the unknown piece {quote(unknown)}; in DeBERTa's models it is {UNK}")
    return model if MASK in pieces else model.arranged([*pieces, MASK], UNK)


DEBERTA = Kind(
    classes=("DebertaV2Tokenizer", *BY_FILE),
    only={
        **OF_ALL,
        "do_lower_case": (False,),
        "split_by_punct": (False,),
        "split_special_tokens": (False,),
        "add_prefix_space": (True,),
        "sp_model_kwargs": ({},),
        "vocab_type": ("spm",),
        "pad_token": (PAD,),
        "unk_token": (UNK,),
        "cls_token": (CLS,),
        "sep_token": (SEP,),
        "mask_token": (MASK,),
    },
    read=("unk_id",),
    files=(MODEL_FILE,),
    reader=_read,
    checks_json=True,
    in_normalized=_UNIGRAMS.in_normalized,
)
