"""The settings of tokenizers in Hugging Face's files: those that change ids are read, or refused by name."""

import collections.abc
import os
import typing

import tensorflow as tf

from albert_tf.base.errors import InputError, listed, quote, shorten
from albert_tf.base.files import read_json
from albert_tf.interchange.portable_model import Caveat, ReadOptions
from albert_tf.tokenization.base import TOKENIZER_FILE, check_switches
from albert_tf.tokenization.huggingface import CONFIG_FILE
from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, SPECIAL_TOKENS, UNK
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX

# The kinds of tokenizers of Hugging Face that ours can be, and the settings with which they give the same ids.

MAX_CHARACTERS = "max_input_chars_per_word"


class Kind(typing.NamedTuple):
    """A kind of tokenizer that ours can be."""

    classes: tuple[str, ...]  # that are it; the first one where files name none
    only: dict[str, tuple]  # keys of tokenizer_config.json, and the values that do what ours does; None always does
    read: tuple[str, ...] = ()  # keys that are looked at
    files: tuple[str, ...] = ()  # what its SentencePiece models alone are called
    # Makes our tokenizer, and sentences on it, of a model's path, its folder, `ReadOptions`, what tokenizer_config.json
    # says (maybe nothing), and the library that reads it; an InputError if they can't be used or disagree.
    reader: collections.abc.Callable[..., tuple[typing.Any, tuple[str, ...]]] | None = None
    # Whether that reads a tokenizer.json, too, alone (then the model's path is None) or beside the model.
    checks_json: bool = False
    # Special tokens that the fast tokenizer alone looks for in normalised text; XLM-RoBERTa's unless said otherwise.
    in_normalized: tuple[str, ...] = ("<mask>",)


# Classes that do what tokenizer.json says.
BY_FILE = ("PreTrainedTokenizerFast", "TokenizersBackend", "PreTrainedTokenizer")

# Keys that any of them may have.
OF_ALL = {"additional_special_tokens": ([],), "extra_special_tokens": ([], {}), "auto_map": ({},)}
BERT = Kind(
    classes=("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", *BY_FILE),
    only={
        **OF_ALL,
        "do_basic_tokenize": (True,),
        "never_split": ([],),
        "tokenize_chinese_chars": (True,),
        "clean_text": (True,),
        "word_tokenizer_type": ("basic",),
        "subword_tokenizer_type": ("wordpiece",),
        "wordpieces_prefix": (CONTINUATION_PREFIX,),
        "add_prefix_space": (False,),
        "pad_token": (PAD,),
        "unk_token": (UNK,),
        "cls_token": (CLS,),
        "sep_token": (SEP,),
        "mask_token": (MASK,),
    },
    read=("strip_accents", MAX_CHARACTERS),
)


_SPECIAL_TOKENS_FILE, _ADDED_TOKENS_FILE = "special_tokens_map.json", "added_tokens.json"
# Of the model. Where the tokenizer's own config names no class, it may.
_MODEL_CONFIG_FILE = "config.json"
_CLASS = "tokenizer_class"
SPLIT = "split_special_tokens"
# From there on a length says that none is known; transformers writes 10 ** 30.
_MOST_POSITIONS = 10**9
# Hugging Face's tokenizers have it unless they say otherwise.
DEFAULT_MAX_CHARACTERS = 100

