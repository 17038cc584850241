"""What Hugging Face's transformers calls the variables, activations and classes of the encoders that ours can be."""

import types
import typing

from albert_tf.finetuning.kinds import OF_OPTION, OF_PIECE, OF_SPAN, OF_TEXT, Head
from albert_tf.interchange.variables import Naming, Spelling, block_names, plain_spellings


def _embeddings(prefix: str) -> dict[str, str]:
    """Returns the names of the embeddings of BERT and of what was made after it."""
    names = ("word_embeddings", "token_type_embeddings", "position_embeddings")
    return {
        **{f"encoder/embeddings/{name}": f"{prefix}.embeddings.{name}" for name in names},
        "encoder/embeddings/layer_norm": f"{prefix}.embeddings.LayerNorm",
    }


def _masked_lm_head(transform: str, layer_norm: str, bias: str) -> dict[str, str]:
    names = {"transform": transform, "layer_norm": layer_norm, "output_bias": bias}
    return {f"masked_lm_head/{layer}": name for layer, name in names.items()}


def _names_of_bert(prefix: str) -> dict[str, str]:
    """Returns the names of an encoder whose classes were made after BERT's."""
    return {
        **_embeddings(prefix),
        **block_names(
            f"{prefix}.encoder.layer.{{n}}.",
            *("attention.self.query", "attention.self.key", "attention.self.value"),
            *("attention.output.dense", "attention.output.LayerNorm"),
            *("intermediate.dense", "output.dense", "output.LayerNorm"),
        ),
        "encoder/pooler": f"{prefix}.pooler.dense",
    }


