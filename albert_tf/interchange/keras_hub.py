"""Presets of KerasHub's AlbertBackbone: config.json and model.weights.h5. A backbone has no heads."""

import contextlib
import functools
import importlib.metadata
import math
import os

import h5py  # which Keras brings along; KerasHub itself is not needed
import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError, first_line, shorten
from albert_tf.base.files import read_json, write_json
from albert_tf.interchange import foreign_config
from albert_tf.interchange.portable_model import PortableModel, ReadOptions, Weight, give_weights, take_weights
from albert_tf.interchange.tokenizers.files import OWN_SETTINGS_FILE, with_tokenizer
from albert_tf.interchange.tokenizers.sentencepiece import KERAS_HUB
from albert_tf.interchange.variables import Naming, Spelling, block_names, plain_spellings

CONFIG_FILE, WEIGHTS_FILE, METADATA_FILE = "config.json", "model.weights.h5", "metadata.json"

_LAYERS = {
    "encoder/embeddings/word_embeddings": "layers/reversible_embedding",
    "encoder/embeddings/token_type_embeddings": "layers/embedding",
    "encoder/embeddings/position_embeddings": "layers/position_embedding",
    "encoder/embeddings/layer_norm": "layers/layer_normalization",
    "encoder/embedding_hidden_mapping_in": "layers/dense",
    **block_names(
        # Keras numbers the layers of a class in the order in which they are applied; the first has no number.
        "layers/transformer_encoder{number}/_",
        *(f"self_attention_layer/{name}_dense" for name in ("query", "key", "value", "output")),
        *("self_attention_layer_norm", "feedforward_intermediate_dense", "feedforward_output_dense"),
        "feedforward_layer_norm",
    ),
    "encoder/pooler": "layers/dense_1",
}
_OLD_PREFIX = "_layer_checkpoint_dependencies/"  # in place of layers/, in files of the first versions of Keras 3
_KERNEL, _BIAS = "/vars/0", "/vars/1"
NAMING = Naming(
    _LAYERS,
    {},
    plain_spellings(
        table=(Spelling(_KERNEL),),
        norm=(Spelling(_KERNEL), Spelling(_BIAS)),
        linear=(Spelling(_KERNEL), Spelling(_BIAS)),
        heads=(Spelling(_KERNEL, splits_heads=1), Spelling(_BIAS, splits_heads=0)),
        joined_heads=(Spelling(_KERNEL, splits_heads=0), Spelling(_BIAS)),
    ),
    always_projects=True,
)
# Our field to KerasHub's.
_FIELDS = {
    "vocab_size": "vocabulary_size",
    "embedding_size": "embedding_dim",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_hidden_groups": "num_groups",
    "inner_group_num": "num_inner_repetitions",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}
_DEFAULTS = {
    "num_groups": 1,
    "num_inner_repetitions": 1,
    "dropout": 0.0,
    "max_sequence_length": 512,
    "num_segments": 2,
}
# Fields of ours that a backbone's config has no place for; the file of metadata keeps them.
_OWN_FIELDS = (
    *foreign_config.OWN_FIELDS,
    "attention_probs_dropout_prob",
    "classifier_dropout_prob",
    "initializer_range",
)
_OWN_KEY = "albert_tf_config"


def read(path: str, options: ReadOptions) -> PortableModel:
    """Reads the folder of a preset; an InputError if it is of no AlbertBackbone, contradicts itself or is damaged."""
    config_file, weights_file = os.path.join(path, CONFIG_FILE), os.path.join(path, WEIGHTS_FILE)
    config = _read_config(read_json(config_file, "the config of the preset"), _own_fields(path), config_file)
    if "://" in path or not tf.io.gfile.exists(weights_file):
        raise InputError(f"`input_path`: there is no {WEIGHTS_FILE} in {path}; name a preset of this machine")
    found = _read_weights(weights_file)
    weights, notes = take_weights(NAMING, config, found, weights_file, encoder_prefix="layers/")
    return with_tokenizer(PortableModel(config, weights, notes=notes), path, options, KERAS_HUB)


def _own_fields(folder):
    """Returns the fields of our config that an export of ours left there, none in a preset of others."""
    path = os.path.join(folder, METADATA_FILE)
    values = read_json(path, "the metadata of the preset").get(_OWN_KEY) if tf.io.gfile.exists(path) else None
    return {name: values[name] for name in _OWN_FIELDS if name in values} if isinstance(values, dict) else {}


