"""The configs of other libraries' models: how they differ from ours, and which of our fields they can't express."""

import os
import types
import typing

from albert_tf.base.errors import InputError, shorten
from albert_tf.base.files import gfile_for, read_json
from albert_tf.config import AlbertConfig
from albert_tf.interchange.portable_model import Caveat, PortableModel

# Keys of published configs that name something that we don't compute, and the values that ask for nothing of it.
_ONLY_VALUES = {
    "down_scale_factor": (1,),
    "net_structure_type": (0,),
    "gap_size": (0,),
    "num_memory_blocks": (0,),
    "layers_to_keep": ([],),
    "ln_type": ("postln",),
    "directionality": ("bidi",),
    "pooler_type": ("first_token_transform",),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "quantization_config": (None,),
    "add_cross_attention": (False,),
    "pruned_heads": ({},),
    "summary_activation": ("gelu",),
    "summary_type": ("first",),
    "summary_use_proj": (True,),
}
_OF_TRAINING = "of training, and of the weights that it begins with"
_OF_CALLS = "what a call returns, or how fast; not which numbers"
_ORIGIN = "who wrote it"
_OF_OTHER_POOLERS = "of another pooler_type, which is refused"
_OF_GENERATE = "generate has arguments of its own"
_UNREAD_HEAD = "of heads that are not read"
# Keys of any config.json that change nothing here, and why.
WITHOUT_EFFECT = {
    **dict.fromkeys(("initializer_range", "dropout", "classifier_dropout"), _OF_TRAINING),
    **dict.fromkeys(("summary_last_dropout", "summary_first_dropout"), _OF_TRAINING),
    **dict.fromkeys(("output_attentions", "output_hidden_states", "return_dict", "use_cache"), _OF_CALLS),
    **dict.fromkeys(("chunk_size_feed_forward", "gradient_checkpointing"), _OF_CALLS),
    **dict.fromkeys(("dtype", "torch_dtype"), "weights have their type, and are computed with in float32"),
    **dict.fromkeys(("transformers_version", "_name_or_path", "finetuning_task", "_attn_implementation"), _ORIGIN),
    **dict.fromkeys(("output_past", "torchscript", "use_bfloat16", "tie_weights_"), "of earlier versions"),
    **dict.fromkeys(("pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"), _OF_OTHER_POOLERS),
    "pooler_size_per_head": _OF_OTHER_POOLERS,
    **dict.fromkeys(("label2id", "num_labels"), "id2label says it"),
    **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "mask_token_id"), "the tokenizer has its ids"),
    "tie_word_embeddings": "a table that differs from that of embeddings is refused",
    "summary_proj_to_labels": _UNREAD_HEAD,
    **dict.fromkeys(("summary_type", "summary_use_proj", "summary_activation"), f"{_UNREAD_HEAD}, or refused"),
    **dict.fromkeys(("max_length", "do_sample", "num_beams", "top_k", "top_p", "temperature"), _OF_GENERATE),
    "task_specific_params": _OF_GENERATE,
}
# Keys of all families that are obeyed, and of their heads.
_OBEYED = (
    *("architectures", "model_type", "tokenizer_class", "problem_type", "id2label", "sentence_transformers"),
    *("sbert_ce_default_activation_function", "albert_tf_settings"),
)
# Keys of generation_config.json that change nothing here; what else it says is told of models that generate.
_NOT_OF_CHOICES = (
    *("transformers_version", "_from_model_config", "pad_token_id", "bos_token_id", "eos_token_id", "use_cache"),
    *("output_attentions", "output_hidden_states", "output_scores", "output_logits", "return_dict_in_generate"),
    *("cache_implementation", "cache_config", "compile_config", "disable_compile", "low_memory", "prefill_chunk_size"),
)
DEFAULTS = AlbertConfig(vocab_size=1)
# Fields of ours in which families of encoders differ.
_DIFFER_BY_FAMILY = (
    *("model_type", "position_offset", "pooler", "classification_head", "norm_position", "language_model_head"),
    *("num_languages", "relative_attention"),
)
# Fields of ours that other libraries have no name for. They read over them, and we find them again.
OWN_FIELDS = (
    "position_initializer",
    "attention_initializer",
    "classifier_pooling",
    "question_alignment",
    "character_ngrams",
)


