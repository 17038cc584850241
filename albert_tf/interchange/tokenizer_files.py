"""The tokenizers that lie beside other people's checkpoints, read as ours, and ours written beside exported ones."""

import collections.abc
import dataclasses
import os

import tensorflow as tf

from albert_tf.errors import InputError, with_extra
from albert_tf.files import read_json
from albert_tf.interchange.portable_model import PortableModel, ReadOptions
from albert_tf.interchange.sentencepiece_files import (
    ALBERT_TF,
    GOOGLE,
    HUGGINGFACE,
    find_sentencepiece,
    kind_of_sentencepiece,
    read_sentencepiece,
)
from albert_tf.interchange.tokenizer_settings import BERT, BY_FILE, XLM_ROBERTA, agreed, check_backend, check_config
from albert_tf.interchange.xlm_roberta_files import is_unigrams, read_xlm_roberta
from albert_tf.tokenization import KoreanWordPieceTokenizer, SentencePieceTokenizer, Tokenizer, load_tokenizer
from albert_tf.tokenization.base import KIND
from albert_tf.tokenization.huggingface import CONFIG_FILE, differences, export_huggingface
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX, check_scheme

# Our settings in folders where another file is called tokenizer.json.
OWN_SETTINGS_FILE = "albert_tf_tokenizer.json"
_SPECIAL_TOKENS_FILE = "special_tokens_map.json"
# Of the WordPiece tokenizer in the original's tokenization.py.
_MAX_CHARACTERS_OF_GOOGLE = 200


@dataclasses.dataclass(frozen=True)
class FoundTokenizer:
    """What lay beside a checkpoint.

    Attributes:
        tokenizer: None if there is none that we can read.
        sentencepiece_file: A SentencePiece model that is not the tokenizer's; None if there is none.
        notes: Sentences on what differs.
    """

    tokenizer: Tokenizer | None = None
    sentencepiece_file: str | None = None
    notes: tuple[str, ...] = ()


class _TwoTokenizersError(InputError):
    """Two files give different ids, and a flag has to say which is meant."""


def with_tokenizer(model: PortableModel, folder: str, options: ReadOptions, library: str = ALBERT_TF) -> PortableModel:
    """Returns a model with the tokenizer that `find_tokenizer` finds for it, and what it has to say."""
    found = find_tokenizer(folder, options, model.config.vocab_size, library)
    model.tokenizer, model.sentencepiece_file = found.tokenizer, found.sentencepiece_file
    model.notes += found.notes
    if found.tokenizer is not None:
        model.config.check_vocabulary(found.tokenizer.vocabulary)
    return model


def find_tokenizer(folder: str, options: ReadOptions, vocab_size: int, library: str = ALBERT_TF) -> FoundTokenizer:
    """Finds the tokenizer of a checkpoint.

    Args:
        folder: Of the checkpoint.
        options: What the flags say.
        vocab_size: Rows of the model's table; a vocabulary with fewer pieces is filled up with [unused] ones.
        library: What reads the checkpoint, and the tokenizer beside it: `ALBERT_TF`, `GOOGLE`, `HUGGINGFACE` or
            `KERAS_HUB`.

    Raises:
        InputError: What the flags name can't be used, a vocabulary has more pieces than the model, or there are two
            tokenizers with different ids and no flag says which is meant.
    """
    sentencepiece_file = find_sentencepiece(folder)
    try:
        found = _find(folder, options, sentencepiece_file, library)
    except InputError as error:
        if options.vocab_file or options.spm_model_file or isinstance(error, _TwoTokenizersError):
            raise
        return FoundTokenizer(None, sentencepiece_file, (f"no tokenizer: {error}",))
    if found is None:
        note = "no tokenizer: there is none beside it; name one with `vocab_file` or `spm_model_file`"
        return FoundTokenizer(None, None, (note,))
    tokenizer, notes = found
    tokenizer, filled = _filled_up(tokenizer, vocab_size)
    if isinstance(tokenizer, SentencePieceTokenizer):
        sentencepiece_file = None
    return FoundTokenizer(tokenizer, sentencepiece_file, (*notes, *filled))


def _find(folder, options, sentencepiece_file, library):
    """Returns the tokenizer and sentences on it, or None."""
    if options.vocab_file and options.spm_model_file:
        raise InputError("`vocab_file` and `spm_model_file` name two tokenizers; leave one out")
    if options.vocab_file:
        return _of_vocabulary_file(options)
    named = options.spm_model_file
    if named and not _is_same_file(named, sentencepiece_file):
        return read_sentencepiece(named, folder, {}, options, library)
    own = None if named else _own_tokenizer(folder)
    if own is not None:
        _check_flags(own, options, folder)
        return own, ()
    has_file = {name: tf.io.gfile.exists(os.path.join(folder, name)) for name in _NAMES}
    config_file = os.path.join(folder, CONFIG_FILE)
    settings = read_json(config_file, "the tokenizer's config") if has_file[CONFIG_FILE] else {}
    if sentencepiece_file:
        kind = kind_of_sentencepiece(sentencepiece_file, settings, has_file[VOCABULARY_FILE] and not named)
        if kind is not None:
            return _of_sentencepiece(folder, has_file, settings, options, sentencepiece_file, library, kind)
    if named:
        return read_sentencepiece(named, folder, {}, options, library)
    if has_file[TOKENIZER_FILE] and is_unigrams(read_json(os.path.join(folder, TOKENIZER_FILE), "the tokenizer")):
        notes = _check_configs(folder, has_file, XLM_ROBERTA)
        tokenizer, more = read_xlm_roberta(None, folder, options)
        return tokenizer, (*notes, *more)
    return _of_bert(folder, has_file, settings, options, library)


