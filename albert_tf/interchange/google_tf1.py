"""Checkpoints of google-research/albert, bert and electra, as TensorFlow 1 writes them."""

import collections.abc
import dataclasses
import os
import re
import typing

import tensorflow as tf

from albert_tf.base.checkpoint_files import CheckpointReader, named_newest, write_variables
from albert_tf.base.errors import InputError, shorten
from albert_tf.base.files import read_json, write_json
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import Classification, ConditionalQuestionAnswering, QuestionAnswering
from albert_tf.finetuning.task import OF_CONDITIONAL_SPAN, OF_OPTION, OF_SPAN, OF_TEXT
from albert_tf.interchange import foreign_config
from albert_tf.interchange.families import family_named
from albert_tf.interchange.huggingface import CONFIG_FILE as HUGGINGFACE_CONFIG
from albert_tf.interchange.huggingface import config_values, read_config
from albert_tf.interchange.portable_model import (
    PortableModel,
    ReadOptions,
    Values,
    Weight,
    checkpoint_weights,
    give_weights,
    take_weights,
)
from albert_tf.interchange.tokenizers.files import with_tokenizer
from albert_tf.interchange.tokenizers.sentencepiece import GOOGLE
from albert_tf.interchange.variables import Naming, Spelling, block_names, plain_spellings

# The names of the variables of ALBERT, BERT and ELECTRA's two networks in Google's code.


def _names_of(family, masked_lm_bias):
    """Returns the names that transformers took from here for a family, without the dots that it put into them."""
    names = family_named(family).naming.layers.items()
    return {layer: name.replace("layer.{n}", "layer_{n}").replace(".", "/") for layer, name in names} | {
        "masked_lm_head/output_bias": masked_lm_bias
    }


_BERT = _names_of("bert", masked_lm_bias="cls/predictions/output_bias")
_ALBERT = {
    **{layer: name for layer, name in _BERT.items() if "{n}" not in layer},
    "encoder/embedding_hidden_mapping_in": "bert/encoder/embedding_hidden_mapping_in",
    **block_names(
        "bert/encoder/transformer/group_{group}/inner_group_{inner}/",
        *("attention_1/self/query", "attention_1/self/key", "attention_1/self/value"),
        *("attention_1/output/dense", "LayerNorm"),
        *("ffn_1/intermediate/dense", "ffn_1/intermediate/output/dense", "LayerNorm_1"),
    ),
}
_HEADS = {
    OF_TEXT: {"head/dense": ""},
    OF_OPTION: {"head/dense": ""},
    OF_SPAN: {"head/dense": "cls/squad"},
    OF_CONDITIONAL_SPAN: {
        "head/start": "start_logits/dense",
        "head/end_transform": "end_logits/dense_0",
        "head/end_layer_norm": "end_logits/LayerNorm",
        "head/end": "end_logits/dense_1",
        "head/null_transform": "answer_class/dense_0",
        "head/null_kernel": "answer_class/dense_1/kernel",
    },
}
_SPELLINGS = plain_spellings(output=(Spelling("/output_weights", is_transposed=True), Spelling("/output_bias")))
ALBERT, BERT = Naming(_ALBERT, _HEADS, _SPELLINGS), Naming(_BERT, _HEADS, _SPELLINGS)

# The variables of ELECTRA's networks, and of the embeddings that both read, begin with these.
DISCRIMINATOR, GENERATOR = "electra", "generator"
_ELECTRA = _names_of("electra", masked_lm_bias="generator_predictions/output_bias") | {
    "replaced_token_head/dense": "discriminator_predictions/dense_1"
}


def electra_naming(encoder: str, embeddings: str) -> Naming:
    """Returns the names of one of ELECTRA's networks, whose embeddings may be those of the `DISCRIMINATOR`."""
    prefixes = {layer: embeddings if "/embeddings/" in layer else encoder for layer in _ELECTRA}
    names = {layer: name.replace("electra/", f"{prefixes[layer]}/", 1) for layer, name in _ELECTRA.items()}
    return Naming(names, {}, _SPELLINGS)


