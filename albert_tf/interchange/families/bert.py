"""BERT and DistilBERT."""

from albert_tf.config import AlbertConfig
from albert_tf.interchange.families.family import Family, Found, Names, Values, embedding_names, masked_lm_names
from albert_tf.interchange.tokenizers.sentencepiece import KOBERT
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
