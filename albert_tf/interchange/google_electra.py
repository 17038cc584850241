"""Checkpoints of google-research/electra, which hold two networks: the discriminator, and the generator of its texts.

Its code writes no config. The config.json of the same network on the Hugging Face hub says what is needed, and which of
the two is meant: the generator if `architectures` is `["ElectraForMaskedLM"]`, or else the discriminator.
"""

import collections.abc
import dataclasses
import typing

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError, shorten
from albert_tf.files import read_json
from albert_tf.interchange import foreign_config
from albert_tf.interchange.families import family_named
from albert_tf.interchange.google_names import DISCRIMINATOR, GENERATOR, electra_naming
from albert_tf.interchange.huggingface_config import config_values, read_config
from albert_tf.interchange.portable_model import PortableModel, Weight, give_weights, take_weights

_FAMILY = family_named("electra")
_GENERATOR_CLASS = "ElectraForMaskedLM"
_PREDICTIONS = "generator_predictions/"
# Variables that only one of the networks has.
_OF_ONE = {
    DISCRIMINATOR: ("electra/encoder/", "electra/embeddings_project/", "discriminator_predictions/"),
    GENERATOR: ("generator/", _PREDICTIONS),
}
_CALLED = {DISCRIMINATOR: "the discriminator", GENERATOR: "the generator"}


def is_electra(names: collections.abc.Iterable[str]) -> bool:
    """Whether variables with these names are ELECTRA's."""
    return any(name.startswith("electra/embeddings/") for name in names)


def read_electra(
    found: dict[str, Weight], checkpoint: str, config_file: str
) -> tuple[AlbertConfig, dict[str, Weight], list[str]]:
    """Returns our config of the network that a config describes, its variables by our names, and sentences on the rest.

    `found` is without the optimizer's variables. An InputError if they don't hold the network that the config is of.
    """
    values = read_json(config_file, "the model config")
    if values.get("model_type", "electra") != "electra":
        given = shorten(values["model_type"])
        raise InputError(f"{config_file}: model_type={given}, and {checkpoint} is of ELECTRA; name the config of that")
    config = read_config(values, _FAMILY, found, config_file)
    network = GENERATOR if values.get("architectures") == [_GENERATOR_CLASS] else DISCRIMINATOR
    prefixes = _prefixes_in(found)
    how = "with" if network == GENERATOR else "without"
    asked = f"{_CALLED[network]}, for which {config_file} asks {how} architectures={_GENERATOR_CLASS}"
    if network not in prefixes:
        raise InputError(f"{checkpoint} does not hold {asked}; name the config of the network that is there")
    _check_size(config, network, prefixes, found, checkpoint, asked)
    encoder = prefixes[network]
    own_embeddings = f"{encoder}/embeddings/word_embeddings" in found
    naming = electra_naming(encoder, encoder if own_embeddings else DISCRIMINATOR)
    rest = {name: weight for name, weight in found.items() if not _is_of_the_other(name, network, encoder)}
    weights, notes = take_weights(naming, config, rest, checkpoint, encoder_prefix=f"{encoder}/encoder/")
    return config, weights, [*_what_was_read(network, len(found) - len(rest)), *notes]


def _prefixes_in(found):
    """Returns the prefix of the layers' names for each network that is there."""
    is_there = {prefix: any(name.startswith(f"{prefix}/encoder/") for name in found) for prefix in _CALLED}
    prefixes = {DISCRIMINATOR: DISCRIMINATOR} if is_there[DISCRIMINATOR] else {}
    if any(name.startswith(_PREDICTIONS) for name in found):  # without layers of its own, it has the other's
        prefixes[GENERATOR] = GENERATOR if is_there[GENERATOR] else DISCRIMINATOR
    return prefixes


def _is_of_the_other(name, network, encoder):
    if network == DISCRIMINATOR:
        return name.startswith(_OF_ONE[GENERATOR])
    return encoder == GENERATOR and name.startswith(_OF_ONE[DISCRIMINATOR])


def _check_size(config, network, prefixes, found, checkpoint, asked):
    """Checks the width of a network, for a clearer error than one on a variable that only the other has."""
    names = {name: f"{prefix}/encoder/layer_0/output/LayerNorm/gamma" for name, prefix in prefixes.items()}
    widths = {name: found[variable].shape for name, variable in names.items() if variable in found}
    if widths.get(network, (config.hidden_size,)) != (config.hidden_size,):
        sizes = " and ".join(f"{_CALLED[name]} has {list(width)}" for name, width in widths.items())
        raise InputError(
            f"hidden_size={config.hidden_size} is not that of {asked}: in {checkpoint} {sizes}; name the config of the "
            "network that is to be read"
        )


def _what_was_read(network, num_left):
    if network == GENERATOR:
        return [f"read the generator, and left {num_left} variables of the discriminator"]
    if not num_left:
        return ["read the discriminator"]
    return [
        f"read the discriminator, and left {num_left} variables of the generator; the generator's config, with "
        f"architectures={_GENERATOR_CLASS}, reads that"
    ]


def write_electra(model: PortableModel) -> tuple[dict[str, Weight], dict[str, typing.Any], list[str]]:
    """Returns variables by Google's names, a config that `read_electra` takes, and sentences on what was left."""
    config = model.config
    foreign_config.check_architecture(config, "google", _FAMILY.computes(config))
    if config.hidden_act in ("gelu", "gelu_new"):
        raise InputError(
            f"`to=google` can't express hidden_act={config.hidden_act} of model_type=electra, whose code has "
            "GELU itself"
        )
    is_generator = model.has("masked_lm_head") and not model.has("replaced_token_head")
    network = GENERATOR if is_generator else DISCRIMINATOR
    lacks = () if is_generator else ("masked_lm_head/",)
    kept = {name: weight for name, weight in model.weights.items() if not name.startswith(lacks)}
    weights, notes = give_weights(electra_naming(network, DISCRIMINATOR), dataclasses.replace(model, weights=kept))
    if lacks and model.has("masked_lm_head"):
        notes.append("left, because the network has no place for it: masked_lm_head")
    class_name = "ForMaskedLM" if is_generator else "ForPreTraining" if model.has("replaced_token_head") else "Model"
    values = config_values(model, config, _FAMILY, class_name)
    return weights, values, [f"written as {_CALLED[network]} of ELECTRA alone", *notes]