# Checkpoints of google-research/electra, which hold two networks: the discriminator, and the generator of its texts.
#
# Its code writes no config. The config.json of the same network on the Hugging Face hub says what is needed, and
# which of the two is meant: the generator if `architectures` is `["ElectraForMaskedLM"]`, or else the
# discriminator.

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
            f"`to=google` can't express hidden_act={config.hidden_act} of model_type=electra, whose code has gelu_erf"
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


ALBERT_CONFIG, BERT_CONFIG = "albert_config.json", "bert_config.json"
_CHECKPOINT = "model.ckpt-best"

# Values that configs of BERT leave out.
_BERT_DEFAULTS = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "type_vocab_size": 16,
}
_ORIGINAL_FIELDS = (
    *("vocab_size", "embedding_size", "hidden_size", "num_hidden_layers", "num_hidden_groups", "inner_group_num"),
    *("num_attention_heads", "intermediate_size", "hidden_act", "hidden_dropout_prob"),
    *("attention_probs_dropout_prob", "max_position_embeddings", "type_vocab_size", "initializer_range"),
)
_ALBERT_ONLY = ("embedding_size", "num_hidden_groups", "inner_group_num")

_SLOT = re.compile(r"/(adam_m|adam_v|Adam|Adam_1|lamb_m|lamb_v)$")
_COUNTERS = ("global_step", "beta1_power", "beta2_power")
_HUB_PREFIX = "module/"


def read(path: str, options: ReadOptions) -> PortableModel:
    """Reads a folder or a path without extension: with or without optimizer, of TF-Hub, pre-trained or fine-tuned."""
    checkpoint = _find_checkpoint(path)
    variables = checkpoint_weights(CheckpointReader(checkpoint, suffix=""))
    prefix = _HUB_PREFIX if any(name.startswith(_HUB_PREFIX) for name in variables) else ""
    found = {name.removeprefix(prefix): weight for name, weight in variables.items()}
    slots = [name for name in found if _SLOT.search(name)]
    counters = [name for name in found if name in _COUNTERS]
    rest = {name: weight for name, weight in found.items() if name not in {*slots, *counters}}
    config_file = options.albert_config_file or _find_config(checkpoint, is_electra(rest))
    if is_electra(rest):
        task, (config, weights, notes) = None, read_electra(rest, checkpoint, config_file)
    else:
        reads_bert = any(name.startswith("bert/encoder/layer_") for name in rest)
        config = _read_config(config_file, reads_bert)
        task, outputs = _find_task(rest, options.named_task)
        # The variables of a head tell their shapes even where they don't tell the task.
        head, naming = task or (Classification if outputs else None), BERT if reads_bert else ALBERT
        weights, notes = take_weights(naming, config, rest, checkpoint, head, outputs, "bert/encoder/")
    if slots or counters:
        kinds = sorted({_SLOT.search(name)[1] for name in slots})
        what = [f"{len(slots)} of the optimizer ({', '.join(kinds)})"] if slots else []
        notes.append(f"left, because only training needs them: {', '.join([*what, *counters])}")
    model = PortableModel(config, weights, notes=notes)
    model.task = task if model.has_head else None
    return with_tokenizer(model, os.path.dirname(checkpoint), options, GOOGLE)


def _find_checkpoint(path):
    """Returns the path, without extension, of the one checkpoint that is meant."""
    if tf.io.gfile.exists(f"{path}.index"):
        return path
    if tf.io.gfile.isdir(os.path.join(path, "variables")):  # of a TF-Hub module
        path = os.path.join(path, "variables")
    names = tf.io.gfile.listdir(path) if tf.io.gfile.isdir(path) else []
    found = sorted(name.removesuffix(".index") for name in names if name.endswith(".index"))
    newest = named_newest(path) if len(found) > 1 else None
    if newest is not None and os.path.basename(newest) in found:
        return os.path.join(path, os.path.basename(newest))
    if _CHECKPOINT in found or len(found) == 1:
        return os.path.join(path, _CHECKPOINT if _CHECKPOINT in found else found[0])
    if found:
        raise InputError(f"`input_path={path}` holds {len(found)} checkpoints; name one, such as {path}/{found[-1]}")
    raise InputError(f"`input_path`: no checkpoint of TensorFlow, a file that ends in .index, at {path}")


