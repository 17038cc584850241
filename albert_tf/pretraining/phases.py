"""A pre-training run's phases, made from sets of shards."""

import collections.abc
import functools
import types
import typing

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.mentions.known_entities import KnownEntities
from albert_tf.objectives import Objective, make_objective
from albert_tf.objectives.objective import with_batch_size
from albert_tf.pretraining_data.input_pipeline import eval_dataset, train_dataset
from albert_tf.pretraining_data.languages import all_languages, languages_of, sampling_shares
from albert_tf.pretraining_data.mixture import Mixture
from albert_tf.pretraining_data.shards import ShardSet
from albert_tf.training import Phase, RunSettings


def objective_of(
    config: AlbertConfig,
    shards: ShardSet,
    name: str | None = None,
    settings: collections.abc.Mapping[str, typing.Any] = types.MappingProxyType({}),
    entities: KnownEntities | None = None,
) -> Objective:
    """Returns what is to be learnt from the examples in shards.

    Args:
        config: Of the model.
        shards: The examples.
        name: Of the objective; None for the one that the builder was told.
        settings: The objective's own, by name.
        entities: Those that the model knows, if any.

    Raises:
        InputError: There is no such objective, or it doesn't take these examples or a setting.
    """
    languages = all_languages(shards.sources)
    return make_objective(
        name or shards.objective, config, shards.packing, settings, shards.masking, languages, entities
    )


def make_phase(
    objective: Objective,
    shards: ShardSet,
    settings: RunSettings,
    end_step: int | None = None,
    gradient_accumulation_steps: int | None = None,
    evaluates: bool = True,
    hosts_read_apart: bool = False,
    mixture: Mixture | None = None,
) -> Phase:
    """Returns the training on a set of shards.

    Args:
        objective: What is learnt.
        shards: What to train on.
        settings: Of the run.
        end_step: Step of the run that the phase ends at; None for the run's last.
        gradient_accumulation_steps: Parts of a replica's batch; None for those of the settings.
        evaluates: Whether to evaluate on the held-out shards, if there are any.
        hosts_read_apart: Whether each of several hosts reads its own shards, and not all.
        mixture: How often each language is drawn; None where the shards are of one.
    """
    batch_size, options, counts = settings.train_batch_size, shards.train_options, shards.examples_per_shard
    records = shards.train_paths, options, objective.prepare, batch_size, settings.random_seed
    return Phase(
        end_step or settings.num_train_steps,
        with_batch_size(objective.batch_spec(options.max_seq_length), batch_size),
        functools.partial(train_dataset, *records, examples_per_shard=counts, mixture=mixture),
        make_held_out_dataset(objective, shards, settings) if evaluates and shards.held_out_paths else None,
        gradient_accumulation_steps or settings.gradient_accumulation_steps,
        hosts_read_apart,
        counts and sum(counts),
    )


def language_mixture(shards: ShardSet, exponent: float, is_one_a_batch: bool = False) -> Mixture | None:
    """Returns how shards of several languages are drawn; None for one language, or where none is named.

    Texts in one language, and tables of pairs, have their turns: a step of the one, then a step of the other. Among
    either, sizes are counted in pieces (XLM; Conneau and Lample 2019, section 3.1).

    Args:
        shards: The shards.
        exponent: Power of each language's share of the text, from 0 (all alike) to 1 (by amount of text).
        is_one_a_batch: Whether a batch is in one language, or of one table of pairs.

    Raises:
        InputError: The exponent is not from 0 to 1, or there are no shards in a language that the manifest lists.
    """
    names = shards.sources
    if len(names) < 2:
        return None
    sources = tuple(shards.sources_of_shards)
    missing = [name for number, name in enumerate(names) if number not in sources]
    if missing:
        raise InputError(
            f"`input_file` names no shards in the language {missing[0]}, but the manifest lists some; name them all"
        )
    tasks = [[n for n, name in enumerate(names) if len(languages_of(name)) == number] for number in (1, 2)]
    turns = tuple(tuple(task) for task in tasks if task)
    sizes, shares = shards.tokens_of_sources, dict.fromkeys(range(len(names)), 0.0)
    for turn in turns:
        shares |= zip(turn, sampling_shares([sizes[source] for source in turn], exponent))
    return Mixture(sources, tuple(shares.values()), turns, is_one_a_batch)


def describe_mixture(shards: ShardSet, mixture: Mixture) -> str:
    """Returns a line that says of each language how much there is of it, and how often it is drawn."""
    sizes = shards.tokens_of_sources
    parts = [
        f"{name} {size / sum(sizes):.1%} of the pieces, {frequency:.1%} of the examples drawn"
        for name, size, frequency in zip(shards.sources, sizes, mixture.frequencies)
    ]
    turns = ", texts and pairs step by step in turns" if len(mixture.turns) > 1 else ""
    return f"languages{turns}: {'; '.join(parts)}"


def make_held_out_dataset(
    objective: Objective, shards: ShardSet, settings: RunSettings
) -> collections.abc.Callable[[], tf.data.Dataset]:
    """Returns a function that returns the held-out batches."""
    records = shards.held_out_paths, shards.held_out_options
    return functools.partial(eval_dataset, *records, objective.prepare, settings.eval_batch_size)