_READ = (_CLASS, "do_lower_case", "added_tokens_decoder", SPLIT, "model_max_length", "max_len", "truncation_side")
_ORIGIN = "where it was read, and by what"
_OF_A_CALL = "of one call, which says it anew"
_OF_PADDING = "padding is masked"
# Keys that change no id of a text, and why.
WITHOUT_EFFECT = {
    **dict.fromkeys(("backend", "full_tokenizer_file", "is_local", "local_files_only", "name_or_path"), _ORIGIN),
    **dict.fromkeys(
        ("processor_class", "special_tokens_map_file", "tokenizer_file", "vocab_file", "use_fast"), _ORIGIN
    ),
    "transformers_version": _ORIGIN,
    **dict.fromkeys(("max_length", "stride", "truncation", "truncation_strategy", "padding"), _OF_A_CALL),
    **dict.fromkeys(("pad_to_multiple_of", "pad_token_type_id", "padding_side"), _OF_PADDING),
    **dict.fromkeys(("bos_token", "eos_token"), "cls_token and sep_token are what stands around texts"),
    **dict.fromkeys(("do_subword_tokenize", "do_word_tokenize"), "of BertJapaneseTokenizer, which is refused"),
    "clean_up_tokenization_spaces": "of text made of ids",
    "trim_offsets": "where pieces stand, and not which they are",
    "_spm_precompiled_charsmap": "the table is read from the model's file",
    "model_input_names": "the model's config says whether it has segments",
}


def check_config(settings: dict, path: str, kind: Kind) -> tuple[str, ...]:
    """Checks what a tokenizer_config.json or special_tokens_map.json says; returns sentences on unknown keys."""
    for key, allowed in kind.only.items():
        value = _content(settings.get(key))
        if value is not None and value not in allowed:
            raise InputError(
                f"{path}: {key}={quote(value)} gives other ids than albert_tf's tokenizer, which has {allowed[0]!r}"
            )
    if settings.get("truncation_side", "right") != "right":
        raise InputError(
            f"{path}: truncation_side={shorten(settings['truncation_side'])} cuts the beginnings of long texts off, "
            "and albert_tf their ends; it can't be converted"
        )
    _check_class(settings.get(_CLASS), path, kind)
    added = settings.get("added_tokens_decoder") or {}
    if not isinstance(added, dict):
        raise InputError(f"{path}: added_tokens_decoder must hold tokens by their ids. Received: {shorten(added)}")
    for token in added.values():
        _check_added(token, f"{path}: added_tokens_decoder", _special_tokens(kind), kind.in_normalized)
    known = {*kind.only, *kind.read, *_READ, *WITHOUT_EFFECT}
    unknown = [key for key, value in settings.items() if key not in known and value not in (None, False)]
    if not unknown:
        return ()
    return (Caveat(f"{path}: ignored, because they are unknown: {listed(sorted(unknown))}"),)


def check_configs(folder: str, kind: Kind) -> list[str]:
    """Checks all files in a folder that say how its tokenizer is used; returns sentences on unknown keys."""
    added = os.path.join(folder, _ADDED_TOKENS_FILE)
    for token in read_json(added, "the added tokens") if tf.io.gfile.exists(added) else ():
        _check_added(token, added, _special_tokens(kind), kind.in_normalized)
    paths = [os.path.join(folder, name) for name in (CONFIG_FILE, _SPECIAL_TOKENS_FILE)]
    found = [path for path in paths if tf.io.gfile.exists(path)]
    notes = [note for path in found for note in check_config(read_json(path, "the tokenizer's config"), path, kind)]
    _check_class(read_tokenizer_config(folder).get(_CLASS), os.path.join(folder, _MODEL_CONFIG_FILE), kind)
    return notes


def read_tokenizer_config(folder: str) -> dict:
    """Returns the content of tokenizer_config.json, with the class that the model's config names if it names none."""
    paths = [os.path.join(folder, name) for name in (CONFIG_FILE, _MODEL_CONFIG_FILE)]
    own, of_model = (read_json(path, "the tokenizer's config") if tf.io.gfile.exists(path) else {} for path in paths)
    named = own.get(_CLASS) or of_model.get(_CLASS)
    return own if named is None else {**own, _CLASS: named}


def read_max_length(folder: str) -> int | None:
    """Returns the length of the longest input, in tokens, by tokenizer_config.json; None where it says none."""
    settings = read_tokenizer_config(folder)
    length = settings.get("model_max_length", settings.get("max_len"))
    if length is not None and (type(length) not in (int, float) or not length >= 1):
        raise InputError(
            f"{os.path.join(folder, CONFIG_FILE)}: model_max_length must be a number from 1. Received: {quote(length)}"
        )
    return None if length is None or length > _MOST_POSITIONS else int(length)