def _find_config(checkpoint, of_electra):
    """Returns the path of the config: beside the checkpoint, or of a TF-Hub module in its assets."""
    folder = os.path.dirname(checkpoint)
    for place in (folder, os.path.join(folder, os.pardir, "assets")):
        for name in (HUGGINGFACE_CONFIG,) if of_electra else (ALBERT_CONFIG, BERT_CONFIG):
            if tf.io.gfile.exists(os.path.join(place, name)):
                return os.path.join(place, name)
    if of_electra:
        raise InputError(
            f"`input_path`: there is no {HUGGINGFACE_CONFIG} in {folder or '.'}, and ELECTRA's code writes no config; "
            "name that of the same network on the Hugging Face hub in `albert_config_file`"
        )
    raise InputError(
        f"`input_path`: there is no {ALBERT_CONFIG} in {folder or '.'}; copy it there, or name it: `albert_config_file`"
    )


def _read_config(path, reads_bert):
    values = foreign_config.check_computed(read_json(path, "the model config"), path)
    if reads_bert:
        values = {name: value for name, value in values.items() if not name.startswith("pooler_")}
        values = {**_BERT_DEFAULTS, **values}
        values = {**values, "embedding_size": values["hidden_size"], "sharing": "none"}
    return foreign_config.make_config(values, path)


def _find_task(found, given):
    """Returns the task of the head, None if there is none or it isn't clear, and the number of its outputs."""
    if "start_logits/dense/kernel" in found:
        return ConditionalQuestionAnswering, 0
    if "cls/squad/output_weights" in found:
        return QuestionAnswering, 2
    if "output_weights" not in found:
        return None, 0
    outputs = (*found["output_weights"].shape, 0)[0]
    if given is not None and given.kind.head in (OF_SPAN, OF_CONDITIONAL_SPAN):
        raise InputError(f"`task={given.kind.name}`: the checkpoint has the head of a classifier")
    return given or (Classification if outputs > 1 else None), outputs


def write(model: PortableModel, folder: str) -> list[str]:
    """Writes a folder that the original's code reads, with the tokenizer; returns sentences on what was left."""
    config = model.config
    foreign_config.check_head(model, "google")
    if config.layer_norm_eps != foreign_config.DEFAULTS.layer_norm_eps:
        raise InputError(f"`to=google` can't express layer_norm_eps={config.layer_norm_eps}: its code has 1e-12")
    if config.model_type == "electra":
        name, weights, values, notes = HUGGINGFACE_CONFIG, *write_electra(model)
    else:
        name, weights, values, notes = _albert_or_bert(model)
    write_variables(os.path.join(folder, _CHECKPOINT), Values(weights))
    write_json(os.path.join(folder, name), values)
    if model.tokenizer is not None:
        model.tokenizer.save(folder)
    return notes


def _albert_or_bert(model):
    """Returns the config's file name, variables by Google's names, the config, and sentences on what was left."""
    config = model.config
    foreign_config.check_architecture(config, "google")
    if config.hidden_act == "gelu_erf":
        raise InputError(
            "`to=google` can't express hidden_act=gelu_erf, as its code has only the tanh approximation; if results "
            'that differ a little will do, set "hidden_act" to "gelu" in the config of `input_path`'
        )
    if foreign_config.is_bert(config):
        naming, name = BERT, BERT_CONFIG
    else:
        naming, name, config = ALBERT, ALBERT_CONFIG, foreign_config.with_groups(config, "google")
    weights, notes = give_weights(naming, model)
    return name, weights, _config_values(config, naming is BERT), notes


def _config_values(config, writes_bert):
    """Returns the original's keys, and those of ours that it ignores, where they aren't defaults."""
    values = {name: getattr(config, name) for name in _ORIGINAL_FIELDS if not (writes_bert and name in _ALBERT_ONLY)}
    if config.hidden_act == "gelu_new":
        values["hidden_act"] = "gelu"
    if config.classifier_dropout_prob != foreign_config.DEFAULTS.classifier_dropout_prob:
        values["classifier_dropout_prob"] = config.classifier_dropout_prob
    unused = {} if writes_bert else {"down_scale_factor": 1, "net_structure_type": 0, "gap_size": 0}
    return {**values, **unused, **foreign_config.own_fields(config)}
