"""The config.json of transformers by itself, as it is published, without weights beside it."""

import typing

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.files import read_json
from albert_tf.interchange.huggingface import _read_config as read_config
from albert_tf.interchange.huggingface_names import FAMILIES


def is_published(values: dict[str, typing.Any]) -> bool:
    """Whether what a JSON file holds is a config of transformers, and not one of ours or of Google's."""
    return "transformers_version" in values or "architectures" in values


def read_published_config(config_file: str) -> AlbertConfig:
    """Returns our config of a model of transformers.

    Args:
        config_file: Its config.json. Whether a RoBERTa has a pooler follows from the class named there: the encoder by
            itself has one, the classes with heads have none.

    Raises:
        InputError: The file can't be read, or the model is none of ours.
    """
    values = read_json(config_file, "the model config")
    family = FAMILIES.get(values.get("model_type")) if isinstance(values.get("model_type"), str) else None
    if family is None:
        given = str(values.get("model_type"))[:40]
        raise InputError(f"{config_file}: model_type={given} can't be converted; {', '.join(FAMILIES)} can")
    architectures = values.get("architectures")
    is_encoder = isinstance(architectures, list) and str(next(iter(architectures), "")).endswith("Model")
    return read_config(values, family, [f"{family.prefix}pooler.dense.weight"] * is_encoder, config_file)
