"""The tokenizers that lie beside other people's checkpoints, read as ours, and ours written beside exported ones."""

import collections.abc
import dataclasses
import os

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.files import read_json, write_json
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.huggingface import CONFIG_FILE, export_huggingface
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX, check_scheme

# Our settings in folders where another file is called tokenizer.json.
OWN_SETTINGS_FILE = "albert_tf_tokenizer.json"
SENTENCEPIECE_FILE = "spiece.model"
_SENTENCEPIECE_NAMES = (SENTENCEPIECE_FILE, "30k-clean.model")


@dataclasses.dataclass(frozen=True)
class FoundTokenizer:
    """What lay beside a checkpoint.

    Attributes:
        tokenizer: None if there is none that we can read.
        sentencepiece_file: None if there is none.
        notes: Sentences on what differs.
    """

    tokenizer: KoreanWordPieceTokenizer | None = None
    sentencepiece_file: str | None = None
    notes: tuple[str, ...] = ()


def find_tokenizer(folder: str, options: ReadOptions, vocab_size: int) -> FoundTokenizer:
    """Finds the tokenizer of a checkpoint.

    Args:
        folder: Of the checkpoint.
        options: What the flags say.
        vocab_size: Rows of the model's table; a vocabulary with fewer pieces is filled up with [unused] ones.

    Raises:
        InputError: What the flags name can't be used, or a vocabulary has more pieces than the model.
    """
    paths = [os.path.join(folder, name) for name in _SENTENCEPIECE_NAMES]
    sentencepiece_file = next(filter(tf.io.gfile.exists, paths), None)
    try:
        found = _find_wordpiece(folder, options)
    except InputError as error:
        if options.vocab_file:
            raise
        return FoundTokenizer(None, sentencepiece_file, (f"no tokenizer: {error}",))
    if found is None:
        what = f"{SENTENCEPIECE_FILE} is copied, but not read" if sentencepiece_file else "there is none beside it"
        note = f"no tokenizer: {what}; add a WordPiece vocabulary with --vocab_file and --do_lower_case"
        return FoundTokenizer(None, sentencepiece_file, (note,))
    tokenizer, notes = found
    tokenizer, filled = _filled_up(tokenizer, vocab_size)
    return FoundTokenizer(tokenizer, sentencepiece_file, (*notes, *filled))


def _find_wordpiece(folder, options):
    """Returns the tokenizer and sentences on it, or None."""
    has_file = {name: tf.io.gfile.exists(os.path.join(folder, name)) for name in _NAMES}
    if options.vocab_file:
        return _of_vocabulary(Vocabulary.from_file(options.vocab_file), {}, options)
    own = _own_tokenizer(folder, has_file)
    if own is not None:
        _check_flags(own, options, folder)
        return own, ()
    settings = read_json(os.path.join(folder, CONFIG_FILE), "the tokenizer's config") if has_file[CONFIG_FILE] else {}
    vocabulary = None
    if has_file[TOKENIZER_FILE]:
        path = os.path.join(folder, TOKENIZER_FILE)
        vocabulary, switches = _from_tokenizers_library(read_json(path, "the tokenizer"), path)
        settings = {**switches, **settings}
    if has_file[VOCABULARY_FILE]:
        vocabulary = Vocabulary.from_file(os.path.join(folder, VOCABULARY_FILE))
    return None if vocabulary is None else _of_vocabulary(vocabulary, settings, options)


_NAMES = (TOKENIZER_FILE, VOCABULARY_FILE, CONFIG_FILE, OWN_SETTINGS_FILE)


def _own_tokenizer(folder, has_file):
    """Returns the tokenizer whose settings we wrote, None if we wrote none."""
    if not has_file[VOCABULARY_FILE]:
        return None
    for name in (OWN_SETTINGS_FILE, TOKENIZER_FILE):
        if has_file[name]:
            settings = read_json(os.path.join(folder, name), "the tokenizer settings")
            if "vocab_sha256" in settings:
                return KoreanWordPieceTokenizer.load(folder, name)
    return None


def _check_flags(tokenizer, options, folder):
    saved = tokenizer.to_dict()
    for flag, name in (("do_lower_case", "lower_case"), ("strip_accents", "strip_accents")):
        given = getattr(options, flag)
        if given is not None and given != saved[name]:
            raise InputError(
                f"--{flag}={given} contradicts the tokenizer in {folder}, which says {saved[name]}; leave the flag out"
            )


