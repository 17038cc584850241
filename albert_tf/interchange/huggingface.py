"""Folders of Hugging Face's transformers: config.json, safetensors, and the tokenizer's files.

Weights are read from safetensors alone. pytorch_model.bin is a pickle, which can run any code when it is opened.
"""

import dataclasses
import os

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError, listed, quote
from albert_tf.files import name_in_folder, read_json, write_json
from albert_tf.finetuning import Classification, Entities
from albert_tf.finetuning.kinds import OF_TEXT
from albert_tf.interchange import foreign_config, gpt2, xlm
from albert_tf.interchange.huggingface_config import CONFIG_FILE, OWN_SETTINGS, config_values, find_family, read_config
from albert_tf.interchange.huggingface_heads import class_in, find_head
from albert_tf.interchange.huggingface_names import FAMILIES
from albert_tf.interchange.ours import NO_TASK
from albert_tf.interchange.portable_model import (
    NO_PART,
    Caveat,
    PortableModel,
    ReadOptions,
    give_weights,
    take_weights,
)
from albert_tf.interchange.safetensors_file import read_safetensors, write_safetensors
from albert_tf.interchange.sentence_transformers import read_vectors
from albert_tf.interchange.sentencepiece_files import HUGGINGFACE
from albert_tf.interchange.task_settings import known_settings
from albert_tf.interchange.tokenizer_files import with_tokenizer, write_for_transformers
from albert_tf.interchange.tokenizer_settings import read_max_length

WEIGHTS_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.bin")
# How names of an encoder alone begin.
_WITHOUT_PREFIX = (
    *("embeddings.", "embeddings_project.", "encoder.", "transformer.", "pooler."),
    *("wte.", "wpe.", "h.", "ln_f."),
    *("position_embeddings.", "lang_embeddings.", "layer_norm_emb.", "attentions.", "ffns."),
    *("layer_norm1.", "layer_norm2."),
)
# How names of classes end that are pre-trained and no more.
_WITHOUT_TASK = ("Model", "ForMaskedLM", "ForPreTraining", "ForCausalLM", "ForNextSentencePrediction")
_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids", ".attn.bias", ".attn.masked_bias")


def read(path: str, options: ReadOptions) -> PortableModel:
    """Reads a folder that `save_pretrained` wrote, or that was downloaded as a whole."""
    config_file = os.path.join(path, CONFIG_FILE)
    values = read_json(config_file, "the model config")
    family = find_family(values, config_file)
    found, source = _read_weights(path)
    found = _with_usual_names(found, family)
    config = read_config(values, family, found, config_file)
    buffers = [name for name in found if name.endswith(_BUFFERS)]
    found = {name: weight for name, weight in found.items() if name not in buffers}
    found = _without_tied(found, family, source)
    if family in (FAMILIES["gpt2"], FAMILIES["xlm"]) and not options.vocab_file:
        gpt2.refuse_bpe(path, family.class_prefix)
    if family is FAMILIES["gpt2"]:
        found = gpt2.split_fused(found)
    head = find_head(values, found, options.named_task, config_file)
    known = head.task or (_task_by_name(family, found) if head.outputs else None)
    transform = family.naming.layers.get("masked_lm_head/transform")
    foreign_config.check_masked_lm(config, f"{transform}.weight" in found, source)
    of_network = _check_network(values, family, found, config_file, source)
    weights, taken = take_weights(family.naming, config, found, source, known, head.outputs, family.layers)
    weights = head.in_our_order(weights)
    notes = [*of_network, *taken, *head.notes]
    if buffers:
        notes.append(f"left, because it follows from the config: {', '.join(buffers)}")
    model = PortableModel(config, weights, head.task, head.labels, notes=notes)
    model = with_tokenizer(model, path, options, HUGGINGFACE)
    model.max_seq_length, model.gives_probability = read_max_length(path), head.gives_probability
    model.vectors, of_vectors = read_vectors(path)
    model.notes += [*of_vectors, *_unread_head(values, model, taken), *foreign_config.of_generation(path, config)]
    if unknown := foreign_config.unknown_keys(values, family.names_in_config.values()):
        model.notes.append(Caveat(f"{config_file}: ignored, because they are unknown: {listed(unknown)}"))
    if head.outputs and isinstance(values.get(OWN_SETTINGS), dict):
        _take_own_settings(model, values[OWN_SETTINGS], head.outputs, config_file)
    return model


def _unread_head(values, model, notes):
    """Returns a sentence if the config names a class with a head, and nobody here reads that."""
    name = class_in(values)
    if model.has_head or not name or (name.endswith(_WITHOUT_TASK) and not name.endswith("DoubleHeadsModel")):
        return []
    names = [note.removeprefix(NO_PART) for note in notes if note.startswith(NO_PART)]
    what = f"a head that albert_tf doesn't know ({', '.join(names)})" if names else "a head that is not in the weights"
    return [Caveat(f"the head is left out, and so {NO_TASK}{name} has {what}")]


def _check_network(values, family, found, config_file, source):
    """Checks that an ELECTRA's config is of the network that is there; returns a sentence if that is the generator."""
    if family.model_type != "electra":
        return []
    of_class = {"ElectraForMaskedLM": "generator", "ElectraForPreTraining": "discriminator"}
    is_there = [name for name in of_class.values() if any(each.startswith(f"{name}_predictions.") for each in found)]
    name = class_in(values)
    meant = of_class.get(name)
    if is_there and meant and meant not in is_there:
        raise InputError(
            f"{config_file}: architectures={name} is a {meant} of ELECTRA, and {source} holds a "
            f"{is_there[0]}; put the files of one network together"
        )
    if "generator" not in is_there:
        return []
    return [
        "it is the generator of an ELECTRA, which guesses masked pieces; what is usually fine-tuned is the "
        "discriminator, which has a folder of its own"
    ]


