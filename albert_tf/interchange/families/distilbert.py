"""DistilBERT: half of BERT's layers, without segments and pooler."""

from albert_tf.interchange.families.family import Family, embedding_names, masked_lm_names
from albert_tf.interchange.sentencepiece_files import KOBERT
from albert_tf.interchange.variables import block_names


class DistilBert(Family):
    """Its config has names of its own, and its head a layer."""

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
        "type_vocab_size": None,
        "layer_norm_eps": None,
    }
    sentencepiece = KOBERT

    def encoder_names(self) -> dict[str, str]:
        embeddings = embedding_names(self.prefix)
        return {
            **{layer: name for layer, name in embeddings.items() if "token_type" not in layer},
            **block_names(
                "distilbert.transformer.layer.{n}.",
                *("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm"),
                *("ffn.lin1", "ffn.lin2", "output_layer_norm"),
            ),
        }
