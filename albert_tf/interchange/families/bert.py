"""BERT, DistilBERT, ALBERT, RoBERTa, XLM-RoBERTa and ELECTRA."""

import dataclasses

from albert_tf.base.errors import InputError, shorten
from albert_tf.config import AlbertConfig
from albert_tf.interchange import foreign_config
from albert_tf.interchange.families.family import (
    OWN_LAYER,
    SIZES,
    Family,
    Found,
    Names,
    Values,
    Variables,
    embedding_names,
    masked_lm_names,
)
from albert_tf.interchange.huggingface_heads import class_in
from albert_tf.interchange.portable_model import PortableModel
from albert_tf.interchange.tokenizers.sentencepiece import KOBERT
from albert_tf.interchange.tokenizers.unigram import XLM_ROBERTA
from albert_tf.interchange.variables import block_names


class Bert(Family):
    """BERT as `Family` has it, and decoders: no token sees those after it, and only some have a pooler."""

    fixed = {"model_type": "albert"}
    can_be_causal = True
    sentencepiece = KOBERT

    def read_config(self, values: Values, found: Found, source: str) -> Values:
        if values.get("is_decoder") is not True:
            return super().read_config(values, found, source)
        fields = super().read_config({**values, "is_decoder": False}, found, source)
        return {**fields, "is_causal": True, "pooler": self.has_pooler(found)}

    def write_config(self, config: AlbertConfig, common: Values) -> Values:
        return super().write_config(config, {**common, "is_decoder": True} if config.is_causal else common)

    def computes(self, config: AlbertConfig) -> Values:
        return {**super().computes(config), **({"pooler": config.pooler} if config.is_causal else {})}


class DistilBert(Family):
    """Half of BERT's layers, without segments and pooler; with names of its own in the config."""

    class_prefix = "DistilBert"
    prefix = "distilbert."
    blocks = "transformer."
    decoder = "vocab_projector."
    pretraining_heads = masked_lm_names("vocab_transform", "vocab_layer_norm", "vocab_projector.bias")
    text_head = choice_head = {"head/transform": "pre_classifier", "head/dense": "classifier"}
    defaults = {**Family.defaults, "num_hidden_layers": 6, "classifier_dropout_prob": 0.2}
    fixed = {"pooler": False, "type_vocab_size": 0, "layer_norm_eps": 1e-12, "classification_head": "dense_relu"}
    config_names = {
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "hidden_act": "activation",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
        "classifier_dropout_prob": "seq_classif_dropout",
    }
    without_effect = {"sinusoidal_pos_embds": "positions lie in the weights", "qa_dropout": "of training"}
    sentencepiece = KOBERT

    def encoder_names(self) -> Names:
        return {
            **embedding_names(self.prefix),
            **block_names(
                "distilbert.transformer.layer.{n}.",
                *("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm"),
                *("ffn.lin1", "ffn.lin2", "output_layer_norm"),
            ),
        }


class Albert(Family):
    """ALBERT 1 and 2, with blocks in groups, whose projection of embeddings is there even where it changes nothing."""

    class_prefix = "Albert"
    prefix = "albert."
    decoder = "predictions.decoder."
    always_projects = True
    pretraining_heads = {
        **masked_lm_names("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
        "sentence_order_head/dense": "sop_classifier.classifier",
    }
    defaults = {
        **SIZES,
        "vocab_size": 30000,
        "embedding_size": 128,
        "hidden_size": 4096,
        "num_hidden_layers": 12,
        "num_hidden_groups": 1,
        "num_attention_heads": 64,
        "intermediate_size": 16384,
        "inner_group_num": 1,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "classifier_dropout_prob": 0.1,
    }
    always: Values = {}  # layers share what `num_hidden_groups` says

    def encoder_names(self) -> Names:
        return {
            **embedding_names(self.prefix),
            "encoder/embedding_hidden_mapping_in": "albert.encoder.embedding_hidden_mapping_in",
            **block_names(
                "albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}.",
                *("attention.query", "attention.key", "attention.value", "attention.dense", "attention.LayerNorm"),
                *("ffn", "ffn_output", "full_layer_layer_norm"),
            ),
            "encoder/pooler": "albert.pooler",
        }

    def config_to_write(self, model: PortableModel) -> AlbertConfig:
        config = foreign_config.with_groups(model.config, "huggingface")
        return super().config_to_write(dataclasses.replace(model, config=config))


class Roberta(Family):
    """Positions are counted from [PAD]'s id. Only the weights tell of a pooler, which the encoder alone has."""

    class_prefix = "Roberta"
    prefix = "roberta."
    decoder = "lm_head.decoder."
    pretraining_heads = masked_lm_names("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")
    text_head = OWN_LAYER
    choice_head = {"head/transform": "roberta.pooler.dense", "head/dense": "classifier"}
    has_gelu_in_masked_lm = True
    defaults = {**Family.defaults, "vocab_size": 50265}
    fixed = {"classification_head": "dense_tanh"}

    def read_config(self, values: Values, found: Found, source: str) -> Values:
        fields = super().read_config(values, found, source)
        pad_id = values.get("pad_token_id", 1)
        if not isinstance(pad_id, int) or isinstance(pad_id, bool) or pad_id < 0:
            raise InputError(f"{source}: pad_token_id must be a whole number. Received: {shorten(pad_id)}")
        return {**fields, "position_offset": pad_id + 1, "pooler": self.has_pooler(found)}

    def computes(self, config: AlbertConfig) -> Values:
        return {**super().computes(config), "position_offset": config.position_offset, "pooler": config.pooler}

    def config_to_write(self, model: PortableModel) -> AlbertConfig:
        if not model.config.position_offset:
            raise InputError(
                f"`to=huggingface` can't express position_offset=0 of model_type={self.name}, which begins behind [PAD]"
            )
        return super().config_to_write(model)


class XlmRoberta(Roberta):
    """RoBERTa with other names of classes, and a tokenizer of its own."""

    class_prefix = "XLMRoberta"
    sentencepiece = XLM_ROBERTA


class Electra(Family):
    """Its embeddings may be narrower than its layers, and it has no pooler."""

    class_prefix = "Electra"
    prefix = "electra."
    decoder = "generator_lm_head."
    pretraining_heads = {
        "replaced_token_head/transform": "discriminator_predictions.dense",
        "replaced_token_head/dense": "discriminator_predictions.dense_prediction",
        **masked_lm_names("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias"),
    }
    text_head = OWN_LAYER
    choice_head = {"head/transform": "sequence_summary.summary", "head/dense": "classifier"}
    has_gelu_in_masked_lm = True
    defaults = {
        **Family.defaults,
        "embedding_size": 128,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
    }
    fixed = {"pooler": False, "classification_head": "dense_gelu"}

    def encoder_names(self) -> Names:
        return {**super().encoder_names(), "encoder/embedding_hidden_mapping_in": "electra.embeddings_project"}

    def check_network(self, values: Values, found: Variables, config_file: str, source: str) -> list[str]:
        of_class = {"ElectraForMaskedLM": "generator", "ElectraForPreTraining": "discriminator"}
        is_there = [
            name for name in of_class.values() if any(each.startswith(f"{name}_predictions.") for each in found)
        ]
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
