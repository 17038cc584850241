"""The tokenizers that lie beside other people's checkpoints, read as ours, and ours written beside exported ones."""

import collections.abc
import dataclasses
import os

import tensorflow as tf

from albert_tf.base.errors import InputError, with_extra
from albert_tf.base.files import read_json
from albert_tf.base.texts import ODD_TO_FIRST, ODD_TO_LONGER, ODD_TO_SECOND
from albert_tf.config import FAMILIES, AlbertConfig
from albert_tf.interchange.families import family_named
from albert_tf.interchange.portable_model import PortableModel, ReadOptions
from albert_tf.interchange.tokenizers.sentencepiece import ALBERT, ALBERT_TF, GOOGLE, HUGGINGFACE, KERAS_HUB
from albert_tf.interchange.tokenizers.settings import BERT, BY_FILE, check_configs, read_tokenizer_config
from albert_tf.interchange.tokenizers.unigram import XLM_ROBERTA, is_unigrams
from albert_tf.interchange.tokenizers.wordpiece import read_vocabulary_file, read_wordpiece
from albert_tf.tokenization import (
    KoreanWordPieceTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
    Vocabulary,
    load_tokenizer,
)
from albert_tf.tokenization.base import KIND
from albert_tf.tokenization.huggingface import differences, export_huggingface
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE

# Our settings in folders where another file is called tokenizer.json.
OWN_SETTINGS_FILE = "albert_tf_tokenizer.json"

# How a library cuts pairs: KerasHub's "round_robin" leaves what Google's loop does.
_TRUNCATIONS = {
    ALBERT_TF: ODD_TO_SECOND,
    GOOGLE: ODD_TO_FIRST,
    HUGGINGFACE: ODD_TO_LONGER,
    KERAS_HUB: ODD_TO_FIRST,
}

# SentencePiece models in folders of Hugging Face, in Google's archives and TF-Hub modules, and in KerasHub's presets.
_FILES = (
    MODEL_FILE,
    "30k-clean.model",
    os.path.join(os.pardir, "assets", "30k-clean.model"),
    os.path.join("assets", "tokenizer", "vocabulary.spm"),
)

# Begins the notes on models without one.
NO_TOKENIZER = "no tokenizer: "


@dataclasses.dataclass(frozen=True)
class FoundTokenizer:
    """The tokenizer that lay beside a checkpoint."""

    tokenizer: Tokenizer | None = None  # None if there is none that can be read
    sentencepiece_file: str | None = None  # a SentencePiece model that is not the tokenizer's
    notes: tuple[str, ...] = ()  # sentences on what differs


class _TwoTokenizersError(InputError):
    """Two files give different ids, and a flag has to say which is meant."""


def with_tokenizer(model: PortableModel, folder: str, options: ReadOptions, library: str = ALBERT_TF) -> PortableModel:
    """Gives a model the tokenizer that `find_tokenizer` finds, and the notes on it; returns the model."""
    found = find_tokenizer(folder, options, model.config.vocab_size, library)
    model.tokenizer, model.sentencepiece_file = found.tokenizer, found.sentencepiece_file
    model.notes += found.notes
    if found.tokenizer is not None:
        model.config.check_vocabulary(found.tokenizer.vocabulary)
    return model


def find_tokenizer(folder: str, options: ReadOptions, vocab_size: int, library: str = ALBERT_TF) -> FoundTokenizer:
    """Returns the tokenizer in a checkpoint's folder as `library` reads it, filled up to `vocab_size` pieces.

    An InputError if what flags name can't be used, a vocabulary has more pieces than the model, or two tokenizers give
    different ids and no flag says which is meant.
    """
    sentencepiece_file = _find_sentencepiece(folder)
    try:
        found = _find(folder, options, sentencepiece_file, library)
    except InputError as error:
        if options.vocab_file or options.spm_model_file or isinstance(error, _TwoTokenizersError):
            raise
        return FoundTokenizer(None, sentencepiece_file, (f"{NO_TOKENIZER}{error}",))
    if found is None:
        note = f"{NO_TOKENIZER}there is none beside it; name one with `vocab_file` or `spm_model_file`"
        return FoundTokenizer(None, None, (note,))
    tokenizer, notes = found
    tokenizer, filled = _filled_up(tokenizer, vocab_size)
    if isinstance(tokenizer, SentencePieceTokenizer):
        sentencepiece_file = None
    return FoundTokenizer(tokenizer, sentencepiece_file, (*notes, *filled))


def _find(folder, options, sentencepiece_file, library):
    if options.vocab_file and options.spm_model_file:
        raise InputError("`vocab_file` and `spm_model_file` name two tokenizers; leave one out")
    own = None if options.vocab_file or options.spm_model_file else _own_tokenizer(folder)
    if own is not None:
        _check_flags(own, options, folder)
        return own, ()
    found = _find_others(folder, options, sentencepiece_file, library)
    if found is None:
        return None
    tokenizer, notes = found
    rule = tokenizer.vocabulary.truncation
    return tokenizer.with_truncation(_TRUNCATIONS[library] if rule == ODD_TO_SECOND else rule), notes


