"""The names of the variables of ALBERT, BERT and ELECTRA's two networks in Google's code."""

from albert_tf.finetuning.kinds import OF_CONDITIONAL_SPAN, OF_OPTION, OF_SPAN, OF_TEXT
from albert_tf.interchange.families import family_named
from albert_tf.interchange.variables import Naming, Spelling, block_names, plain_spellings


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