def make_config(values: dict[str, typing.Any], source: str) -> AlbertConfig:
    """Returns a config of ours; errors begin with `source`, the file of theirs."""
    try:
        return AlbertConfig.from_dict(values)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def check_computed(
    values: dict[str, typing.Any], source: str, of_family: typing.Mapping[str, tuple] = types.MappingProxyType({})
) -> dict[str, typing.Any]:
    """Checks that a config asks for nothing that our models don't compute; returns it without the checked keys."""
    # `of_family` adds keys that not all families have, as `_ONLY_VALUES` does those of all.
    only_values = {**_ONLY_VALUES, **of_family}
    for name, known in only_values.items():
        if values.get(name, known[0]) not in (*known, None):
            raise InputError(
                f"{source}: {name}={shorten(values[name])} is not supported: models of albert_tf compute only {name}="
                f"{known[0]}; this model can't be converted"
            )
    return {name: value for name, value in values.items() if name not in only_values}


def unknown_keys(values: dict[str, typing.Any], of_family: typing.Iterable[str]) -> list[str]:
    """Returns the keys of a config that are neither obeyed, nor refused, nor known to change nothing."""
    known = {*_ONLY_VALUES, *WITHOUT_EFFECT, *_OBEYED, *OWN_FIELDS, *of_family}
    return sorted(name for name, value in values.items() if name not in known and value not in (None, False))


def of_generation(folder: str, config: AlbertConfig) -> list[Caveat]:
    """Returns a caveat if a model generates and generation_config.json says how, which is not obeyed."""
    path = os.path.join(folder, "generation_config.json")
    if not config.is_causal or not gfile_for(folder).exists(path):
        return []
    values = read_json(path, "the settings of generation")
    said = [name for name, value in values.items() if name not in _NOT_OF_CHOICES and value not in (None, False)]
    given = ", ".join(f"{name}={shorten(values[name])}" for name in sorted(said))
    return [Caveat(f"{path} is not obeyed; pass what is meant to generate: {given}")] if said else []


def own_fields(config: AlbertConfig) -> dict[str, typing.Any]:
    """Returns the fields that other libraries have no name for, where they differ from their defaults."""
    return {name: getattr(config, name) for name in OWN_FIELDS if getattr(config, name) != getattr(DEFAULTS, name)}


def is_bert(config: AlbertConfig) -> bool:
    """Whether a model is a BERT: each layer has weights of its own, and embeddings are as wide as the layers."""
    return config.sharing == "none" and config.embedding_size == config.hidden_size and config.inner_group_num == 1


def with_groups(config: AlbertConfig, target: str) -> AlbertConfig:
    """Returns the config of the same model with sharing told by num_hidden_groups alone, as in ALBERT's formats."""
    if config.sharing == "none":
        return config.replace(sharing="all", num_hidden_groups=config.num_hidden_layers)
    if config.sharing != "all":
        raise InputError(
            f"`to={target}` can't express sharing={config.sharing}; only models of sharing=all or none can be converted"
        )
    return config


def check_architecture(
    config: AlbertConfig, target: str, computes: typing.Mapping[str, typing.Any] = types.MappingProxyType({})
) -> None:
    """Checks that a format computes a model; `computes` holds its values that aren't our defaults."""
    wanted = {name: getattr(DEFAULTS, name) for name in _DIFFER_BY_FAMILY} | dict(computes)
    if not config.type_vocab_size and "type_vocab_size" not in wanted:
        raise InputError(
            f"`to={target}` can't express type_vocab_size=0 of model_type={config.model_type}: its models have segments"
        )
    for name, value in wanted.items():
        if getattr(config, name) != value:
            raise InputError(
                f"`to={target}` can't express {name}={getattr(config, name)} of a model of "
                f"model_type={config.model_type}: its models have {name}={value}"
            )


def check_head(model: PortableModel, target: str) -> None:
    """Checks that the task of a head is known, and that other libraries compute such heads."""
    if not model.has_head:
        return
    if model.task is None:
        raise InputError("`input_path` does not say what its head is for; set `task` to say so")
    found = model.task.kind.head.not_computed_elsewhere(model.config)
    if found is not None:
        what, how = found
        raise InputError(f"`to={target}` can't express {what}; fine-tune with {how} to convert the head")