def _of_vocabulary(vocabulary, settings, options):
    """Returns a tokenizer with the settings of a BERT tokenizer's config, and sentences on it."""
    check_scheme(vocabulary, "continuation")
    lower_case = _first(options.do_lower_case, settings.get("do_lower_case"), True)
    strip_accents = _first(options.strip_accents, settings.get("strip_accents"), lower_case)
    notes = []
    if settings.get("tokenize_chinese_chars") is False:
        notes.append("tokenize_chinese_chars=false is not kept: every ideograph is a word of its own here")
    if strip_accents and any("가" <= character <= "힣" for piece in vocabulary.pieces for character in piece):
        notes.append(
            "accents are stripped, as BERT's tokenizers do it unless told otherwise, but Hangul stays composed here, "
            "which those take apart; if the model was trained on composed Hangul, pass --nostrip_accents"
        )
    tokenizer = KoreanWordPieceTokenizer(vocabulary, lower_case=lower_case, strip_accents=strip_accents)
    return tokenizer, tuple(notes)


def _first(*values):
    return next(value for value in values if value is not None)


def _from_tokenizers_library(values, path):
    """Returns the vocabulary and the switches in a tokenizer.json of the `tokenizers` library."""
    model, normalizer = values.get("model"), values.get("normalizer")
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict):
        raise InputError(f"{path} holds no WordPiece vocabulary")
    if model.get("type", "WordPiece") != "WordPiece" or model.get("continuing_subword_prefix") != CONTINUATION_PREFIX:
        raise InputError(f"{path} holds no WordPiece vocabulary with {CONTINUATION_PREFIX}")
    if normalizer is not None and (not isinstance(normalizer, dict) or normalizer.get("type") != "BertNormalizer"):
        raise InputError(f"{path} normalises text as no BERT tokenizer does")
    ids = dict(model["vocab"])
    for token in values.get("added_tokens") or []:
        if isinstance(token, dict) and isinstance(token.get("content"), str):
            ids.setdefault(token["content"], token.get("id"))
    if not all(type(value) is int for value in ids.values()) or sorted(ids.values()) != list(range(len(ids))):
        raise InputError(f"{path} gives pieces ids that don't count from 0")
    normalizer = normalizer or {"lowercase": False, "strip_accents": False}
    switches = {
        "do_lower_case": normalizer.get("lowercase"),
        "strip_accents": normalizer.get("strip_accents"),
        "tokenize_chinese_chars": normalizer.get("handle_chinese_chars"),
    }
    return Vocabulary(sorted(ids, key=ids.get), path), switches


def _filled_up(tokenizer, vocab_size):
    """Returns a tokenizer with as many pieces as the model, and a sentence if it had fewer."""
    pieces = tokenizer.vocabulary.pieces
    if len(pieces) > vocab_size:
        raise InputError(
            f"{tokenizer.vocabulary.source} has {len(pieces)} pieces, and the model {vocab_size}; name the vocabulary "
            "that it was trained with in --vocab_file"
        )
    if len(pieces) == vocab_size:
        return tokenizer, ()
    known = set(pieces)
    names = (f"[unused{number}]" for number in range(2 * vocab_size))
    more = [name for name in names if name not in known][: vocab_size - len(pieces)]
    settings = {name: value for name, value in tokenizer.to_dict().items() if name != "vocab_sha256"}
    filled = KoreanWordPieceTokenizer(Vocabulary([*pieces, *more], tokenizer.vocabulary.source), **settings)
    return filled, (
        f"the vocabulary is filled up with {len(more)} [unused] pieces, so that it is as large as the model",
    )


def write_beside_others(tokenizer: KoreanWordPieceTokenizer, folder: str) -> None:
    """Writes a tokenizer where tokenizer.json is the name of another file."""
    tokenizer.vocabulary.to_file(os.path.join(folder, VOCABULARY_FILE))
    write_json(os.path.join(folder, OWN_SETTINGS_FILE), tokenizer.to_dict())


def write_for_transformers(tokenizer: KoreanWordPieceTokenizer, folder: str, max_seq_length: int) -> list[str]:
    """Writes what `transformers.AutoTokenizer` reads; returns a sentence if that can't say what ours does.

    Raises:
        InputError: The library `tokenizers` is not there.
    """
    try:
        export_huggingface(tokenizer, folder, max_seq_length)
    except ImportError as error:
        raise InputError(
            "--to=huggingface needs the library tokenizers to write tokenizer.json; install it with "
            "pip install 'albert_tf[huggingface]'"
        ) from error
    except InputError as error:
        return [f"no tokenizer: {error}"]
    write_beside_others(tokenizer, folder)
    return []


def copy_sentencepiece(path: str | None, folder: str) -> None:
    """Copies a SentencePiece model, if there is one."""
    if path is not None:
        tf.io.gfile.copy(path, os.path.join(folder, SENTENCEPIECE_FILE))


def ids_of(tokenizer: KoreanWordPieceTokenizer | None, names: collections.abc.Mapping[str, str]) -> dict[str, int]:
    """Returns the ids of special tokens by the names that another library has for them, as far as they are there."""
    if tokenizer is None:
        return {}
    vocabulary = tokenizer.vocabulary
    return {name: vocabulary.id_of(token) for name, token in names.items() if token in vocabulary}
