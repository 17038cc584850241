"""Refuses models that need to know more of a text than an objective tells them."""

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError


def check_languages(config: AlbertConfig, languages: tuple[str, ...]) -> None:
    """Raises InputError if a model has language embeddings, but not as many as the data have languages."""
    if config.num_languages and config.num_languages != len(languages):
        told = (
            f"are in {len(languages)} languages ({', '.join(languages)})" if languages else "don't say their language"
        )
        raise InputError(
            f"the model has embeddings of {config.num_languages} languages (num_languages), and the data {told}; name "
            "as many with create_pretraining_data.py --languages, or change `albert_config_file`"
        )


def refuse_languages(config: AlbertConfig, objective: str) -> None:
    """Raises InputError if a model has language embeddings, which an objective doesn't use."""
    if config.num_languages:
        raise InputError(
            f"{objective} doesn't tell its models what language a text is in (num_languages={config.num_languages}); "
            "set num_languages to 0 in `albert_config_file`, or use `objective=roberta`"
        )


def refuse_entities(config: AlbertConfig, objective: str, whose: str = "this model") -> None:
    """Raises InputError if a model knows entities, whose names can't be found in an objective's inputs."""
    if config.num_entities:
        raise InputError(
            f"`objective={objective}` doesn't find the entities that {whose} knows (num_entities="
            f"{config.num_entities}); use a model without entities, or `objective=entities`"
        )


def refuse_causal(config: AlbertConfig, learner: str) -> None:
    """Raises InputError if tokens see only those before them, where masked ones are to be filled in."""
    if config.is_causal:
        raise InputError(
            f"{learner} fills in masked pieces from both sides, and in this model pieces see only what comes before "
            "them (is_causal=true); use `objective=causal`, or set is_causal to false in `albert_config_file`"
        )