def _is_same_file(one, other):
    return other is not None and os.path.realpath(one) == os.path.realpath(other)


_NAMES = (TOKENIZER_FILE, VOCABULARY_FILE, CONFIG_FILE, _SPECIAL_TOKENS_FILE)


def _of_vocabulary_file(options):
    """Returns a tokenizer of our own form for the vocabulary that a flag names, and sentences on it."""
    vocabulary = Vocabulary.from_file(options.vocab_file)
    check_scheme(vocabulary, "continuation")
    lower_case = _first(options.do_lower_case, True)
    strip_accents = _first(options.strip_accents, lower_case)
    notes = ["text is normalised and split as albert_tf does it, as `vocab_file` names a vocabulary alone"]
    if strip_accents and _has_hangul(vocabulary):
        notes.append(
            "accents are stripped, as BERT's tokenizers do it unless told otherwise, but Hangul stays composed here, "
            "which those take apart; if the model was trained on composed Hangul, pass `strip_accents=False`"
        )
    return KoreanWordPieceTokenizer(vocabulary, lower_case=lower_case, strip_accents=strip_accents), tuple(notes)


def _of_sentencepiece(folder, has_file, settings, options, path, library, kind):
    """Returns the tokenizer of a model that lies beside the checkpoint, and sentences on it."""
    named = options.spm_model_file
    # Where a flag says that the model is meant, a class that does what tokenizer.json says is no contradiction.
    notes = _check_configs(folder, has_file, kind._replace(classes=(*kind.classes, *BY_FILE)) if named else kind)
    if kind is XLM_ROBERTA:
        tokenizer, more = read_xlm_roberta(path, folder, options)
        return tokenizer, (*notes, *more)
    tokenizer, more = read_sentencepiece(path, folder, settings, options, library, kind)
    if library == HUGGINGFACE and has_file[TOKENIZER_FILE] and not named:
        raise _TwoTokenizersError(
            f"{os.path.join(folder, TOKENIZER_FILE)} gives other ids for some texts than {path} beside it, which is "
            f"the one that can be kept; pass `spm_model_file={path}` to take that, with the ids of the original and of "
            f"{kind.classes[0]} in Python (transformers 4, use_fast=False)"
        )
    return tokenizer, (*notes, *more)


def _of_bert(folder, has_file, config, options, library):
    """Returns the tokenizer of BERT's files, and sentences on it; None if there is no vocabulary."""
    if not (has_file[TOKENIZER_FILE] or has_file[VOCABULARY_FILE]):
        return None
    vocabulary, backend, notes = None, {}, _check_configs(folder, has_file, BERT)
    if has_file[TOKENIZER_FILE]:
        path = os.path.join(folder, TOKENIZER_FILE)
        vocabulary, backend = _from_tokenizers_library(read_json(path, "the tokenizer"), path)
    if has_file[VOCABULARY_FILE]:
        path = os.path.join(folder, VOCABULARY_FILE)
        of_file = Vocabulary.from_file(path)
        if vocabulary is not None and of_file.pieces != vocabulary.pieces:
            raise InputError(f"{path} and the {TOKENIZER_FILE} beside it have different pieces; leave the right one")
        vocabulary = of_file
    check_scheme(vocabulary, "continuation")
    settings = agreed(config, backend, options, folder)
    if settings["strip_accents"] and _has_hangul(vocabulary):
        notes.append(
            "accents are stripped, and Hangul is taken apart with them, as BERT's tokenizer does it unless told "
            "otherwise: the composed Hangul of the vocabulary is never matched; if the model was trained on it, pass "
            "`strip_accents=False`"
        )
    form = "bert"
    if library == GOOGLE and not (has_file[CONFIG_FILE] or has_file[TOKENIZER_FILE]):
        form = "google"
        settings.update(max_characters_per_word=_MAX_CHARACTERS_OF_GOOGLE, special_tokens_in_text=False)
    return KoreanWordPieceTokenizer(vocabulary, **settings, keep_emoji=False, form=form), tuple(notes)


def _check_configs(folder, has_file, kind):
    """Returns sentences on keys that are not known in files that say how a tokenizer of Hugging Face is used."""
    paths = [os.path.join(folder, name) for name in (CONFIG_FILE, _SPECIAL_TOKENS_FILE) if has_file[name]]
    return [note for path in paths for note in check_config(read_json(path, "the tokenizer's config"), path, kind)]


def _has_hangul(vocabulary):
    return any("가" <= character <= "힣" for piece in vocabulary.pieces for character in piece)


