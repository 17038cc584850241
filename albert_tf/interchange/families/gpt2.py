"""GPT-2 with BERT's WordPieces, as some Korean and Chinese ones have them; its own byte-level BPE is none of ours.

Its layers hold query, key and value as one matrix, the columns of one after those of the other.
"""

import numpy as np

from albert_tf.base.errors import InputError, shorten
from albert_tf.config import AlbertConfig
from albert_tf.interchange.families.family import Family, Found, Names, Values, Variables
from albert_tf.interchange.portable_model import PortableModel, Weight
from albert_tf.interchange.variables import Spelling, block_names, plain_spellings

_FUSED, _PARTS = ".attn.c_attn", ("query", "key", "value")


class Gpt2(Family):
    """A decoder without segments, pooler and layers in its language model's head."""

    class_prefix = "GPT2"
    prefix = "transformer."
    blocks = "h."
    decoder = "lm_head."
    buffers = (".attn.bias", ".attn.masked_bias")
    # Its own layers hold matrices as ours do (Conv1D); heads are PyTorch's.
    spellings = plain_spellings(
        table=Family.spellings["table"],
        norm=Family.spellings["norm"],
        linear=(Spelling(".weight"), Spelling(".bias")),
        output=Family.spellings["linear"],
    )
    pretraining_heads = {}
    text_head = choice_head = None
    can_be_causal = True
    defaults = {
        **Family.defaults,
        "vocab_size": 50257,
        "max_position_embeddings": 1024,
        "layer_norm_eps": 1e-5,
        "hidden_act": "gelu_new",
    }
    config_names = {
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "intermediate_size": "n_inner",
        "max_position_embeddings": "n_positions",
        "hidden_act": "activation_function",
        "hidden_dropout_prob": "resid_pdrop",
        "attention_probs_dropout_prob": "attn_pdrop",
        "layer_norm_eps": "layer_norm_epsilon",
    }
    fixed = {
        "pooler": False,
        "type_vocab_size": 0,
        "is_causal": True,
        "norm_position": "pre",
        "language_model_head": "tied",
    }
    only_values = {"scale_attn_weights": (True,), "scale_attn_by_inverse_layer_idx": (False,)}
    obeyed = ("embd_pdrop",)
    without_effect = {"n_ctx": "n_positions says it", "reorder_and_upcast_attn": "for float16"}
    usual_tokenizer = "byte-level BPE"

    def encoder_names(self) -> Names:
        return {
            "encoder/embeddings/word_embeddings": "transformer.wte",
            "encoder/embeddings/position_embeddings": "transformer.wpe",
            **block_names(
                "transformer.h.{n}.",
                *("attn.c_attn.query", "attn.c_attn.key", "attn.c_attn.value"),  # as `read_weights` cuts them
                *("attn.c_proj", "ln_1", "mlp.c_fc", "mlp.c_proj", "ln_2"),
            ),
            "encoder/last_layer_norm": "transformer.ln_f",
        }

    def read_config(self, values: Values, found: Found, source: str) -> Values:
        rates = values.get("embd_pdrop", 0.1), values.get("resid_pdrop", 0.1)
        if rates[0] != rates[1]:
            raise InputError(
                f"{source}: embd_pdrop={shorten(rates[0])} and resid_pdrop={shorten(rates[1])} must be equal here"
            )
        values = {name: value for name, value in values.items() if not name.startswith("summary_")}  # of other heads
        if values.get("n_inner") is None and isinstance(values.get("n_embd", 768), int):
            values["n_inner"] = 4 * values.get("n_embd", 768)
        return super().read_config(values, found, source)

    def write_config(self, config: AlbertConfig, common: Values) -> Values:
        return super().write_config(config, {**common, "embd_pdrop": config.hidden_dropout_prob})

    def computes(self, config: AlbertConfig) -> Values:
        return {**super().computes(config), "pooler": config.pooler}  # left by `write_weights`

    def read_weights(self, found: Variables, source: str) -> tuple[Variables, list[str]]:
        found, buffers = super().read_weights(found, source)
        split = {}
        for name, weight in found.items():
            layer, _, kind = name.rpartition(".")
            if layer.endswith(_FUSED) and weight.shape and weight.shape[-1] % len(_PARTS) == 0:
                split |= {f"{layer}.{part}.{kind}": _columns(weight, number) for number, part in enumerate(_PARTS)}
            else:
                split[name] = weight
        return split, buffers

    def write_weights(self, model: PortableModel, class_name: str) -> tuple[Variables, list[str]]:
        weights, notes = super().write_weights(model, class_name)
        joined = {}
        for name, weight in weights.items():
            layer, _, rest = name.partition(f"{_FUSED}.")
            part, _, kind = rest.partition(".")
            if not rest:
                joined[name] = weight
            elif part == _PARTS[0]:
                parts = [weights[f"{layer}{_FUSED}.{each}.{kind}"] for each in _PARTS]
                joined[f"{layer}{_FUSED}.{kind}"] = _side_by_side(parts)
        return joined, notes


def _columns(weight, number):
    size = weight.shape[-1] // len(_PARTS)
    return Weight((*weight.shape[:-1], size), lambda: weight.read()[..., number * size : (number + 1) * size])


def _side_by_side(parts):
    shape = (*parts[0].shape[:-1], len(parts) * parts[0].shape[-1])
    return Weight(shape, lambda: np.concatenate([part.read() for part in parts], axis=-1))
