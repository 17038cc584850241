"""The config.json of Hugging Face's transformers: read as ours, and written from it."""

import collections.abc
import typing

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError, shorten
from albert_tf.files import read_json
from albert_tf.finetuning.kinds import OF_PIECE, OF_TEXT
from albert_tf.interchange import foreign_config, gpt2, xlm
from albert_tf.interchange.huggingface_names import ACTIVATIONS, FAMILIES, THEIR_ACTIVATIONS, Family
from albert_tf.interchange.portable_model import PortableModel
from albert_tf.interchange.tokenizer_files import ids_of
from albert_tf.tokenization.vocabulary import CLS, PAD, SEP

CONFIG_FILE = "config.json"
# Where a folder that we wrote keeps what albert_tf.load needs.
OWN_SETTINGS = "albert_tf_settings"
# Keys that configs of ours alone have.
_OUR_KEYS = {"sharing", "position_offset", "pooler", "classification_head", "position_initializer"}


def is_published(values: dict[str, typing.Any]) -> bool:
    """Whether what a JSON file holds is a config of transformers, and not one of ours or of Google's."""
    is_ours = not _OUR_KEYS.isdisjoint(values)
    return "transformers_version" in values or "architectures" in values or ("model_type" in values and not is_ours)


def find_family(values: dict[str, typing.Any], source: str) -> Family:
    """Returns the family of a model by its config; errors begin with the source."""
    family = FAMILIES.get(values.get("model_type")) if isinstance(values.get("model_type"), str) else None
    if values.get("model_type") is None:
        raise InputError(
            f"{source} lacks model_type, which says what kind of model it is; write it there, as in "
            f'"model_type": "bert"; {", ".join(FAMILIES)} can be converted'
        )
    if family is None:
        given = shorten(values.get("model_type"))
        raise InputError(f"{source}: model_type={given} can't be converted; {', '.join(FAMILIES)} can")
    return family


def read_published_config(config_file: str) -> AlbertConfig:
    """Returns our config of a model of transformers, by its config.json alone.

    Whether a RoBERTa has a pooler follows from the class named there: the encoder by itself has one, the classes with
    heads have none.
    """
    values = read_json(config_file, "the model config")
    family = find_family(values, config_file)
    architectures = values.get("architectures")
    is_encoder = isinstance(architectures, list) and str(next(iter(architectures), "")).endswith("Model")
    return read_config(values, family, [f"{family.prefix}pooler.dense.weight"] * is_encoder, config_file)


def read_config(
    values: dict[str, typing.Any], family: Family, found: collections.abc.Container[str], source: str
) -> AlbertConfig:
    """Returns our config of one of theirs; errors begin with `source`.

    The names of its variables, `found`, tell whether it has a pooler where the config doesn't.
    """
    is_decoder = family is FAMILIES["bert"] and values.get("is_decoder") is True
    if is_decoder:
        values = {name: value for name, value in values.items() if name != "is_decoder"}
    if family is FAMILIES["gpt2"]:
        values = gpt2.known_settings(values, source)
    if family is FAMILIES["xlm"]:
        values = xlm.known_settings(values, source)
    values = foreign_config.check_computed(values, source)
    names = family.names_in_config
    activation = values.get(names["hidden_act"], family.defaults["hidden_act"])
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise InputError(f"{source}: hidden_act={shorten(activation)} can't be converted; {', '.join(ACTIVATIONS)} can")
    names |= {name: name for name in foreign_config.OWN_FIELDS}
    fields = {**family.defaults, **{ours: values[theirs] for ours, theirs in names.items() if theirs in values}}
    fields["hidden_act"] = ACTIVATIONS[activation]
    fields.setdefault("embedding_size", fields["hidden_size"])
    if "classifier_dropout_prob" not in fields:
        dropout = values.get("classifier_dropout")
        fields["classifier_dropout_prob"] = fields["hidden_dropout_prob"] if dropout is None else dropout
    fields.update(family.always)
    if is_decoder:
        fields |= {"is_causal": True, "pooler": f"{family.prefix}pooler.dense.weight" in found}
    if family.counts_positions_by_pad:
        pad_id = values.get("pad_token_id", 1)
        if not isinstance(pad_id, int) or isinstance(pad_id, bool) or pad_id < 0:
            raise InputError(f"{source}: pad_token_id must be a whole number. Received: {shorten(pad_id)}")
        fields["position_offset"] = pad_id + 1
        fields["pooler"] = f"{family.prefix}pooler.dense.weight" in found
    return foreign_config.make_config(fields, source)


def config_values(model: PortableModel, config: AlbertConfig, family: Family, class_name: str) -> dict[str, typing.Any]:
    """Returns their config of a model; `config` is in the words of the family, and `class_name` lacks its name."""
    names = family.names_in_config
    values = {
        "architectures": [f"{family.class_prefix}{class_name}"],
        "model_type": family.model_type,
        **{theirs: getattr(config, ours) for ours, theirs in names.items()},
        names["hidden_act"]: THEIR_ACTIVATIONS.get(config.hidden_act, config.hidden_act),
        "pad_token_id": max(0, config.position_offset - 1),
        "bos_token_id": None,
        "eos_token_id": None,
        **ids_of(model.tokenizer, {"pad_token_id": PAD, "bos_token_id": CLS, "eos_token_id": SEP}),
        "tie_word_embeddings": True,
        "dtype": "float32",
        **foreign_config.own_fields(config),
    }
    if family is FAMILIES["gpt2"]:
        values["embd_pdrop"] = config.hidden_dropout_prob
    elif config.is_causal and "is_causal" not in names:
        values["is_decoder"] = True
    if "classifier_dropout_prob" not in names:
        values["classifier_dropout"] = config.classifier_dropout_prob
    if family is FAMILIES["xlm"]:
        values = xlm.their_settings(values, config)
    if class_name in (OF_TEXT.hf_class, OF_PIECE.hf_class):
        labels = model.labels or tuple(f"LABEL_{number}" for number in range(model.num_outputs))
        values["id2label"] = {str(number): label for number, label in enumerate(labels)}
        values["label2id"] = {label: number for number, label in enumerate(labels)}
    if class_name == OF_TEXT.hf_class:
        values["problem_type"] = None if model.settings.get("sigmoid") else model.task.kind.hf_problem_type
    if model.settings:
        values[OWN_SETTINGS] = model.settings
    return values
