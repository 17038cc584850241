"""Folders of Hugging Face's transformers: config.json, safetensors, and the tokenizer's files.

Weights are read from safetensors alone. pytorch_model.bin is a pickle, which can run any code when it is opened.
"""

import collections.abc
import contextlib
import functools
import json
import math
import os
import shutil
import tempfile
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError, first_line, listed, quote, shorten
from albert_tf.base.files import name_in_folder, read_json, reading, write_json
from albert_tf.config import FAMILIES, AlbertConfig
from albert_tf.finetuning import Classification, Entities
from albert_tf.finetuning.task import OF_PIECE, OF_TEXT
from albert_tf.interchange import foreign_config
from albert_tf.interchange.families import Family, family_named, family_of
from albert_tf.interchange.huggingface_heads import class_in, find_head
from albert_tf.interchange.ours import NO_TASK, known_settings
from albert_tf.interchange.portable_model import NO_PART, Caveat, PortableModel, ReadOptions, Weight, take_weights
from albert_tf.interchange.sentence_transformers import can_make, read_vectors, write_vectors
from albert_tf.interchange.tokenizers.files import ids_of, with_tokenizer, write_for_transformers
from albert_tf.interchange.tokenizers.sentencepiece import HUGGINGFACE
from albert_tf.interchange.tokenizers.settings import read_max_length
from albert_tf.tokenization.vocabulary import CLS, PAD, SEP

# Files of safetensors, read and written tensor by tensor; the format's own library writes only whole models.

# Others, of 8 bits, stand for weights only together with their scales.
_DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL")
_ALIGNMENT = 8
# How much is written at once.
_CHUNK_BYTES = 16 * 2**20


def read_safetensors(path: str) -> dict[str, Weight]:
    """Returns the tensors of a file by name, to be read when they are needed."""
    copy = None
    with reading(path) as file:
        content = file.read(1)
        if "://" in path:  # the library reads files of this machine alone
            copy = tempfile.NamedTemporaryFile()  # noqa: SIM115, weights read it later
            copy.write(content)
            shutil.copyfileobj(file, copy)
            copy.flush()
    with _opened(path, copy) as tensors:
        names = tensors.keys()
        return {name: _weight(path, copy, name, tensors.get_slice(name)) for name in names}


def _weight(path, copy, name, tensor):
    shape, dtype = tuple(tensor.get_shape()), tensor.get_dtype()
    if dtype not in _DTYPES:
        raise InputError(f"{path}: {quote(name)} has the dtype {shorten(dtype)}, which can't be read; save it as F32")
    load = functools.partial(_load, path, copy, name)
    return Weight(shape, load, load if shape else None)


def _load(path, copy, name, first=None, last=None):
    with _opened(path, copy) as tensors:
        return tensors.get_tensor(name) if first is None else tensors.get_slice(name)[first:last]


@contextlib.contextmanager
def _opened(path, copy):
    """Opens a file, or its copy, which is kept as long as anybody may read it."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise InputError(f"reading {path} needs safetensors; pip install safetensors") from error
    try:
        with safe_open(path if copy is None else copy.name, "numpy") as tensors:
            yield tensors
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is damaged or cut off: {first_line(error)}; fetch it again") from error
    except TypeError as error:  # bfloat16 before version 0.8
        raise InputError(f"{path}: {first_line(error)}; install a newer safetensors, or save it as F32") from error


def write_safetensors(path: str, weights: collections.abc.Mapping[str, Weight]) -> None:
    """Writes float32 tensors into a local file, one at a time."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(weights):
        first, end = end, end + 4 * math.prod(weights[name].shape)
        header[name] = {"dtype": "F32", "shape": list(weights[name].shape), "data_offsets": [first, end]}
    content = json.dumps(header, separators=(",", ":")).encode()
    content += b" " * (-len(content) % _ALIGNMENT)
    with open(os.fspath(path), "wb") as file:
        file.write(len(content).to_bytes(8, "little") + content)
        for name in sorted(weights):
            _write_rows(file, weights[name].read())