def _task_by_name(family, found):
    """Returns a task whose head has the names of one that is there, where nothing says what it is for."""
    whole = family.naming.heads.get(OF_TEXT, {"": ""})
    return Classification if all(f"{name}.weight" in found for name in whole.values()) else Entities


def _take_own_settings(model, settings, outputs, source):
    """Gives a model what we wrote into its config for ourselves."""
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


def _with_usual_names(found, family):
    """Returns weights by the names of today's models with heads: some began without prefix, or named as in TF 1."""
    has_prefix = any(name.startswith(family.prefix) for name in found)
    renamed = {}
    for name, weight in found.items():
        if not has_prefix and name.startswith(_WITHOUT_PREFIX):
            name = f"{family.prefix}{name}"
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        renamed[name] = weight
    return renamed


def _without_tied(found, family, source):
    """Returns weights without those of the masked language model that are there twice."""
    table = found.get(f"{family.naming.layers['encoder/embeddings/word_embeddings']}.weight")
    bias_name = family.naming.layers.get("masked_lm_head/output_bias")
    rest = dict(found)
    decoder, bias = (rest.pop(f"{family.decoder}{end}", None) for end in ("weight", "bias"))
    if bias is not None:
        rest.setdefault(bias_name, bias)
    for one, other in ((decoder, table), (bias, rest.get(bias_name))):
        if one is None or other is None or one is other:
            continue
        if one.shape != other.shape or not np.array_equal(one.read(), other.read()):
            raise InputError(
                f"{source}: {family.decoder}weight or bias differs from the embedding table or the bias, which "
                "models of albert_tf share; this model can't be converted"
            )
    return rest


def write(model: PortableModel, folder: str) -> list[str]:
    """Writes a folder that `from_pretrained` of transformers reads, with the tokenizer; returns what was left."""
    foreign_config.check_head(model, "huggingface")
    family, config = _family_of(model)
    class_name = _class_name(model, family)
    lacks = _lacks(model, class_name)
    kept = {name: weight for name, weight in model.weights.items() if not name.startswith(lacks)}
    weights, notes = give_weights(family.naming, dataclasses.replace(model, weights=kept))
    left = [part.strip("/") for part in lacks if model.has(part.strip("/"))]
    notes += [f"left, because the class has no place for it: {part}" for part in left]
    if family is FAMILIES["gpt2"]:
        weights = gpt2.join_fused(weights)
    if class_name == "Model":
        weights = {name.removeprefix(family.prefix): weight for name, weight in weights.items()}
    write_safetensors(os.path.join(folder, WEIGHTS_FILE), weights)
    write_json(os.path.join(folder, CONFIG_FILE), config_values(model, config, family, class_name))
    if model.tokenizer is not None:
        notes += write_for_transformers(model.tokenizer, folder, config, model.longest_sequence)
    if model.settings.get("doc_stride") and model.task.kind.head.reads_whole_text:
        notes.append(
            f"texts of more than {model.longest_sequence} pieces are read in windows here (doc_stride="
            f"{model.settings['doc_stride']}), and only their beginnings there: transformers has no windows"
        )
    if model.vectors.get("pooling"):
        notes.append("left, because it is not of transformers: how sentence-transformers makes vectors")
    return [*notes, f"transformers knows it as {family.class_prefix}{class_name}"]


def _family_of(model):
    """Returns the family that a model is written as, and its config in its words; refuses what none computes."""
    config = model.config
    if config.model_type != "albert":
        family = FAMILIES[config.model_type]
        has_projection = config.embedding_size != config.hidden_size
        if config.inner_group_num != 1 or (has_projection and "embedding_size" not in family.defaults):
            raise InputError(
                f"`to=huggingface` can't express inner_group_num={config.inner_group_num} and embedding_size="
                f"{config.embedding_size} of a model of model_type={config.model_type}; a layer has one block, and "
                "embeddings their width"
            )
    elif foreign_config.is_bert(config):
        family = FAMILIES["bert"]
    else:
        family, config = FAMILIES["albert"], foreign_config.with_groups(config, "huggingface")
    # The class of a decoder has no pooler.
    computes = {**family.always, **({"pooler": config.pooler} if config.is_causal else {})}
    if family is FAMILIES["xlm"]:
        xlm.check_representable(config, model.has_head)
        computes |= {"pooler": False, "num_languages": config.num_languages}
    foreign_config.check_architecture(config, "huggingface", computes, family.counts_positions_by_pad)
    foreign_config.check_masked_lm(config, model.has("masked_lm_head"), "`to=huggingface`")
    return family, config


def _lacks(model, class_name):
    """Returns what the names begin with of parts that a class has no place for, and its family has."""
    if class_name == "LMHeadModel":
        return ("encoder/pooler/", "sentence_order_head/")
    is_discriminator = class_name == "ForPreTraining" and model.has("replaced_token_head")
    return ("masked_lm_head/",) if is_discriminator else ()


def _class_name(model, family):
    if family is FAMILIES["xlm"]:
        return "WithLMHeadModel" if model.has("masked_lm_head") else "Model"
    if model.has_head and model.task and model.task.kind.head.hf_class:
        return model.task.kind.head.hf_class
    if model.config.is_causal and (model.has("masked_lm_head") or model.config.language_model_head == "tied"):
        return "LMHeadModel"
    if model.has("replaced_token_head") and "replaced_token_head/dense" in family.naming.layers:
        return "ForPreTraining"
    if model.has("sentence_order_head") and "sentence_order_head/dense" in family.naming.layers:
        return "ForPreTraining"
    return "ForMaskedLM" if model.has("masked_lm_head") else "Model"