def _check_class(name, path, kind):
    name = name or kind.classes[0]
    if not isinstance(name, str) or name.removesuffix("Fast") not in kind.classes:
        raise InputError(
            f"{path}: tokenizer_class={quote(name)} gives other ids than albert_tf's tokenizer; only "
            f"{kind.classes[0]} can be converted"
        )


def _special_tokens(kind):
    return [token for key, tokens in kind.only.items() if key.endswith("_token") for token in tokens]


def check_backend(values: dict, path: str) -> dict:
    """Checks a tokenizer.json beside its vocabulary; returns its settings by their names in a tokenizer_config.json."""
    normalizer = _part(values, "normalizer", ("BertNormalizer",), path)
    _part(values, "pre_tokenizer", ("BertPreTokenizer",), path)
    for key, needed in (("clean_text", True), ("handle_chinese_chars", True)):
        if normalizer.get(key, needed) is not needed:
            raise InputError(
                f"{path}: normalizer.{key}={quote(normalizer[key])} can't be kept; in albert_tf it is {needed}"
            )
    model = values["model"]
    if model.get("unk_token", UNK) != UNK:
        raise InputError(f"{path}: model.unk_token={quote(model['unk_token'])} can't be kept; in albert_tf it is {UNK}")
    limit = model.get(MAX_CHARACTERS, DEFAULT_MAX_CHARACTERS)
    if type(limit) is not int or limit < 1:
        raise InputError(f"{path}: model.{MAX_CHARACTERS} must be a number from 1. Received: {quote(limit)}")
    is_named = check_added_tokens(values, path, SPECIAL_TOKENS)
    _check_post_processor(values.get("post_processor"), path)
    return {
        "do_lower_case": normalizer.get("lowercase", True),
        "strip_accents": normalizer.get("strip_accents"),
        MAX_CHARACTERS: limit,
        SPLIT: not is_named,
    }


def check_added_tokens(
    values: dict, path: str, special: collections.abc.Sequence[str], in_normalized: tuple[str, ...] = ()
) -> set[str]:
    """Checks that a tokenizer.json finds in texts all special tokens or none, and no others; returns them."""
    added = values.get("added_tokens") or []
    if not isinstance(added, list):
        raise InputError(f"{path}: added_tokens must be a list. Received: {shorten(added)}")
    for token in added:
        _check_added(token, f"{path}: added_tokens", special, in_normalized)
    found = {_content(token) for token in added}
    if found and len(found) < len(special):
        raise InputError(
            f"{path}: added_tokens lacks {', '.join(sorted({*special} - found))}; albert_tf recognizes either "
            "all special tokens in texts or none"
        )
    return found


def agreed(config: dict, backend: dict, options: ReadOptions, folder: str) -> dict:
    """Returns the settings on which the files and the flags agree, by our names.

    BertTokenizer reads tokenizer_config.json and its own defaults, some versions part of tokenizer.json besides. So
    both have to say the same, unless the class leaves all to the latter. Flags decide only where files contradict each
    other or are silent.
    """
    if backend and config.get("tokenizer_class") in BY_FILE:
        config = {**backend, **({SPLIT: True} if config.get(SPLIT) is True else {})}
        backend = config
    limit = backend.get(MAX_CHARACTERS, DEFAULT_MAX_CHARACTERS)
    if config is not backend and limit != DEFAULT_MAX_CHARACTERS:
        raise _contradiction(folder, f"model.{MAX_CHARACTERS}", limit, DEFAULT_MAX_CHARACTERS, "make it that")
    lower_case = _agreed_switch("do_lower_case", config, backend, options, True, folder)
    strip_accents = _agreed_switch("strip_accents", config, backend, options, lower_case, folder)
    # BertTokenizer looks for special tokens in texts unless it is told not to.
    splits = config.get(SPLIT) or False
    check_switches({f"{folder}: {SPLIT}": splits})
    return {
        "lower_case": lower_case,
        "strip_accents": strip_accents,
        "max_characters_per_word": limit,
        "special_tokens_in_text": not splits,
    }