def _write_rows(file, values):
    """Writes an array row by row, so that of a transposed one no copy is made."""
    rows = values.reshape(1, -1) if values.ndim < 2 else values
    step = max(1, _CHUNK_BYTES // max(1, rows[:1].nbytes))
    for first in range(0, len(rows), step):
        file.write(np.ascontiguousarray(rows[first : first + step], np.dtype("<f4")).data)


CONFIG_FILE = "config.json"
WEIGHTS_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"
# Where a folder that we wrote keeps what albert_tf.load needs.
OWN_SETTINGS = "albert_tf_settings"
# Keys that configs of ours alone have.
_OUR_KEYS = {"sharing", "position_offset", "pooler", "classification_head", "position_initializer"}
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.bin")
# How names of classes end that are pre-trained and no more.
_WITHOUT_TASK = ("Model", "ForMaskedLM", "ForPreTraining", "ForCausalLM", "ForNextSentencePrediction")


def is_published(values: dict[str, typing.Any]) -> bool:
    """Whether the content of a JSON file is a config of transformers, and not one of ours or of Google's."""
    is_ours = not _OUR_KEYS.isdisjoint(values)
    return "transformers_version" in values or "architectures" in values or ("model_type" in values and not is_ours)


def find_family(values: dict[str, typing.Any], source: str) -> Family:
    """Returns the family of a model by its config; errors begin with the source."""
    name = values.get("model_type")
    if name is None:
        raise InputError(
            f'{source} lacks model_type; write it there, as "model_type": "bert"; {", ".join(FAMILIES)} are known'
        )
    if not isinstance(name, str) or name not in FAMILIES:
        raise InputError(f"{source}: model_type={shorten(name)} can't be converted; {', '.join(FAMILIES)} can")
    return family_named(name)


def read_published_config(config_file: str) -> AlbertConfig:
    """Returns our config of a model of transformers by its config.json alone."""
    values = read_json(config_file, "the model config")
    family = find_family(values, config_file)
    architectures = values.get("architectures")
    # Of RoBERTas the encoder by itself has a pooler, and models with heads have none.
    is_encoder = isinstance(architectures, list) and str(next(iter(architectures), "")).endswith("Model")
    return read_config(values, family, [f"{family.prefix}pooler.dense.weight"] * is_encoder, config_file)


def read_config(
    values: dict[str, typing.Any], family: Family, found: collections.abc.Container[str], source: str
) -> AlbertConfig:
    """Returns our config of theirs; names in `found` tell whether there is a pooler where the config doesn't."""
    return foreign_config.make_config(family.read_config(values, found, source), source)


def config_values(model: PortableModel, config: AlbertConfig, family: Family, class_name: str) -> dict[str, typing.Any]:
    """Returns their config of a model; `config` is put as the family does, `class_name` without its prefix."""
    common = {
        "pad_token_id": max(0, config.position_offset - 1),
        "bos_token_id": None,
        "eos_token_id": None,
        **ids_of(model.tokenizer, {"pad_token_id": PAD, "bos_token_id": CLS, "eos_token_id": SEP}),
        "tie_word_embeddings": True,
        "dtype": "float32",
        **foreign_config.own_fields(config),
    }
    values = {
        "architectures": [f"{family.class_prefix}{class_name}"],
        "model_type": family.name,
        **family.write_config(config, common),
    }
    if class_name in (OF_TEXT.hf_class, OF_PIECE.hf_class):
        labels = model.labels or tuple(f"LABEL_{number}" for number in range(model.num_outputs))
        values["id2label"] = {str(number): label for number, label in enumerate(labels)}
        values["label2id"] = {label: number for number, label in enumerate(labels)}
    if class_name == OF_TEXT.hf_class:
        values["problem_type"] = None if model.settings.get("sigmoid") else model.task.kind.hf_problem_type
    if model.settings:
        values[OWN_SETTINGS] = model.settings
    return values


def read(path: str, options: ReadOptions) -> PortableModel:
    """Reads a folder that `save_pretrained` wrote, or that was downloaded as a whole."""
    config_file = os.path.join(path, CONFIG_FILE)
    values = read_json(config_file, "the model config")
    family = find_family(values, config_file)
    found, source = _read_weights(path)
    found, buffers = family.read_weights(found, source)
    config = read_config(values, family, found, config_file)
    if not options.vocab_file:
        family.check_tokenizer(path)
    head = find_head(values, family.naming, found, options.named_task, config_file)
    known = head.task or (_task_by_name(family, found) if head.outputs else None)
    transform = family.naming.layers.get("masked_lm_head/transform")
    family.check_masked_lm(config, f"{transform}.weight" in found, source)
    of_network = family.check_network(values, found, config_file, source)
    blocks = f"{family.prefix}{family.blocks}"
    weights, taken = take_weights(family.naming, config, found, source, known, head.outputs, blocks)
    weights = head.in_our_order(weights)
    notes = [*of_network, *taken, *head.notes]
    if buffers:
        notes.append(f"left, because it follows from the config: {', '.join(buffers)}")
    model = PortableModel(config, weights, head.task, head.labels, notes=notes)
    model = with_tokenizer(model, path, options, HUGGINGFACE)
    model.max_seq_length, model.gives_probability = read_max_length(path), head.gives_probability
    model.vectors, of_vectors = read_vectors(path)
    model.notes += [*of_vectors, *_unread_head(values, model, taken), *foreign_config.of_generation(path, config)]
    if unknown := foreign_config.unknown_keys(values, family.config_keys):
        model.notes.append(Caveat(f"{config_file}: ignored, because they are unknown: {listed(unknown)}"))
    if head.outputs and isinstance(values.get(OWN_SETTINGS), dict):
        _take_own_settings(model, values[OWN_SETTINGS], head.outputs, config_file)
    return model


def _unread_head(values, model, notes):
    """Returns a caveat if the config names a class with a head that isn't read here."""
    name = class_in(values)
    if model.has_head or not name or (name.endswith(_WITHOUT_TASK) and not name.endswith("DoubleHeadsModel")):
        return []
    names = [note.removeprefix(NO_PART) for note in notes if note.startswith(NO_PART)]
    what = f"a head that albert_tf doesn't know ({', '.join(names)})" if names else "a head that is not in the weights"
    return [Caveat(f"the head is left out, and so {NO_TASK}{name} has {what}")]


def _task_by_name(family, found):
    """Returns a task whose head has the variables that are there, where nothing names the task."""
    whole = family.naming.heads.get(OF_TEXT, {"": ""})
    return Classification if all(f"{name}.weight" in found for name in whole.values()) else Entities


def _take_own_settings(model, settings, outputs, source):
    """Gives a model the task, settings and labels that an export of ours left in its config."""
    task, kept, labels = known_settings(settings, model.config)
    classes = {each and each.kind.head.hf_class for each in (task, model.task)}
    if len(classes) > 1 or (labels is not None and len(labels) != outputs):
        raise InputError(f"{source}: {OWN_SETTINGS} does not belong to this head; remove it")
    model.task, model.settings, model.labels = task, kept, labels


def _read_weights(folder):
    """Returns all tensors of a folder, of one file or of several, and the file that names them."""
    single, index = os.path.join(folder, WEIGHTS_FILE), os.path.join(folder, INDEX_FILE)
    if tf.io.gfile.exists(single):
        return read_safetensors(single), single
    if tf.io.gfile.exists(index):
        return _read_shards(folder, index), index
    pickle = next((name for name in PICKLES if tf.io.gfile.exists(os.path.join(folder, name))), None)
    if pickle:
        raise InputError(
            f"{os.path.join(folder, pickle)} is a pickle, which can run any code when it is opened and is never read; "
            "convert it where you trust it, with model.save_pretrained(folder, safe_serialization=True) of transformers"
        )
    raise InputError(f"`input_path`: there is no {WEIGHTS_FILE} in {folder}; name a folder that save_pretrained wrote")


def _read_shards(folder, index):
    places = read_json(index, "the index of the weights").get("weight_map")
    if not isinstance(places, dict) or not places:
        raise InputError(f"{index} has no weight_map that says where the weights are; fetch it again")
    shards = {}
    for file in places.values():
        path = name_in_folder(folder, file, index)
        if not file.endswith(".safetensors"):
            raise InputError(f"{index} names {quote(file)}, which is not a safetensors file; correct the name")
        if not tf.io.gfile.exists(path):
            raise InputError(f"{index} names {file}, which is not beside it; fetch all parts of the checkpoint")
        if file not in shards:
            shards[file] = read_safetensors(path)
    for name, file in places.items():
        if name not in shards[file]:
            raise InputError(f"{index} says that {quote(name)} is in {file}, which does not hold it; fetch both again")
    return {name: shards[file][name] for name, file in places.items()}


def write(model: PortableModel, folder: str) -> list[str]:
    """Writes a folder that `from_pretrained` reads, with the tokenizer; returns sentences on what was left."""
    foreign_config.check_head(model, "huggingface")
    family = family_of(model.config)
    config, class_name = family.config_to_write(model), family.class_name(model)
    weights, notes = family.write_weights(model, class_name)
    write_safetensors(os.path.join(folder, WEIGHTS_FILE), weights)
    write_json(os.path.join(folder, CONFIG_FILE), config_values(model, config, family, class_name))
    if model.tokenizer is not None:
        notes += write_for_transformers(model.tokenizer, folder, config, model.longest_sequence)
    if model.settings.get("doc_stride") and model.task.kind.head.reads_whole_text:
        notes.append(
            f"texts of more than {model.longest_sequence} pieces are read in windows here (doc_stride="
            f"{model.settings['doc_stride']}), and only their beginnings there: transformers has no windows"
        )
    if can_make(model.vectors):
        write_vectors(model, folder)
        notes.append("sentence-transformers makes the same vectors of it")
    return [*notes, f"transformers knows it as {family.class_prefix}{class_name}"]