def _find_others(folder, options, sentencepiece_file, library):
    if options.vocab_file:
        return read_vocabulary_file(options)
    named = options.spm_model_file
    if named and not (sentencepiece_file and os.path.realpath(named) == os.path.realpath(sentencepiece_file)):
        return _kind_of_sentencepiece(named, {}, False).reader(named, folder, options, {}, library)
    has_file = {name: tf.io.gfile.exists(os.path.join(folder, name)) for name in (TOKENIZER_FILE, VOCABULARY_FILE)}
    settings = read_tokenizer_config(folder)
    if sentencepiece_file:
        kind = _kind_of_sentencepiece(sentencepiece_file, settings, has_file[VOCABULARY_FILE] and not named)
        if kind is not None:
            return _of_sentencepiece(folder, has_file, settings, options, sentencepiece_file, library, kind)
    if named:
        return ALBERT.reader(named, folder, options, {}, library)
    if has_file[TOKENIZER_FILE] and is_unigrams(read_json(os.path.join(folder, TOKENIZER_FILE), "the tokenizer")):
        kind = next(kind for kind in (_of_family(folder), XLM_ROBERTA) if kind.checks_json)
        notes = check_configs(folder, kind)
        tokenizer, more = kind.reader(None, folder, options, settings, library)
        return tokenizer, (*notes, *more)
    return read_wordpiece(folder, settings, options, as_google=library == GOOGLE)


def _kinds():
    """Returns the kinds of tokenizers of SentencePiece models that families of encoders have."""
    return [family_named(name).sentencepiece for name in FAMILIES]


def _find_sentencepiece(folder):
    """Returns the path of the SentencePiece model of a checkpoint's folder, None if there is none."""
    names = (*_FILES, *(file for kind in _kinds() for file in kind.files))
    return next(filter(tf.io.gfile.exists, (os.path.join(folder, name) for name in names)), None)


def _kind_of_sentencepiece(path, settings, has_vocabulary):
    """Returns the kind of a SentencePiece model's tokenizer; None if a WordPiece vocabulary beside it is meant."""
    name = settings.get("tokenizer_class")
    name = name.removesuffix("Fast") if isinstance(name, str) else ""
    if name in BERT.classes and name not in BY_FILE:
        return None
    by_class = [kind for kind in _kinds() if name in kind.classes and name not in BY_FILE]
    by_file = [kind for kind in _kinds() if os.path.basename(path) in kind.files]
    default = None if has_vocabulary else _of_family(os.path.dirname(path))
    return [*by_class, *by_file, default][0]


def _of_family(folder):
    """Returns the kind of the family of the model in a folder, ALBERT's where the family isn't known."""
    path = os.path.join(folder, "config.json")
    name = read_json(path, "the model config").get("model_type") if tf.io.gfile.exists(path) else None
    return family_named(name).sentencepiece if isinstance(name, str) and name in FAMILIES else ALBERT


def _of_sentencepiece(folder, has_file, settings, options, path, library, kind):
    named = options.spm_model_file
    # Where a flag says that the model is meant, a class that does what tokenizer.json says is no contradiction.
    notes = check_configs(folder, kind._replace(classes=(*kind.classes, *BY_FILE)) if named else kind)
    tokenizer, more = kind.reader(path, folder, options, settings, library)
    if not kind.checks_json and library == HUGGINGFACE and has_file[TOKENIZER_FILE] and not named:
        raise _TwoTokenizersError(
            f"{os.path.join(folder, TOKENIZER_FILE)} gives other ids for some texts than {path} beside it, which is "
            f"the one that can be kept; pass `spm_model_file={path}` to use that, with the ids of the original and of "
            f"{kind.classes[0]} in Python (transformers 4, use_fast=False)"
        )
    return tokenizer, (*notes, *more)


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


def write_for_transformers(tokenizer: Tokenizer, folder: str, config: AlbertConfig, max_seq_length: int) -> list[str]:
    """Writes what `transformers.AutoTokenizer` reads; returns a sentence if that can't say what ours does."""
    try:
        export_huggingface(tokenizer, folder, max_seq_length, config.type_vocab_size > 1)
    except ImportError as error:
        raise InputError(
            "`to=huggingface` needs the library tokenizers to write tokenizer.json; install it with "
            f"pip install {with_extra('huggingface')}"
        ) from error
    except InputError as error:
        notes = [f"{NO_TOKENIZER}{error}"]
        if isinstance(tokenizer, SentencePieceTokenizer):
            tokenizer.save(folder, OWN_SETTINGS_FILE)
        return notes
    tokenizer.save(folder, OWN_SETTINGS_FILE)
    found = differences(tokenizer)
    return [f"the tokenizer gives the same ids there, but {found}"] if found else []


def ids_of(tokenizer: Tokenizer | None, names: collections.abc.Mapping[str, str]) -> dict[str, int]:
    """Returns the ids of special tokens by the names that another library has for them, as far as they are there."""
    if tokenizer is None:
        return {}
    vocabulary = tokenizer.vocabulary
    return {name: vocabulary.id_of(token) for name, token in names.items() if token in vocabulary}
