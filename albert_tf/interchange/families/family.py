"""The base of the families of encoders, which is BERT; the files beside this one say how others differ.

Methods take our config and our names of variables, or theirs as `values` of a config.json and `found` weights.
"""

import collections.abc
import dataclasses
import functools
import os
import typing

import numpy as np

from albert_tf.base.errors import InputError, shorten
from albert_tf.base.files import gfile_for
from albert_tf.config import FAMILIES, AlbertConfig
from albert_tf.finetuning.task import OF_OPTION, OF_PIECE, OF_SPAN, OF_TEXT
from albert_tf.interchange import foreign_config
from albert_tf.interchange.portable_model import PortableModel, Weight, give_weights
from albert_tf.interchange.tokenizers.sentencepiece import ALBERT
from albert_tf.interchange.tokenizers.settings import Kind
from albert_tf.interchange.variables import Naming, Spelling, block_names, plain_spellings
from albert_tf.tokenization.tokenizer import VOCABULARY_FILE

Values = dict[str, typing.Any]  # of a config
Names = dict[str, str]  # theirs by ours
Found = collections.abc.Container[str]  # names of variables in a folder
Variables = collections.abc.Mapping[str, Weight]  # by their names
# "gelu" there is another function than here, and the other way round.
_ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_python"), "gelu_erf"),
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu"),
    **{name: name for name in ("relu", "tanh", "linear")},
}
_THEIR_ACTIVATIONS = {"gelu": "gelu_new", "gelu_erf": "gelu"}
SIZES = {"max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12}
_BPE_FILES = ("merges.txt", "vocab.json")
# A head that has a layer of its own before the last one, as RoBERTa's and ELECTRA's for whole texts.
OWN_LAYER = {"head/transform": "classifier.dense", "head/dense": "classifier.out_proj"}


def embedding_names(prefix: str) -> Names:
    """Returns the names of the embeddings in BERT and its successors."""
    names = ("word_embeddings", "token_type_embeddings", "position_embeddings")
    return {
        **{f"encoder/embeddings/{name}": f"{prefix}embeddings.{name}" for name in names},
        "encoder/embeddings/layer_norm": f"{prefix}embeddings.LayerNorm",
    }


def masked_lm_names(transform: str, layer_norm: str, bias: str) -> Names:
    names = {"transform": transform, "layer_norm": layer_norm, "output_bias": bias}
    return {f"masked_lm_head/{layer}": name for layer, name in names.items()}


class Family:
    """A family of encoders by its name in `FAMILIES`, which its config calls model_type."""

    class_prefix = "Bert"  # how the names of its classes begin
    prefix = "bert."  # how the names of its variables do, save those of heads, and in folders of the encoder alone
    blocks = "encoder."  # how those of blocks go on
    decoder = "cls.predictions.decoder."  # where it repeats the tied table and the bias of the masked language model
    buffers: tuple[str, ...] = ("embeddings.position_ids", "embeddings.token_type_ids")  # ends of what is no weight
    spellings = plain_spellings(
        table=(Spelling(".weight"),),
        linear=(Spelling(".weight", is_transposed=True), Spelling(".bias")),
        norm=(Spelling(".weight"), Spelling(".bias")),
    )
    always_projects = False  # as in `Naming`
    # Its heads: of pre-training; and of whole texts, choices, pieces and spans, None where they are none of ours.
    pretraining_heads: Names = {
        **masked_lm_names(
            "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"
        ),
        "sentence_order_head/dense": "cls.seq_relationship",
    }
    text_head = choice_head = piece_head = {"head/dense": "classifier"}
    span_head: Names | None = {"head/dense": "qa_outputs"}
    has_gelu_in_masked_lm = False  # whether the head of its masked language model has GELU whatever hidden_act is
    can_be_causal = False  # whether pieces of some of its models see none after them
    defaults: Values = {  # what its config leaves out, by our names
        **SIZES,
        "vocab_size": 30522,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
    }
    fixed: Values = {}  # what our config says of all its models, beside what `always` begins with, and theirs doesn't
    config_names: Names = {}  # what it calls the other keys of `defaults`, where not as we do
    only_values: dict[str, tuple] = {}  # keys of its config that ask for what we don't compute, but for these values
    obeyed: tuple[str, ...] = ()  # other keys of its config that its methods read
    without_effect: dict[str, str] = {}  # such that change nothing here, and why
    usual_tokenizer = ""  # what kind its models usually have, if that is none of ours
    sentencepiece: Kind = ALBERT  # the tokenizer that a SentencePiece model beside it is, unless a file says otherwise

    def __init__(self, name: str):
        self.name = name

    @property
    def always(self) -> Values:
        """The fields of our config that are the same for all its models."""
        return {"sharing": "none", "model_type": self.name, **self.fixed}

    @property
    def names_in_config(self) -> Names:
        """Its names for those fields of our config that its config has."""
        return {ours: self.config_names.get(ours, ours) for ours in self.defaults if ours not in self.fixed}

    @property
    def config_keys(self) -> set[str]:
        """The keys of its config that are read, refused, or known to change nothing, beside those of all families."""
        return {*self.names_in_config.values(), *self.only_values, *self.obeyed, *self.without_effect}

    def encoder_names(self) -> Names:
        """Returns the names of the layers of its encoder by ours."""
        return {
            **embedding_names(self.prefix),
            **block_names(
                f"{self.prefix}encoder.layer.{{n}}.",
                *("attention.self.query", "attention.self.key", "attention.self.value"),
                *("attention.output.dense", "attention.output.LayerNorm"),
                *("intermediate.dense", "output.dense", "output.LayerNorm"),
            ),
            "encoder/pooler": f"{self.prefix}pooler.dense",
        }

    @functools.cached_property
    def naming(self) -> Naming:
        heads = {
            OF_TEXT: self.text_head,
            OF_OPTION: self.choice_head,
            OF_PIECE: self.piece_head,
            OF_SPAN: self.span_head,
        }
        return Naming(
            {**self.encoder_names(), **self.pretraining_heads},
            {head: names for head, names in heads.items() if names},
            self.spellings,
            self.always_projects,
        )

    def has_pooler(self, found: Found) -> bool:
        """Whether a pooler is among variables, in families where the config doesn't say it."""
        return f"{self.prefix}pooler.dense.weight" in found

    def read_config(self, values: Values, found: Found, source: str) -> Values:
        """Returns the fields of our config; errors begin with `source`, the file of theirs."""
        values = foreign_config.check_computed(values, source, self.only_values)
        names = self.names_in_config
        activation = values.get(names["hidden_act"], self.defaults["hidden_act"])
        if not isinstance(activation, str) or activation not in _ACTIVATIONS:
            raise InputError(
                f"{source}: hidden_act={shorten(activation)} can't be converted; {', '.join(_ACTIVATIONS)} can"
            )
        names |= {name: name for name in foreign_config.OWN_FIELDS}
        fields = {**self.defaults, **{ours: values[theirs] for ours, theirs in names.items() if theirs in values}}
        fields["hidden_act"] = _ACTIVATIONS[activation]
        fields.setdefault("embedding_size", fields["hidden_size"])
        if "classifier_dropout_prob" not in fields:
            dropout = values.get("classifier_dropout")
            fields["classifier_dropout_prob"] = fields["hidden_dropout_prob"] if dropout is None else dropout
        return fields | self.always

    def write_config(self, config: AlbertConfig, common: Values) -> Values:
        """Returns its config of a model without heads; `common` is what those of all families say."""
        names = self.names_in_config
        values = {
            **{theirs: getattr(config, ours) for ours, theirs in names.items()},
            names["hidden_act"]: _THEIR_ACTIVATIONS.get(config.hidden_act, config.hidden_act),
            **common,
        }
        if "classifier_dropout_prob" not in names:
            values["classifier_dropout"] = config.classifier_dropout_prob
        return values

    def computes(self, config: AlbertConfig) -> Values:
        """Returns the values of our config that its classes compute, where they aren't our defaults."""
        plain = {"inner_group_num": 1, "embedding_size": config.hidden_size}
        return self.always | {name: value for name, value in plain.items() if name not in self.defaults}

    def config_to_write(self, model: PortableModel) -> AlbertConfig:
        """Returns our config of a model, put as the family does; an InputError if its classes don't compute it."""
        config = model.config
        foreign_config.check_architecture(config, "huggingface", self.computes(config))
        self.check_masked_lm(config, model.has("masked_lm_head"), "`to=huggingface`")
        return config

    def check_masked_lm(self, config: AlbertConfig, has_head: bool, source: str) -> None:
        """Checks that a masked-LM head computes the same on both sides; `source` is a file, or the format."""
        if has_head and self.has_gelu_in_masked_lm and config.hidden_act != "gelu_erf":
            raise InputError(
                f"{source}: hidden_act={config.hidden_act} of model_type={config.model_type}, whose masked-LM head "
                "has GELU whatever that says; only gelu_erf (gelu there) can be converted"
            )

    def check_network(self, values: Values, found: Variables, config_file: str, source: str) -> list[str]:
        """Checks that the config describes the network in the weights; returns sentences on it."""
        return []

    def check_tokenizer(self, folder: str) -> None:
        """Raises InputError if a folder has the usual tokenizer of its models, and that is none of ours."""
        names, is_there = (*_BPE_FILES, VOCABULARY_FILE), gfile_for(folder).exists
        exists = [name for name in names if is_there(os.path.join(folder, name))]
        if self.usual_tokenizer and exists and VOCABULARY_FILE not in exists:
            title = FAMILIES[self.name].title
            raise InputError(
                f"{os.path.join(folder, exists[0])} is of a {self.usual_tokenizer} tokenizer, which albert_tf doesn't "
                f"have; only {title[0].lower()}{title[1:]} with WordPieces ({VOCABULARY_FILE}) can be converted"
            )

    def read_weights(self, found: Variables, source: str) -> tuple[Variables, list[str]]:
        """Returns weights by the names of `naming`, and the names of buffers, which were left; errors name `source`.

        Names may lack the prefix or spell norms as TensorFlow 1 does, and tied weights may be there twice.
        """
        is_bare = not any(name.startswith(self.prefix) for name in found)
        parts = {name.removeprefix(self.prefix).partition(".")[0] for name in self.encoder_names().values()}
        usual, buffers = {}, []
        for name, weight in found.items():
            name = f"{self.prefix}{name}" if is_bare and name.partition(".")[0] in parts else name
            name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
            if name.endswith(self.buffers):
                buffers.append(name)
            else:
                usual[name] = weight
        table = f"{self.naming.layers['encoder/embeddings/word_embeddings']}.weight"
        for end, tied in (("weight", table), ("bias", self.naming.layers.get("masked_lm_head/output_bias"))):
            copy = usual.pop(f"{self.decoder}{end}", None) if tied else None
            weight = None if copy is None else usual.setdefault(tied, copy)
            if weight is not copy and (weight.shape != copy.shape or not np.array_equal(weight.read(), copy.read())):
                raise InputError(
                    f"{source}: {self.decoder}weight or bias differs from the embedding table or the bias, which "
                    "models of albert_tf share; this model can't be converted"
                )
        return usual, buffers

    def write_weights(self, model: PortableModel, class_name: str) -> tuple[Variables, list[str]]:
        """Returns weights by its names for one of its classes, and sentences on those that have no place there."""
        lacks = self._lacks(model, class_name)
        kept = {name: weight for name, weight in model.weights.items() if not name.startswith(lacks)}
        weights, notes = give_weights(self.naming, dataclasses.replace(model, weights=kept))
        left = [part.strip("/") for part in lacks if model.has(part.strip("/"))]
        if class_name == "Model":
            weights = {name.removeprefix(self.prefix): weight for name, weight in weights.items()}
        return weights, [*notes, *(f"left, because the class has no place for it: {part}" for part in left)]

    def _lacks(self, model, class_name):
        """Returns the prefixes of the parts that its family has and a class has no place for."""
        if class_name == "LMHeadModel":
            return ("encoder/pooler/", "sentence_order_head/")
        is_discriminator = class_name == "ForPreTraining" and model.has("replaced_token_head")
        return ("masked_lm_head/",) if is_discriminator else ()

    def class_name(self, model: PortableModel) -> str:
        """Returns the class that a model is written for, without `class_prefix`."""
        if model.has_head and model.task and model.task.kind.head.hf_class:
            return model.task.kind.head.hf_class
        if model.config.is_causal and (model.has("masked_lm_head") or model.config.language_model_head == "tied"):
            return "LMHeadModel"
        heads = [
            head for head in ("replaced_token_head", "sentence_order_head") if f"{head}/dense" in self.naming.layers
        ]
        if any(map(model.has, heads)):
            return "ForPreTraining"
        return "ForMaskedLM" if model.has("masked_lm_head") else "Model"
