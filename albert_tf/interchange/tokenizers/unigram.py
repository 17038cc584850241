"""SentencePiece's tokenizers that leave texts to the model, of its own file or a tokenizer.json: XLM-RoBERTa, DeBERTa.

XLM-RoBERTa's pieces have the ids that fairseq gives them, which has four special tokens before the pieces and `<mask>`
behind them. A model with its pieces in that order gives the same ids by itself, so that no embedding has to move.
DeBERTa-v2 and v3 have BERT's special tokens, and [MASK] behind all pieces.
"""

import base64
import collections.abc
import os
import typing

import tensorflow as tf

from albert_tf.base.errors import InputError, quote, shorten
from albert_tf.base.files import read_json
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.tokenizers.settings import BY_FILE, OF_ALL, Kind, check_added_tokens, choose, template_of
from albert_tf.tokenization import SentencePieceModel, SentencePieceTokenizer
from albert_tf.tokenization.base import TOKENIZER_FILE
from albert_tf.tokenization.sentencepiece.model import CONTROL, NORMAL, SPACE_MARK, UNKNOWN, Piece
from albert_tf.tokenization.sentencepiece.tokenizer import DEBERTA as DEBERTA_FORM
from albert_tf.tokenization.sentencepiece.tokenizer import XLM_ROBERTA as XLM_ROBERTA_FORM
from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK

_SWITCHES = ("do_lower_case", "strip_accents", "split_number_commas")
_RUNS_OF_SPACES = ({"Regex": " {2,}"}, {"String": "  "})


class Unigrams(typing.NamedTuple):
    """The content that the tokenizer.json of a family's models must have."""

    family: str  # in errors
    form: str  # of our tokenizer
    first: tuple[str, ...]  # special tokens that its pieces begin with, the unknown one last
    mask: str  # the other special token, behind all pieces if it is none of them
    puts: str  # how a text and two are put, in errors
    templates: tuple[tuple[list[str], list[str]], ...]  # the same as `template_of` has it
    in_normalized: tuple[str, ...]  # special tokens that may be looked for in normalised text


def is_unigrams(values: dict) -> bool:
    """Whether a tokenizer.json holds pieces of SentencePiece with their scores."""
    model = values.get("model")
    return isinstance(model, dict) and model.get("type") == "Unigram"


def read_tokenizer(
    path: str | None,
    folder: str,
    options: ReadOptions,
    wanted: Unigrams,
    with_ids: collections.abc.Callable[[SentencePieceModel], SentencePieceModel],
    checks_json: bool = True,
) -> SentencePieceTokenizer:
    """Returns the tokenizer of a SentencePiece model that `with_ids` gives its ids, or of tokenizer.json alone.

    An InputError if a flag asks for other steps, or, where `checks_json`, the two hold different pieces.
    """
    for name in _SWITCHES:
        choose(name, False, options, False, folder)
    file = os.path.join(folder, TOKENIZER_FILE)
    unigrams = _read_unigrams(file, wanted) if checks_json and tf.io.gfile.exists(file) else None
    model = unigrams if path is None else with_ids(SentencePieceModel.from_file(path))
    if unigrams is not None and [piece.text for piece in model.pieces] != [piece.text for piece in unigrams.pieces]:
        raise InputError(f"{path} and the {TOKENIZER_FILE} beside it have different pieces; leave the right one")
    switches = dict.fromkeys(("lower_case", "strip_accents", "split_number_commas"), False)
    return SentencePieceTokenizer(model, **switches, form=wanted.form)


def _read_unigrams(path, wanted):
    """Returns the model that a tokenizer.json holds, and checks that it does nothing else."""
    values = read_json(path, "the tokenizer")
    if not is_unigrams(values):
        raise InputError(f"{path} holds no SentencePiece vocabulary (model.type is not Unigram)")
    model, first = values["model"], wanted.first
    if model.get("byte_fallback"):
        raise InputError(
            f"{path}: model.byte_fallback=true can't be kept; albert_tf's tokenizer doesn't spell "
            "unknown letters in bytes"
        )
    special = (*first, wanted.mask)
    check_added_tokens(values, path, special, wanted.in_normalized)
    processor = values.get("post_processor")
    if not isinstance(processor, dict) or template_of(processor) not in wanted.templates:
        raise InputError(f"{path}: post_processor doesn't put texts as {wanted.family} does ({wanted.puts})")
    kinds = dict.fromkeys(special, CONTROL) | {first[-1]: UNKNOWN}
    try:
        pieces = [Piece(text, float(score), kinds.get(text, NORMAL)) for text, score in model["vocab"]]
        if not all(isinstance(piece.text, str) for piece in pieces):
            raise TypeError("a piece that is no text")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: model.vocab must hold pieces with their scores") from error
    if tuple(piece.text for piece in pieces[: len(first)]) != first or model.get("unk_id") != len(first) - 1:
        raise InputError(f"{path}: its pieces don't begin with {', '.join(first)}, as {wanted.family}'s do")
    if all(piece.text != wanted.mask for piece in pieces):
        pieces.append(Piece(wanted.mask, 0.0, CONTROL))
    return SentencePieceModel.of_unigrams(pieces, _read_normalizer(values, path, wanted.family), path)


