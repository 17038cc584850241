"""SentencePiece's tokenizers that leave texts to the model, which lies in a file of its own or in a tokenizer.json."""

import base64
import collections.abc
import os
import typing

import tensorflow as tf

from albert_tf.base.errors import InputError, shorten
from albert_tf.base.files import read_json
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.tokenizers.settings import check_added_tokens, choose, template_of
from albert_tf.tokenization import SentencePieceModel, SentencePieceTokenizer
from albert_tf.tokenization.base import TOKENIZER_FILE
from albert_tf.tokenization.sentencepiece.model import CONTROL, NORMAL, SPACE_MARK, UNKNOWN, Piece

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
