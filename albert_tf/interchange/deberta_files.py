"""The tokenizer of DeBERTa-v2 and v3: a SentencePiece model with BERT's special tokens, [MASK] behind all pieces."""

from albert_tf.errors import InputError, quote
from albert_tf.interchange.tokenizer_kinds import OF_ALL, Kind
from albert_tf.interchange.tokenizer_settings import choose
from albert_tf.tokenization import SentencePieceModel, SentencePieceTokenizer
from albert_tf.tokenization.sentencepiece.model import UNKNOWN
from albert_tf.tokenization.sentencepiece.tokenizer import DEBERTA as FORM
from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK

MODEL_FILE = "spm.model"

_SWITCHES = ("do_lower_case", "strip_accents", "split_number_commas")
_DIFFERS = (
    "ids are those of SentencePiece, as DebertaV2Tokenizer's in Python (version 4, use_fast=False) are; the fast one "
    "chooses otherwise of two ways to cut a text that are as probable, and version 5 leaves out what the model does to "
    "texts before it cuts them (NFKC)"
)


def _read(path, folder, options, *_):
    switches = dict.fromkeys(("lower_case", "strip_accents", "split_number_commas"), False)
    for name in _SWITCHES:
        choose(name, False, options, False, folder)
    model = SentencePieceModel.from_file(path)
    pieces = [piece.text for piece in model.pieces]
    unknown = next(piece.text for piece in model.pieces if piece.type == UNKNOWN)
    if unknown != UNK:
        raise InputError(f"{path} calls the unknown piece {quote(unknown)}; in DeBERTa's models it is {UNK}")
    if MASK not in pieces:
        model = model.arranged([*pieces, MASK], UNK)
    tokenizer = SentencePieceTokenizer(model, **switches, form=FORM)
    return tokenizer, (f"tokenizer: SentencePiece with form={FORM}", _DIFFERS)


DEBERTA = Kind(
    classes=("DebertaV2Tokenizer",),
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
)