def _read_normalizer(values, path, family):
    """Returns the table of a tokenizer.json, empty if it has none, and checks that nothing else is done to texts."""
    steps = [*_steps(values.get("normalizer"), "normalizers"), *_steps(values.get("pre_tokenizer"), "pretokenizers")]
    tables = [step.get("precompiled_charsmap") for step in steps if step.get("type") == "Precompiled"]
    for step in steps:
        if not (step.get("type") == "Precompiled" or _takes_spaces_away(step) or _marks_spaces(step)):
            raise InputError(f"{path}: the step {shorten(step.get('type'))} gives other ids than albert_tf's tokenizer")
    if len(tables) > 1 or not any(map(_marks_spaces, steps)):
        raise InputError(f"{path}: {family}'s has at most one Precompiled, and a Metaspace; this gives other ids")
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


XLM_ROBERTA_FILE = "sentencepiece.bpe.model"

_UNKNOWN, _MASK = "<unk>", "<mask>"
_FIRST_OF_FAIRSEQ = ("<s>", "<pad>", "</s>", _UNKNOWN)
# How models of fairseq begin; what is special has no score, and is no piece of text.
_FIRST_IN_MODEL = (_UNKNOWN, "<s>", "</s>")
_OF_XLM_ROBERTA = Unigrams(
    "XLM-RoBERTa",
    XLM_ROBERTA_FORM,
    _FIRST_OF_FAIRSEQ,
    _MASK,
    "<s> A </s></s> B </s>",
    # Segments are ignored.
    tuple((["<s>", "A0", "</s>"], ["<s>", "A0", "</s>", "</s>", second, "</s>"]) for second in ("B0", "B1")),
    (_MASK,),
)
_XLM_ROBERTA_DIFFERS = (
    "ids are those of SentencePiece, as fairseq's and XLMRobertaTokenizer's in Python (version 4, use_fast=False) are; "
    "the fast one leaves some letters of Hangul apart that stand side by side (ㅋㅠ), and chooses otherwise of two "
    "ways to cut a text that are as probable"
)


def read_xlm_roberta(
    path: str | None, folder: str, options: ReadOptions, *_: typing.Any
) -> tuple[SentencePieceTokenizer, tuple[str, ...]]:
    tokenizer = read_tokenizer(path, folder, options, _OF_XLM_ROBERTA, _with_ids_of_fairseq)
    return tokenizer, (f"tokenizer: SentencePiece with form={XLM_ROBERTA_FORM}", _XLM_ROBERTA_DIFFERS)


def _with_ids_of_fairseq(model):
    first, pieces = model.pieces[: len(_FIRST_IN_MODEL)], model.pieces[len(_FIRST_IN_MODEL) :]
    if tuple(piece.text for piece in first) != _FIRST_IN_MODEL:
        raise InputError(f"{model.source} does not begin with {', '.join(_FIRST_IN_MODEL)}, as XLM-RoBERTa's models do")
    return model.arranged([*_FIRST_OF_FAIRSEQ, *(piece.text for piece in pieces), _MASK], _UNKNOWN)


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
    files=(XLM_ROBERTA_FILE,),
    reader=read_xlm_roberta,
    checks_json=True,
)


DEBERTA_FILE = "spm.model"

_OF_DEBERTA = Unigrams(
    "DeBERTa",
    DEBERTA_FORM,
    (PAD, CLS, SEP, UNK),
    MASK,
    "[CLS] A [SEP] B [SEP]",
    (([CLS, "A0", SEP], [CLS, "A0", SEP, "B1", SEP]),),
    (UNK,),
)
_DEBERTA_DIFFERS = (
    "ids are those of SentencePiece, as DebertaV2Tokenizer's in Python (version 4, use_fast=False) are; the fast one "
    "chooses otherwise of two ways to cut a text that are as probable, and version 5 leaves out what the model does to "
    "texts before it cuts them (NFKC)"
)


def _read_deberta(path, folder, options, *_):
    tokenizer = read_tokenizer(path, folder, options, _OF_DEBERTA, _with_mask, checks_json=not options.spm_model_file)
    return tokenizer, (f"tokenizer: SentencePiece with form={DEBERTA_FORM}", _DEBERTA_DIFFERS)


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
    files=(DEBERTA_FILE,),
    reader=_read_deberta,
    checks_json=True,
    in_normalized=_OF_DEBERTA.in_normalized,
)
