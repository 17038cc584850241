"""XLM, whose config has words of its own for the activation and for the number of languages with embeddings."""

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.interchange.families.family import Family, Found, Names, Values
from albert_tf.interchange.portable_model import PortableModel
from albert_tf.interchange.variables import block_names

_WIDTH = 4  # how many times as wide as the layers its feed-forward networks are


class Xlm(Family):
    """XLM without the heads of fine-tuned models, which differ from ours."""

    class_prefix = "XLM"
    prefix = "transformer."
    blocks = "attentions."
    decoder = "pred_layer.proj."
    pretraining_heads = {"masked_lm_head/output_bias": "pred_layer.proj.bias"}
    text_head = choice_head = piece_head = span_head = None
    can_be_causal = True
    defaults = {
        **Family.defaults,
        "vocab_size": 30145,
        "hidden_size": 2048,
        "num_attention_heads": 16,
        "is_causal": False,
        "num_languages": 0,
    }
    config_names = {
        "hidden_size": "emb_dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
        "initializer_range": "init_std",
    }
    fixed = {"pooler": False, "type_vocab_size": 0, "language_model_head": "tied_bias"}
    only_values = {"asm": (False,), "is_encoder": (True,)}
    obeyed = ("gelu_activation", "causal", "n_langs", "use_lang_emb")
    without_effect = {
        "embed_init_std": "of the weights that a training begins with",
        "sinusoidal_embeddings": "positions lie in the weights",
        "lang_id": "read by transformers' generate alone",
        **dict.fromkeys(
            ("unk_index", "mask_index", "pad_index", "bos_index", "eos_index"), "the tokenizer has its ids"
        ),
        **dict.fromkeys(("start_n_top", "end_n_top"), "of heads that are not read"),
    }
    usual_tokenizer = "BPE"  # on text without capitals and accents, whose Hangul is taken apart with them

    def encoder_names(self) -> Names:
        return {
            "encoder/embeddings/word_embeddings": "transformer.embeddings",
            "encoder/embeddings/position_embeddings": "transformer.position_embeddings",
            "encoder/embeddings/language_embeddings": "transformer.lang_embeddings",
            "encoder/embeddings/layer_norm": "transformer.layer_norm_emb",
            **block_names(
                "transformer.",
                *("attentions.{n}.q_lin", "attentions.{n}.k_lin", "attentions.{n}.v_lin", "attentions.{n}.out_lin"),
                *("layer_norm1.{n}", "ffns.{n}.lin1", "ffns.{n}.lin2", "layer_norm2.{n}"),
            ),
        }

    def read_config(self, values: Values, found: Found, source: str) -> Values:
        languages, hidden_size = values.get("n_langs", 1), values.get("emb_dim", 2048)
        has_embeddings = values.get("use_lang_emb", True) and isinstance(languages, int) and languages > 1
        in_our_words = {
            "hidden_act": "gelu" if values.get("gelu_activation", True) else "relu",
            "is_causal": values.get("causal", False),
            "num_languages": languages if has_embeddings else 0,
            "intermediate_size": _WIDTH * hidden_size if isinstance(hidden_size, int) else hidden_size,
        }
        return super().read_config({**values, **in_our_words}, found, source)

    def write_config(self, config: AlbertConfig, common: Values) -> Values:
        ours = ("hidden_act", "is_causal", "num_languages", "intermediate_size", "classifier_dropout")
        values = super().write_config(config, common)
        return {
            **{name: value for name, value in values.items() if name not in ours},
            "gelu_activation": config.hidden_act == "gelu_erf",
            "causal": config.is_causal,
            "n_langs": max(1, config.num_languages),
            "use_lang_emb": config.num_languages > 0,
            "sinusoidal_embeddings": False,
            "asm": False,
            "embed_init_std": config.initializer_range,
        }

    def computes(self, config: AlbertConfig) -> Values:
        widths = {"intermediate_size": _WIDTH * config.hidden_size}
        return {**super().computes(config), **widths, "num_languages": config.num_languages}

    def config_to_write(self, model: PortableModel) -> AlbertConfig:
        config = super().config_to_write(model)
        for name, is_known, theirs in (
            ("num_languages", config.num_languages != 1, "none of one language"),
            ("hidden_act", config.hidden_act in ("gelu_erf", "relu"), "gelu_erf or relu"),
        ):
            if not is_known:
                raise InputError(
                    f"`to=huggingface` can't express {name}={getattr(config, name)} of model_type={self.name}: its "
                    f"models have {theirs}"
                )
        if model.has_head:
            raise InputError(
                f"`to=huggingface` can't express the head of a model of model_type={self.name}; convert a model without"
            )
        return config

    def class_name(self, model: PortableModel) -> str:
        return "WithLMHeadModel" if model.has("masked_lm_head") else "Model"