def _agreed_switch(name, config, backend, options, default, folder):
    said = config.get(name)
    by_config = default if said is None else said
    by_backend = by_config
    if backend:
        by_backend = default if backend.get(name) is None else backend[name]
        said = backend.get(name) if said is None else said
    check_switches({f"{folder}: {name}": by_config, f"{folder}: {TOKENIZER_FILE}'s {name}": by_backend})
    if by_config == by_backend:
        return choose(name, said, options, by_config, folder)
    if getattr(options, name) is None:
        raise _contradiction(folder, name, by_backend, by_config, f"say which with `{name}=True` or `{name}=False`")
    return getattr(options, name)


def choose(name: str, said: bool | None, options: ReadOptions, default: bool, place: str) -> bool:
    """Returns the value in the files, that of a flag, which may not contradict them, or else the default."""
    flag = getattr(options, name)
    if None not in (flag, said) and flag != said:
        raise InputError(f"`{name}={flag}` contradicts the tokenizer's files in {place}, which say {said}")
    return next(value for value in (said, flag, default) if value is not None)


def _contradiction(folder, name, by_backend, by_config, advice):
    return InputError(
        f"{folder}: {TOKENIZER_FILE} says {name}={by_backend}, and {CONFIG_FILE} or {BERT.classes[0]} itself "
        f"{by_config}, and versions of transformers differ in which counts; {advice}, or put "
        f"tokenizer_class={BY_FILE[0]} there if {TOKENIZER_FILE} is right"
    )


def _part(values, key, allowed, path):
    part = values.get(key)
    kind = part.get("type") if isinstance(part, dict) else part
    if kind not in allowed:
        raise InputError(
            f"{path}: {key} is {shorten(kind or 'missing')}, not {allowed[0]}, and so gives other ids than albert_tf's "
            "tokenizer"
        )
    return part


def _check_added(token, place, special, in_normalized):
    content = _content(token)
    if content not in special:
        raise InputError(
            f"{place} holds {quote(content)}, which is matched in texts; albert_tf's tokenizer has no such tokens"
        )
    for name in ("normalized", "single_word") if isinstance(token, dict) else ():
        if token.get(name) and not (name == "normalized" and content in in_normalized):
            raise InputError(
                f"{place} has {content} with {name}=true, but albert_tf's tokenizer matches it in texts as given"
            )


def _check_post_processor(processor, path):
    kind = processor.get("type") if isinstance(processor, dict) else processor
    try:
        is_of_bert = isinstance(processor, dict) and _puts_as_bert(processor)
    except (AttributeError, IndexError, KeyError, TypeError):  # a template that is none
        is_of_bert = False
    if not is_of_bert:
        raise InputError(
            f"{path}: post_processor is {shorten(kind or 'missing')} and doesn't put texts between [CLS] and [SEP] as "
            "BERT's does ([CLS] A [SEP] B [SEP])"
        )


def _puts_as_bert(processor):
    if processor["type"] == "BertProcessing":
        return (processor["cls"][0], processor["sep"][0]) == (CLS, SEP)
    return template_of(processor) == ([CLS, "A0", SEP], [CLS, "A0", SEP, "B1", SEP])


def template_of(processor: dict) -> tuple[list[str], list[str]] | None:
    """Returns how a post-processor puts one text and two: special tokens by name, texts by name and segment."""
    try:
        return _template(processor["single"]), _template(processor["pair"])
    except (AttributeError, KeyError, TypeError):  # none that is a template
        return None


def _template(parts):
    names = []
    for part in parts:
        sequence = part.get("Sequence")
        names.append(f"{sequence['id']}{sequence['type_id']}" if sequence else part["SpecialToken"]["id"])
    return names


def _content(value):
    return value.get("content") if isinstance(value, dict) and "content" in value else value
