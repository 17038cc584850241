"""ALBERT: blocks in groups, whose projection of embeddings is there even where it changes nothing."""

import dataclasses

from albert_tf.config import AlbertConfig
from albert_tf.interchange import foreign_config
from albert_tf.interchange.families.family import SIZES, Family, Names, Values, embedding_names, masked_lm_names
from albert_tf.interchange.portable_model import PortableModel
from albert_tf.interchange.variables import block_names


class Albert(Family):
    """Versions 1 and 2, which differ in their activations."""

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