_ALBERT = {
    **_embeddings("albert"),
    "encoder/embedding_hidden_mapping_in": "albert.encoder.embedding_hidden_mapping_in",
    **block_names(
        "albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}.",
        *("attention.query", "attention.key", "attention.value", "attention.dense", "attention.LayerNorm"),
        *("ffn", "ffn_output", "full_layer_layer_norm"),
    ),
    "encoder/pooler": "albert.pooler",
    **_masked_lm_head("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
    "sentence_order_head/dense": "sop_classifier.classifier",
}
_BERT = {
    **_names_of_bert("bert"),
    **_masked_lm_head("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"),
    "sentence_order_head/dense": "cls.seq_relationship",
}
_ROBERTA = {
    **_names_of_bert("roberta"),
    **_masked_lm_head("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
}
_ELECTRA = {
    **_names_of_bert("electra"),
    "encoder/embedding_hidden_mapping_in": "electra.embeddings_project",
    "replaced_token_head/transform": "discriminator_predictions.dense",
    "replaced_token_head/dense": "discriminator_predictions.dense_prediction",
    **_masked_lm_head("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias"),
}
_DISTILBERT = {
    **{name: theirs for name, theirs in _embeddings("distilbert").items() if "token_type" not in name},
    **block_names(
        "distilbert.transformer.layer.{n}.",
        *("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm"),
        *("ffn.lin1", "ffn.lin2", "output_layer_norm"),
    ),
    **_masked_lm_head("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
}
_GPT2 = {
    "encoder/embeddings/word_embeddings": "transformer.wte",
    "encoder/embeddings/position_embeddings": "transformer.wpe",
    **block_names(
        "transformer.h.{n}.",
        # One variable there, see `gpt2.split_fused`.
        *("attn.c_attn.query", "attn.c_attn.key", "attn.c_attn.value"),
        *("attn.c_proj", "ln_1", "mlp.c_fc", "mlp.c_proj", "ln_2"),
    ),
    "encoder/last_layer_norm": "transformer.ln_f",
}
_XLM = {
    "encoder/embeddings/word_embeddings": "transformer.embeddings",
    "encoder/embeddings/position_embeddings": "transformer.position_embeddings",
    "encoder/embeddings/language_embeddings": "transformer.lang_embeddings",
    "encoder/embeddings/layer_norm": "transformer.layer_norm_emb",
    **block_names(
        "transformer.",
        *("attentions.{n}.q_lin", "attentions.{n}.k_lin", "attentions.{n}.v_lin", "attentions.{n}.out_lin"),
        *("layer_norm1.{n}", "ffns.{n}.lin1", "ffns.{n}.lin2", "layer_norm2.{n}"),
    ),
    "masked_lm_head/output_bias": "pred_layer.proj.bias",
}
_HEADS = {
    **{head: {"head/dense": "classifier"} for head in (OF_TEXT, OF_OPTION, OF_PIECE)},
    OF_SPAN: {"head/dense": "qa_outputs"},
}


def _heads(of_text: tuple[str, str], of_option: tuple[str, str]) -> dict[Head, dict[str, str]]:
    """Returns the heads of a family whose heads of whole texts have a layer of their own, and then that of outputs."""
    named = {OF_TEXT: of_text, OF_OPTION: of_option}
    return {**_HEADS, **{head: dict(zip(("head/transform", "head/dense"), names)) for head, names in named.items()}}


_OWN_LAYER = ("classifier.dense", "classifier.out_proj")
_ROBERTA_HEADS = _heads(_OWN_LAYER, ("roberta.pooler.dense", "classifier"))
_ELECTRA_HEADS = _heads(_OWN_LAYER, ("sequence_summary.summary", "classifier"))
_DISTILBERT_HEADS = _heads(("pre_classifier", "classifier"), ("pre_classifier", "classifier"))
_SPELLINGS = plain_spellings(
    table=(Spelling(".weight"),),
    linear=(Spelling(".weight", is_transposed=True), Spelling(".bias")),
    norm=(Spelling(".weight"), Spelling(".bias")),
)
# Its own layers hold matrices as ours do (Conv1D); heads are PyTorch's.
_SPELLINGS_OF_GPT2 = plain_spellings(
    table=_SPELLINGS["table"],
    norm=_SPELLINGS["norm"],
    linear=(Spelling(".weight"), Spelling(".bias")),
    output=_SPELLINGS["linear"],
)


class Family(typing.NamedTuple):
    """One of the library's families of models."""

    naming: Naming
    prefix: str  # what the names of all but the heads begin with, save in folders of the encoder alone
    class_prefix: str
    decoder: str  # where it repeats the tied table and the bias of the masked language model
    defaults: dict[str, typing.Any]  # what its config leaves out, by our names
    always: typing.Mapping[str, typing.Any] = types.MappingProxyType({})  # what our config says of all its models
    # What its config calls fields of ours, where it has other names; None for one that it lacks.
    config_names: typing.Mapping[str, str | None] = types.MappingProxyType({})

    @property
    def model_type(self) -> str:
        """What its config calls it."""
        return self.always.get("model_type", self.prefix.rstrip("."))

    @property
    def counts_positions_by_pad(self) -> bool:
        """Whether the first piece has the position after [PAD]'s id (see `AlbertConfig.position_offset`)."""
        return self.prefix == "roberta."

    @property
    def layers(self) -> str:
        """What the names of layers begin with."""
        return f"{self.prefix}{_LAYERS.get(self.model_type, 'encoder')}."

    @property
    def names_in_config(self) -> dict[str, str]:
        """The fields of our config that its config has, and what it calls them."""
        names = {ours: self.config_names.get(ours, ours) for ours in self.defaults}
        return {ours: theirs for ours, theirs in names.items() if theirs}


_LAYERS = {"distilbert": "transformer", "gpt2": "h", "xlm": "attentions"}
_UNSHARED = {"sharing": "none"}
_SIZES = {"max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12}
_BERT_SIZES = {
    **_SIZES,
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}
# See `xlm.known_settings`.
_SAID_OTHERWISE_BY_XLM = {"is_causal": False, "num_languages": 0}
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
        Naming(_BERT, _HEADS, _SPELLINGS), "bert.", "Bert", "cls.predictions.decoder.", _BERT_SIZES, _UNSHARED
    ),
    "roberta": Family(
        Naming(_ROBERTA, _ROBERTA_HEADS, _SPELLINGS),
        "roberta.",
        "Roberta",
        "lm_head.decoder.",
        {**_BERT_SIZES, "vocab_size": 50265},
        {**_UNSHARED, "model_type": "roberta", "classification_head": "dense_tanh"},
    ),
    "electra": Family(
        Naming(_ELECTRA, _ELECTRA_HEADS, _SPELLINGS),
        "electra.",
        "Electra",
        "generator_lm_head.",
        {
            **_BERT_SIZES,
            "embedding_size": 128,
            "hidden_size": 256,
            "num_attention_heads": 4,
            "intermediate_size": 1024,
        },
        {**_UNSHARED, "model_type": "electra", "pooler": False, "classification_head": "dense_gelu"},
    ),
    "distilbert": Family(
        Naming(_DISTILBERT, _DISTILBERT_HEADS, _SPELLINGS),
        "distilbert.",
        "DistilBert",
        "vocab_projector.",
        {**_BERT_SIZES, "num_hidden_layers": 6, "classifier_dropout_prob": 0.2},
        {
            **_UNSHARED,
            "model_type": "distilbert",
            "pooler": False,
            "type_vocab_size": 0,
            "layer_norm_eps": 1e-12,
            "classification_head": "dense_relu",
        },
        {
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
        },
    ),
    "gpt2": Family(
        Naming(_GPT2, {head: _HEADS[head] for head in (OF_PIECE, OF_SPAN)}, _SPELLINGS_OF_GPT2),
        "transformer.",
        "GPT2",
        "lm_head.",
        {
            **_BERT_SIZES,
            "vocab_size": 50257,
            "max_position_embeddings": 1024,
            "layer_norm_eps": 1e-5,
            "hidden_act": "gelu_new",
        },
        {
            **_UNSHARED,
            "model_type": "gpt2",
            "pooler": False,
            "type_vocab_size": 0,
            "is_causal": True,
            "norm_position": "pre",
            "language_model_head": "tied",
        },
        {
            "hidden_size": "n_embd",
            "num_hidden_layers": "n_layer",
            "num_attention_heads": "n_head",
            "intermediate_size": "n_inner",
            "max_position_embeddings": "n_positions",
            "hidden_act": "activation_function",
            "hidden_dropout_prob": "resid_pdrop",
            "attention_probs_dropout_prob": "attn_pdrop",
            "layer_norm_eps": "layer_norm_epsilon",
            "type_vocab_size": None,
        },
    ),
}
FAMILIES["xlm-roberta"] = FAMILIES["roberta"]._replace(
    class_prefix="XLMRoberta", always={**FAMILIES["roberta"].always, "model_type": "xlm-roberta"}
)
FAMILIES["xlm"] = Family(
    Naming(_XLM, {}, _SPELLINGS),
    "transformer.",
    "XLM",
    "pred_layer.proj.",
    {**_BERT_SIZES, "vocab_size": 30145, "hidden_size": 2048, "num_attention_heads": 16, **_SAID_OTHERWISE_BY_XLM},
    {
        **_UNSHARED,
        "model_type": "xlm",
        "pooler": False,
        "type_vocab_size": 0,
        "language_model_head": "tied_bias",
    },
    {
        "hidden_size": "emb_dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
        "initializer_range": "init_std",
        "type_vocab_size": None,
    },
)
# What is GELU there is another function here, and the other way round.
ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_python"), "gelu_erf"),
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu"),
    **{name: name for name in ("relu", "tanh", "linear")},
}
THEIR_ACTIVATIONS = {"gelu": "gelu_new", "gelu_erf": "gelu"}
