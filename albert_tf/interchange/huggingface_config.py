"""The config.json of Hugging Face's transformers: read as ours, and written from it."""

import collections.abc
import typing

from albert_tf.base.errors import InputError, shorten
from albert_tf.base.files import read_json
from albert_tf.config import FAMILIES, AlbertConfig
from albert_tf.finetuning.kinds import OF_PIECE, OF_TEXT
from albert_tf.interchange import foreign_config
from albert_tf.interchange.families import Family, family_named
from albert_tf.interchange.portable_model import PortableModel
from albert_tf.interchange.tokenizers.files import ids_of
from albert_tf.tokenization.vocabulary import CLS, PAD, SEP

CONFIG_FILE = "config.json"
# Where a folder that we wrote keeps what albert_tf.load needs.
OWN_SETTINGS = "albert_tf_settings"
# Keys that configs of ours alone have.
_OUR_KEYS = {"sharing", "position_offset", "pooler", "classification_head", "position_initializer"}


def is_published(values: dict[str, typing.Any]) -> bool:
    """Whether the content of a JSON file is a config of transformers, and not one of ours or of Google's."""
    is_ours = not _OUR_KEYS.isdisjoint(values)
    return "transformers_version" in values or "architectures" in values or ("model_type" in values and not is_ours)


def find_family(values: dict[str, typing.Any], source: str) -> Family:
    """Returns the family of a model by its config; errors begin with the source."""
    name = values.get("model_type")
    if name is None:
        raise InputError(
            f"{source} lacks model_type, which says what kind of model it is; write it there, as in "
            f'"model_type": "bert"; {", ".join(FAMILIES)} can be converted'
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
