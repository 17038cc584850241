"""What Hugging Face's transformers calls the variables, activations and classes of ALBERT and BERT."""

import typing

from albert_tf.interchange.variables import Naming, Spelling, plain_spellings

_BLOCK = "albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
_ALBERT = {
    "encoder/embeddings/word_embeddings": "albert.embeddings.word_embeddings",
    "encoder/embeddings/token_type_embeddings": "albert.embeddings.token_type_embeddings",
    "encoder/embeddings/position_embeddings": "albert.embeddings.position_embeddings",
    "encoder/embeddings/layer_norm": "albert.embeddings.LayerNorm",
    "encoder/embedding_hidden_mapping_in": "albert.encoder.embedding_hidden_mapping_in",
    "encoder/attention_layers/{n}/query": f"{_BLOCK}.attention.query",
    "encoder/attention_layers/{n}/key": f"{_BLOCK}.attention.key",
    "encoder/attention_layers/{n}/value": f"{_BLOCK}.attention.value",
    "encoder/attention_layers/{n}/output_dense": f"{_BLOCK}.attention.dense",
    "encoder/attention_layers/{n}/layer_norm": f"{_BLOCK}.attention.LayerNorm",
    "encoder/feed_forward_layers/{n}/intermediate": f"{_BLOCK}.ffn",
    "encoder/feed_forward_layers/{n}/output_dense": f"{_BLOCK}.ffn_output",
    "encoder/feed_forward_layers/{n}/layer_norm": f"{_BLOCK}.full_layer_layer_norm",
    "encoder/pooler": "albert.pooler",
    "masked_lm_head/transform": "predictions.dense",
    "masked_lm_head/layer_norm": "predictions.LayerNorm",
    "masked_lm_head/output_bias": "predictions.bias",
    "sentence_order_head/dense": "sop_classifier.classifier",
}
_LAYER = "bert.encoder.layer.{n}"
_BERT = {
    "encoder/embeddings/word_embeddings": "bert.embeddings.word_embeddings",
    "encoder/embeddings/token_type_embeddings": "bert.embeddings.token_type_embeddings",
    "encoder/embeddings/position_embeddings": "bert.embeddings.position_embeddings",
    "encoder/embeddings/layer_norm": "bert.embeddings.LayerNorm",
    "encoder/attention_layers/{n}/query": f"{_LAYER}.attention.self.query",
    "encoder/attention_layers/{n}/key": f"{_LAYER}.attention.self.key",
    "encoder/attention_layers/{n}/value": f"{_LAYER}.attention.self.value",
    "encoder/attention_layers/{n}/output_dense": f"{_LAYER}.attention.output.dense",
    "encoder/attention_layers/{n}/layer_norm": f"{_LAYER}.attention.output.LayerNorm",
    "encoder/feed_forward_layers/{n}/intermediate": f"{_LAYER}.intermediate.dense",
    "encoder/feed_forward_layers/{n}/output_dense": f"{_LAYER}.output.dense",
    "encoder/feed_forward_layers/{n}/layer_norm": f"{_LAYER}.output.LayerNorm",
    "encoder/pooler": "bert.pooler.dense",
    "masked_lm_head/transform": "cls.predictions.transform.dense",
    "masked_lm_head/layer_norm": "cls.predictions.transform.LayerNorm",
    "masked_lm_head/output_bias": "cls.predictions.bias",
    "sentence_order_head/dense": "cls.seq_relationship",
}
_HEADS = {
    **{task: {"head/dense": "classifier"} for task in ("classify", "score", "race", "tag")},
    "squad": {"head/dense": "qa_outputs"},
}
_SPELLINGS = plain_spellings(
    table=(Spelling(".weight"),),
    linear=(Spelling(".weight", is_transposed=True), Spelling(".bias")),
    norm=(Spelling(".weight"), Spelling(".bias")),
)


class Family(typing.NamedTuple):
    """One of the library's two models.

    Attributes:
        naming: What it calls variables.
        prefix: What the names of the encoder begin with, save in folders of the encoder alone.
        class_prefix: What the names of its classes begin with.
        decoder: Where it repeats the tied table and the bias of the masked language model.
        defaults: What its config leaves out.
    """

    naming: Naming
    prefix: str
    class_prefix: str
    decoder: str
    defaults: dict[str, typing.Any]


_SIZES = {"max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12}
FAMILIES = {
    "albert": Family(
        Naming(_ALBERT, _HEADS, _SPELLINGS, always_projects=True),
        "albert.",
        "Albert",
        "predictions.decoder.",
        {
            **_SIZES,
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
        },
    ),
    "bert": Family(
        Naming(_BERT, _HEADS, _SPELLINGS),
        "bert.",
        "Bert",
        "cls.predictions.decoder.",
        {
            **_SIZES,
            "vocab_size": 30522,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1,
            "attention_probs_dropout_prob": 0.1,
        },
    ),
}
# What is GELU there is another function here, and the other way round.
ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu",
    "gelu_fast": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}
THEIR_ACTIVATIONS = {"gelu": "gelu_new", "gelu_erf": "gelu"}
CLASSES = {
    "classify": "ForSequenceClassification",
    "score": "ForSequenceClassification",
    "tag": "ForTokenClassification",
    "squad": "ForQuestionAnswering",
    "race": "ForMultipleChoice",
}
