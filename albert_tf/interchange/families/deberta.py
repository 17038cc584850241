"""DeBERTa-v2 and v3: attention that knows how far apart two tokens are, and heads on a pooler of their own."""

from albert_tf.base.errors import InputError, shorten
from albert_tf.config import AlbertConfig
from albert_tf.interchange import foreign_config
from albert_tf.interchange.families.family import Family, Found, Names, Values, Variables
from albert_tf.interchange.tokenizers.unigram import DEBERTA
from albert_tf.interchange.variables import block_names

_TERMS = ("p2c", "c2p")
_HEADS = {"gelu": "dense_gelu", "tanh": "dense_tanh", "relu": "dense_relu"}
# Masked-LM heads are spelt in two ways, by `legacy` in the config; they compute the same.
_OTHER_HEAD = "lm_predictions.lm_head."
_IN_OTHER_HEAD = {
    f"{_OTHER_HEAD}dense.": "cls.predictions.transform.dense.",
    f"{_OTHER_HEAD}LayerNorm.": "cls.predictions.transform.LayerNorm.",
    f"{_OTHER_HEAD}bias": "cls.predictions.bias",
}


class DebertaV2(Family):
    """Embeddings are as wide as the layers, often without segments and positions; there is no pooler of BERT's."""

    class_prefix = "DebertaV2"
    prefix = "deberta."
    pretraining_heads = {
        layer: name for layer, name in Family.pretraining_heads.items() if layer.startswith("masked_lm_head/")
    }
    text_head = choice_head = {"head/transform": "pooler.dense", "head/dense": "classifier"}
    defaults = {
        **Family.defaults,
        "vocab_size": 128100,
        "hidden_size": 1536,
        "num_hidden_layers": 24,
        "num_attention_heads": 24,
        "intermediate_size": 6144,
        "type_vocab_size": 0,
        "layer_norm_eps": 1e-7,
        "classifier_dropout_prob": 0.1,
        "classification_head": "dense_gelu",
        "relative_attention": "none",
        "position_buckets": 0,
        "max_relative_positions": 0,
        "share_att_key": False,
        "norm_rel_ebd": "none",
        "position_biased_input": True,
    }
    fixed = {"pooler": False}
    config_names = {
        "classifier_dropout_prob": "cls_dropout",
        "classification_head": "pooler_hidden_act",
        "relative_attention": "pos_att_type",
    }
    only_values = {"conv_kernel_size": (0,)}
    obeyed = ("relative_attention", "embedding_size", "pooler_hidden_size", "attention_head_size", "legacy")
    without_effect = {
        "pooler_dropout": "of training",
        **dict.fromkeys(("conv_act", "conv_groups"), "of a convolution, which is refused"),
    }
    sentencepiece = DEBERTA

    def encoder_names(self) -> Names:
        names, layer = super().encoder_names(), "deberta.encoder.layer.{n}."
        del names["encoder/pooler"]
        return {
            **names,
            **block_names(
                layer,
                *("attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj"),
                *("attention.output.dense", "attention.output.LayerNorm"),
                *("intermediate.dense", "output.dense", "output.LayerNorm"),
            ),
            "encoder/relative_embeddings/table": "deberta.encoder.rel_embeddings",
            "encoder/relative_embeddings/layer_norm": "deberta.encoder.LayerNorm",
            "encoder/attention_layers/{n}/distances/query": f"{layer}attention.self.pos_query_proj",
            "encoder/attention_layers/{n}/distances/key": f"{layer}attention.self.pos_key_proj",
        }

    def read_config(self, values: Values, found: Found, source: str) -> Values:
        head = values.get("pooler_hidden_act", "gelu")
        if not isinstance(head, str) or head not in _HEADS:
            raise InputError(f"{source}: pooler_hidden_act={shorten(head)} can't be converted; {', '.join(_HEADS)} can")
        dropout, norms = values.get("cls_dropout"), values.get("norm_rel_ebd")
        in_our_words = {
            "pooler_hidden_act": _HEADS[head],
            "cls_dropout": values.get("hidden_dropout_prob", 0.1) if dropout is None else dropout,
            "pos_att_type": _read_terms(values, source),
            **{name: _or_none(values.get(name, -1)) for name in ("position_buckets", "max_relative_positions")},
        }
        if isinstance(norms, str):
            names = [name.strip() for name in norms.lower().split("|")]
            in_our_words["norm_rel_ebd"] = "layer_norm" if "layer_norm" in names else "none"
        fields = super().read_config({**values, **in_our_words}, found, source)
        config = foreign_config.make_config(fields, source)
        for name, size in (
            ("embedding_size", config.hidden_size),
            ("pooler_hidden_size", config.hidden_size),
            ("attention_head_size", config.hidden_size // config.num_attention_heads),
        ):
            if values.get(name) not in (None, size):
                raise InputError(
                    f"{source}: {name}={shorten(values[name])} can't be converted: in models of model_type={self.name} "
                    f"that albert_tf computes it is {size}, as hidden_size and num_attention_heads say"
                )
        return fields

    def write_config(self, config: AlbertConfig, common: Values) -> Values:
        values = super().write_config(config, common)
        activations = {ours: theirs for theirs, ours in _HEADS.items()}
        has_distances = config.relative_attention != "none"
        return {
            **values,
            "pooler_hidden_act": activations[config.classification_head],
            "relative_attention": has_distances,
            "pos_att_type": config.relative_attention if has_distances else None,
            "position_buckets": config.position_buckets or -1,
            "max_relative_positions": config.max_relative_positions or -1,
        }

    def computes(self, config: AlbertConfig) -> Values:
        is_known = config.classification_head in _HEADS.values()
        return {
            **super().computes(config),
            "type_vocab_size": config.type_vocab_size,
            "relative_attention": config.relative_attention,
            "classification_head": config.classification_head if is_known else self.defaults["classification_head"],
        }

    def read_weights(self, found: Variables, source: str) -> tuple[Variables, list[str]]:
        if not any(name.startswith("cls.predictions.") for name in found):
            found = {_in_first_spelling(name): weight for name, weight in found.items()}
        return super().read_weights(found, source)

    def check_network(self, values: Values, found: Variables, config_file: str, source: str) -> list[str]:
        if values.get("legacy") is False and any(name.startswith(_OTHER_HEAD) for name in found):
            raise InputError(
                f"{source} holds two heads of a masked language model, {_OTHER_HEAD}* and cls.predictions.*, and "
                f"legacy=false in {config_file} asks for the former; remove the latter"
            )
        return []


def _read_terms(values, source):
    """Returns `relative_attention` of our config."""
    given, has_distances = values.get("pos_att_type"), values.get("relative_attention", False)
    terms = [term.strip() for term in given.lower().split("|")] if isinstance(given, str) else given or []
    is_known = isinstance(terms, list) and all(term in _TERMS for term in terms)
    if not is_known or bool(has_distances) != bool(terms):
        raise InputError(
            f"{source}: pos_att_type={shorten(given)} and relative_attention={shorten(has_distances)} can't be "
            f"converted; true with {' or '.join(_TERMS)} or both, and false with none can"
        )
    return "|".join(term for term in _TERMS if term in terms) or "none"


def _or_none(size):
    """Returns a size, 0 for any of theirs below 1, which stand for none."""
    return 0 if type(size) is int and size < 1 else size


def _in_first_spelling(name):
    """Returns a variable's name where `legacy` is true."""
    start = next((start for start in _IN_OTHER_HEAD if name.startswith(start)), "")
    return f"{_IN_OTHER_HEAD[start]}{name.removeprefix(start)}" if start else name