def _own_tokenizer(folder):
    """Returns the tokenizer whose settings we wrote, None if we wrote none."""
    for name in (OWN_SETTINGS_FILE, TOKENIZER_FILE):
        path = os.path.join(folder, name)
        if not tf.io.gfile.exists(path):
            continue
        settings = read_json(path, "the tokenizer settings")
        file = MODEL_FILE if KIND in settings else VOCABULARY_FILE
        if {KIND, "vocab_sha256"} & settings.keys() and tf.io.gfile.exists(os.path.join(folder, file)):
            return load_tokenizer(folder, name)
    return None


def _check_flags(tokenizer, options, folder):
    saved = tokenizer.to_dict()
    flags = {"do_lower_case": "lower_case", "strip_accents": "strip_accents", "split_number_commas": None}
    for flag, name in flags.items():
        given, said = getattr(options, flag), saved.get(name or flag)
        if given is not None and given != said:
            raise InputError(f"`{flag}={given}` contradicts the tokenizer in {folder}, which says {said}; leave it out")


def _first(*values):
    return next(value for value in values if value is not None)


def _from_tokenizers_library(values, path):
    """Returns the vocabulary and the switches in a tokenizer.json of the `tokenizers` library."""
    model = values.get("model")
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict):
        raise InputError(f"{path} holds no WordPiece vocabulary")
    if model.get("type", "WordPiece") != "WordPiece":
        raise InputError(
            f"{path} holds {str(model['type'])[:40]}, and neither WordPiece nor SentencePiece, which alone are known "
            "here; choose a model with one of these"
        )
    if model.get("continuing_subword_prefix") != CONTINUATION_PREFIX:
        raise InputError(f"{path} holds no WordPiece vocabulary with {CONTINUATION_PREFIX}")
    switches = check_backend(values, path)
    ids = dict(model["vocab"])
    for token in values.get("added_tokens") or []:
        if isinstance(token, dict) and isinstance(token.get("content"), str):
            ids.setdefault(token["content"], token.get("id"))
    if not all(type(value) is int for value in ids.values()) or sorted(ids.values()) != list(range(len(ids))):
        raise InputError(f"{path} gives pieces ids that don't count from 0")
    return Vocabulary(sorted(ids, key=ids.get), path), switches


def _filled_up(tokenizer, vocab_size):
    """Returns a tokenizer with as many pieces as the model, and a sentence if it had fewer."""
    pieces = tokenizer.vocabulary.pieces
    if len(pieces) > vocab_size:
        flag = "spm_model_file" if isinstance(tokenizer, SentencePieceTokenizer) else "vocab_file"
        raise InputError(
            f"{tokenizer.vocabulary.source} has {len(pieces)} pieces, and the model {vocab_size}; name the vocabulary "
            f"that it was trained with in `{flag}`"
        )
    count = vocab_size - len(pieces)
    if not count:
        return tokenizer, ()
    if isinstance(tokenizer, SentencePieceTokenizer):
        filled = tokenizer.with_unused(tokenizer.num_unused + count)
    else:
        filled = _with_unused(tokenizer, count)
    return filled, (f"the vocabulary is filled up with {count} [unused] pieces, so that it is as large as the model",)


def _with_unused(tokenizer, count):
    pieces = tokenizer.vocabulary.pieces
    known = set(pieces)
    names = (f"[unused{number}]" for number in range(len(pieces) + count))
    more = [name for name in names if name not in known][:count]
    settings = {name: value for name, value in tokenizer.to_dict().items() if name != "vocab_sha256"}
    return KoreanWordPieceTokenizer(Vocabulary([*pieces, *more], tokenizer.vocabulary.source), **settings)


def write_beside_others(tokenizer: Tokenizer, folder: str) -> None:
    """Writes a tokenizer where tokenizer.json is the name of another file."""
    tokenizer.save(folder, OWN_SETTINGS_FILE)


def write_for_transformers(tokenizer: Tokenizer, folder: str, max_seq_length: int) -> list[str]:
    """Writes what `transformers.AutoTokenizer` reads; returns a sentence if that can't say what ours does.

    Raises:
        InputError: The library `tokenizers` is not there.
    """
    try:
        export_huggingface(tokenizer, folder, max_seq_length)
    except ImportError as error:
        raise InputError(
            "`to=huggingface` needs the library tokenizers to write tokenizer.json; install it with "
            f"pip install {with_extra('huggingface')}"
        ) from error
    except InputError as error:
        notes = [f"no tokenizer: {error}"]
        if isinstance(tokenizer, SentencePieceTokenizer):
            write_beside_others(tokenizer, folder)
        return notes
    write_beside_others(tokenizer, folder)
    found = differences(tokenizer)
    return [f"the tokenizer gives the same ids there, but {found}"] if found else []


def ids_of(tokenizer: Tokenizer | None, names: collections.abc.Mapping[str, str]) -> dict[str, int]:
    """Returns the ids of special tokens by the names that another library has for them, as far as they are there."""
    if tokenizer is None:
        return {}
    vocabulary = tokenizer.vocabulary
    return {name: vocabulary.id_of(token) for name, token in names.items() if token in vocabulary}