def _read_config(values, own, source):
    if values.get("class_name") != "AlbertBackbone" or not isinstance(values.get("config"), dict):
        raise InputError(f"{source}: {shorten(values.get('class_name'))} can't be converted; an AlbertBackbone can")
    given = {**_DEFAULTS, **values["config"]}
    lacking = [theirs for theirs in _FIELDS.values() if theirs not in given]
    if lacking:
        raise InputError(f"{source} has no {lacking[0]}; fetch it again")
    fields = {ours: given[theirs] for ours, theirs in _FIELDS.items()}
    fields = {**fields, "attention_probs_dropout_prob": fields["hidden_dropout_prob"], **own}
    config = foreign_config.make_config(fields, source)
    if config.num_hidden_layers % config.num_hidden_groups:
        raise InputError(f"{source}: num_layers must be a multiple of num_groups; correct them")
    return config


def _read_weights(path):
    """Returns the arrays of an HDF5 file by name; an InputError for one that lies in another file."""
    found, size = {}, os.path.getsize(path)

    def visit(name, item):
        if not isinstance(item, h5py.Dataset):
            return
        if item.nbytes > size:  # HDF5 makes zeros of what was never written, as many as the shape says
            raise InputError(f"{path}: {name} has more values than the file; fetch the preset again")
        usual_name = f"layers/{name.removeprefix(_OLD_PREFIX)}" if name.startswith(_OLD_PREFIX) else name
        if item.external or item.is_virtual:
            raise InputError(f"{path}: {name} is in another file, where it is not looked for; fetch the preset again")
        found[usual_name] = Weight(tuple(item.shape or ()), functools.partial(_read_array, path, name))

    with _opened(path) as file:
        file.visititems(visit)  # follows no links, neither inside nor to other files
    return found


def _read_array(path, name):
    with _opened(path) as file:
        return np.asarray(file[name][()])


@contextlib.contextmanager
def _opened(path):
    try:
        with h5py.File(path, "r") as file:
            yield file
    except InputError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path} is damaged: {first_line(error)}; fetch it again") from error


def write(model: PortableModel, folder: str) -> list[str]:
    """Writes a preset that `keras_hub.models.AlbertBackbone.from_preset` reads; returns sentences on what was left."""
    foreign_config.check_architecture(model.config, "keras_hub")
    config = foreign_config.with_groups(model.config, "keras_hub")
    if config.hidden_act not in ("gelu", "gelu_new"):
        raise InputError(f"`to=keras_hub` can't express hidden_act={config.hidden_act}: its code has only gelu")
    if config.layer_norm_eps != foreign_config.DEFAULTS.layer_norm_eps:
        raise InputError(f"`to=keras_hub` can't express layer_norm_eps={config.layer_norm_eps}: its code has 1e-12")
    if config.num_hidden_layers % config.num_hidden_groups:
        raise InputError(
            f"`to=keras_hub` can't express num_hidden_layers={config.num_hidden_layers} in "
            f"{config.num_hidden_groups} groups of unequal size"
        )
    if not model.has("encoder/pooler"):
        raise InputError("`to=keras_hub` needs a pooler, which the model of `input_path` does not have")
    weights, notes = give_weights(NAMING, model)
    if config.attention_probs_dropout_prob != config.hidden_dropout_prob:
        notes.append(
            f"KerasHub has one dropout, {config.hidden_dropout_prob}: attention_probs_dropout_prob="
            f"{config.attention_probs_dropout_prob} is known to albert_tf alone"
        )
    with h5py.File(os.path.join(folder, WEIGHTS_FILE), "w") as file:
        for name, weight in weights.items():
            file.create_dataset(name, data=weight.read())
    # As Keras serializes a backbone.
    fields = {theirs: getattr(config, ours) for ours, theirs in _FIELDS.items()}
    values = {
        "module": "keras_hub.src.models.albert.albert_backbone",
        "class_name": "AlbertBackbone",
        "config": {"name": "albert_backbone", "trainable": True, **fields},
        "registered_name": "keras_hub>AlbertBackbone",
    }
    write_json(os.path.join(folder, CONFIG_FILE), values)
    count = sum(math.prod(weight.shape) for weight in weights.values())
    metadata = {"keras_version": importlib.metadata.version("keras"), "parameter_count": count}
    own = {name: getattr(config, name) for name in _OWN_FIELDS}
    write_json(os.path.join(folder, METADATA_FILE), {**metadata, _OWN_KEY: own})
    if model.tokenizer is not None:
        model.tokenizer.save(folder, OWN_SETTINGS_FILE)
        files = f"{model.tokenizer.vocabulary_file} and {OWN_SETTINGS_FILE}"
        notes.append(f"KerasHub has no such tokenizer: {files} are for albert_tf")
    return notes
