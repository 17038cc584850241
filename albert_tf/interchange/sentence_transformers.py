"""Folders of sentence-transformers, whose modules.json says how a text's vector is made of a model's states."""

import json
import os
import typing

from albert_tf.base.errors import InputError, quote, shorten
from albert_tf.base.files import gfile_for, name_in_folder, read_json, read_text, write_json
from albert_tf.base.settings import check_types
from albert_tf.interchange.portable_model import Caveat, PortableModel

MODULES_FILE = "modules.json"
_MODES = {"cls": "first", "pooling_mode_cls_token": "first", "mean": "all", "pooling_mode_mean_tokens": "all"}
# By file, the keys that change nothing here, and the values that those have with which it computes what we do.
WITHOUT_EFFECT = {
    MODULES_FILE: {"idx": "modules are listed in their order", "name": "what Python calls a module"},
    "config.json of pooling": {
        "word_embedding_dimension": "that of the model",
        "embedding_dimension": "that of the model",
        "include_prompt": "prompts are refused",
    },
    "config_sentence_transformers.json": {
        "__version__": "who wrote it",
        "model_type": "modules.json says what it is",
        "prompts": "used only where a caller names one, or default_prompt_name does",
    },
    "sentence_bert_config.json": {},
}
_ONLY = {
    "config_sentence_transformers.json": {"default_prompt_name": (None,), "similarity_fn_name": (None, "cosine")},
    "sentence_bert_config.json": {"do_lower_case": (False, None), "transformer_task": ("feature-extraction",)},
}
_READ = {
    MODULES_FILE: ("path", "type"),
    "config.json of pooling": ("pooling_mode",),
    "sentence_bert_config.json": ("max_seq_length",),
}


def read_vectors(folder: str) -> tuple[dict[str, typing.Any], tuple[str, ...]]:
    """Returns "pooling", "normalize" and maybe "max_seq_length" of a folder's vectors, and caveats.

    Nothing where the folder doesn't say, and a caveat alone where it asks for what isn't computed.
    """
    if not gfile_for(folder).exists(os.path.join(folder, MODULES_FILE)):
        return {}, ()
    try:
        return _read(folder), ()
    except InputError as error:
        return {}, (
            Caveat(f"vectors are not those of sentence-transformers, but averages of the last states: {error}"),
        )


def can_make(vectors: dict[str, typing.Any]) -> bool:
    """Whether sentence-transformers can make vectors by settings of an encoder."""
    return vectors.get("pooling") in _MODES.values()


def write_vectors(model: PortableModel, folder: str) -> None:
    """Writes beside a folder's model how its vectors are made, as `read_vectors` reads it."""
    kinds = ["Transformer", "Pooling", *(["Normalize"] if model.vectors.get("normalize") else [])]
    paths = ["", *(f"{number}_{kind}" for number, kind in enumerate(kinds) if number)]
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (kind, path) in enumerate(zip(kinds, paths))
    ]
    modes = {name: pooling == model.vectors["pooling"] for name, pooling in _MODES.items() if "_" in name}
    for path in paths[1:]:
        os.makedirs(os.path.join(folder, path))
    write_json(os.path.join(folder, MODULES_FILE), modules)
    pooling = {"word_embedding_dimension": model.config.hidden_size, **modes}
    write_json(os.path.join(folder, paths[1], "config.json"), pooling)
    settings = {"max_seq_length": model.longest_sequence, "do_lower_case": False}
    write_json(os.path.join(folder, "sentence_bert_config.json"), settings)


def _read(folder):
    path = os.path.join(folder, MODULES_FILE)
    try:
        modules = json.loads(read_text(path, "the modules"))
        kinds = [module["type"].rpartition(".")[2] for module in modules]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} doesn't list modules with their type") from error
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]) or modules[0].get("path"):
        raise InputError(
            f"{path} lists {shorten(', '.join(kinds))}; only a Transformer here, Pooling and Normalize are read"
        )
    for module in modules:
        _check(module, MODULES_FILE, path)
    place = os.path.join(name_in_folder(folder, modules[1].get("path"), path), "config.json")
    pooling = read_json(place, "the pooling")
    modes = [name for name, value in pooling.items() if name.startswith("pooling_mode_") and value is not False]
    _check(
        {name: value for name, value in pooling.items() if name[:13] != "pooling_mode_"},
        "config.json of pooling",
        place,
    )
    modes += [pooling["pooling_mode"]] if "pooling_mode" in pooling else []
    if len(modes) != 1 or modes[0] not in _MODES:
        raise InputError(f"{place}: the pooling {shorten(' and '.join(map(str, modes)))} is none of cls and mean")
    found = {"pooling": _MODES[modes[0]], "normalize": "Normalize" in kinds}
    for name in _ONLY:
        place = os.path.join(folder, name)
        if gfile_for(folder).exists(place):
            values = read_json(place, "the settings")
            _check(values, name, place)
            if values.get("max_seq_length") is not None:
                found["max_seq_length"] = check_types(values, {"max_seq_length": int}, place)["max_seq_length"]
    return found


def _check(values, name, path):
    """Checks that all that a file says is obeyed, changes nothing, or has a value of `_ONLY`."""
    only = _ONLY.get(name, {})
    for key, value in values.items():
        if value not in only[key] if key in only else key not in (*WITHOUT_EFFECT[name], *_READ.get(name, ())):
            raise InputError(f"{path}: {shorten(key)}={quote(value)} is not known")
