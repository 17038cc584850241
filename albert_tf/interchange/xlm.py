"""What XLM of transformers says otherwise than the families of BERT.

Its config says in words of its own whether pieces see what comes after them, how many languages there are embeddings
of, and what the activation is; the feed-forward network is always four times as wide as the layers. Its tokenizer, BPE
on text that was lower-cased and lost its accents (which takes Hangul apart), is none of ours.
"""

import typing

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError, shorten

# Keys that ask for what our models don't compute, and the values that ask for nothing of it.
_ONLY_VALUES = {"asm": False, "is_encoder": True}
_WIDTH = 4


def known_settings(values: dict[str, typing.Any], source: str) -> dict[str, typing.Any]:
    """Returns a config with what it says in other words than we do said in ours."""
    for name, known in _ONLY_VALUES.items():
        if values.get(name, known) != known:
            raise InputError(
                f"{source}: {name}={shorten(values[name])} is not supported: models of albert_tf compute only {name}="
                f"{known}; this model can't be converted"
            )
    languages, hidden_size = values.get("n_langs", 1), values.get("emb_dim", 2048)
    has_embeddings = values.get("use_lang_emb", True) and isinstance(languages, int) and languages > 1
    return {
        **values,
        "hidden_act": "gelu" if values.get("gelu_activation", True) else "relu",
        "is_causal": values.get("causal", False),
        "num_languages": languages if has_embeddings else 0,
        "intermediate_size": _WIDTH * hidden_size if isinstance(hidden_size, int) else hidden_size,
    }


def their_settings(values: dict[str, typing.Any], config: AlbertConfig) -> dict[str, typing.Any]:
    """Returns their config of a model with what we say in other words in theirs; the inverse of `known_settings`."""
    ours = ("hidden_act", "is_causal", "num_languages", "intermediate_size", "classifier_dropout")
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


def check_representable(config: AlbertConfig, has_head: bool) -> None:
    """Raises InputError if XLM's classes don't compute a model."""
    width = _WIDTH * config.hidden_size
    for name, value, is_known, theirs in (
        ("intermediate_size", config.intermediate_size, config.intermediate_size == width, f"four times {width // 4}"),
        ("num_languages", config.num_languages, config.num_languages != 1, "none of one language"),
        ("hidden_act", config.hidden_act, config.hidden_act in ("gelu_erf", "relu"), "gelu_erf or relu"),
        ("task", "of a head", not has_head, "those of transformers' XLM, which has others; convert it without"),
    ):
        if not is_known:
            raise InputError(
                f"`to=huggingface` can't express {name}={value} of model_type=xlm: its models have {theirs}"
            )
