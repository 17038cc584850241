"""The families of encoders as Hugging Face's transformers writes them, a class for each."""

import importlib

from albert_tf.config import FAMILIES, AlbertConfig
from albert_tf.interchange.families.family import Family
from albert_tf.interchange.foreign_config import is_bert


def family_named(name: str) -> Family:
    """Returns the family with a name in `FAMILIES`."""
    module, _, class_name = FAMILIES[name].converter.rpartition(".")
    return getattr(importlib.import_module(module), class_name)(name)


def family_of(config: AlbertConfig) -> Family:
    """Returns the family that a model of ours is written as; a BERT is an ALBERT whose layers share nothing."""
    if config.model_type != "albert":
        return family_named(config.model_type)
    return family_named("bert" if is_bert(config) else "albert")
