"""Checkpoints of google-research/albert, bert and electra, as TensorFlow 1 writes them."""

import os
import re

import tensorflow as tf

from albert_tf.checkpoint_files import CheckpointReader, named_newest, write_variables
from albert_tf.errors import InputError
from albert_tf.files import read_json, write_json
from albert_tf.finetuning import Classification, ConditionalQuestionAnswering, QuestionAnswering
from albert_tf.finetuning.kinds import OF_CONDITIONAL_SPAN, OF_SPAN
from albert_tf.interchange import foreign_config
from albert_tf.interchange.google_electra import is_electra, read_electra, write_electra
from albert_tf.interchange.google_names import ALBERT, BERT
from albert_tf.interchange.huggingface_config import CONFIG_FILE as HUGGINGFACE_CONFIG
from albert_tf.interchange.portable_model import (
    PortableModel,
    ReadOptions,
    Values,
    checkpoint_weights,
    give_weights,
    take_weights,
)
from albert_tf.interchange.sentencepiece_files import GOOGLE
from albert_tf.interchange.tokenizer_files import with_tokenizer

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
        f"`input_path`: there is no {ALBERT_CONFIG} in {folder or '.'}; copy the one that the checkpoint was "
        "made with into it, or name it in `albert_config_file`"
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
