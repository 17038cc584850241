"""A pre-training run's phases, made from sets of shards."""

import collections.abc
import functools
import hashlib
import json
import os
import types
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.checkpoint_files import MODEL_PREFIX, CheckpointReader
from albert_tf.base.errors import InputError
from albert_tf.base.sequences import TrieSizes
from albert_tf.config import AlbertConfig
from albert_tf.modeling.entity_fusion import constants
from albert_tf.modeling.pretrained import find_checkpoint, read_config
from albert_tf.objectives import Objective, make_objective
from albert_tf.objectives.knowledge import ENTITY_VECTORS
from albert_tf.objectives.objective import with_batch_size
from albert_tf.pretraining_data.entities import (
    MAX_PIECES_OF_NAME,
    KnownEntities,
    config_with_entities,
    read_entity_vectors,
    read_known_entities,
)
from albert_tf.pretraining_data.input_pipeline import Mixture, eval_dataset, train_dataset
from albert_tf.pretraining_data.languages import all_languages, languages_of, sampling_shares
from albert_tf.pretraining_data.manifest import MANIFEST_FILE, manifest_identity, read_manifest
from albert_tf.pretraining_data.shards import ShardSet
from albert_tf.tokenization import Tokenizer
from albert_tf.training import Phase, RunSettings
from albert_tf.training.run_folder.guard import shard_identity


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
    records = shards.train_paths, options
    drawn = objective.prepare, batch_size, settings.random_seed
    return Phase(
        end_step or settings.num_train_steps,
        with_batch_size(objective.batch_spec(options.max_seq_length), batch_size),
        functools.partial(train_dataset, *records, *drawn, examples_per_shard=counts, mixture=mixture),
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
        raise InputError(f"`input_file` leaves out the shards in {missing[0]} that the manifest lists; name them all")
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


def data_settings(data: list[ShardSet], end_steps: list[int]) -> dict:
    """Returns the part of the data in a run's identity, which `TrainingRun.train` compares when it resumes."""
    return {
        "max_seq_length": data[0].train_options.max_seq_length,
        "phase2_start_step": end_steps[0] if len(data) > 1 else None,
        # Those left out as well, so that a run that comes upon a damaged shard can go on without it.
        "input_files": [
            sorted(os.path.basename(path) for path in [*shards.train_paths, *shards.damage]) for shards in data
        ],
        "data": [train_identity(shards) for shards in data],
    }


def train_identity(shards: ShardSet):
    """Returns the identity of training data: the hash of their manifest, or else the identity of each shard by name."""
    if shards.manifest:
        return manifest_identity(shards.manifest)
    paths = list(map(os.path.abspath, [*shards.train_paths, *shards.damage]))
    names = list(map(os.path.basename, paths))
    if len(set(names)) < len(names):  # then they lie in several folders
        names = [os.path.relpath(path, os.path.commonpath(paths)) for path in paths]
    return dict(zip(names, [*map(shard_identity, shards.train_paths), *(None for _ in shards.damage)]))


def held_out_identity(shards: ShardSet, settings: RunSettings) -> dict[str, str]:
    """Returns "name" and "sha256" of the held-out data; with fewer batches it is other data."""
    folders = {os.path.dirname(path) for path in shards.held_out_paths}
    digests = {}
    for folder in folders:
        split = read_manifest(os.path.join(folder, MANIFEST_FILE)).get("splits", {}).get("held_out", {})
        digests[folder] = dict(zip(split.get("files", []), split.get("sha256_per_shard", [])))
    parts = []
    for path in shards.held_out_paths:
        folder, name = os.path.split(path)
        parts.append(digests[folder].get(name) or shard_identity(path))
    options = shards.held_out_options
    parts += [options.max_seq_length, options.max_predictions_per_seq]
    if settings.max_eval_steps is not None:
        parts.append(settings.max_eval_steps * settings.eval_batch_size)
    name = os.path.basename(shards.held_out_paths[0])
    return {"name": name, "sha256": hashlib.sha256(json.dumps(parts).encode()).hexdigest()}


_USUAL_COLLISIONS = 6


def find_entities(folder: str, tokenizer: Tokenizer | None) -> KnownEntities:
    """Returns the entities of the folder that `entity_vectors` names, as the tokenizer of the data spells them."""
    source = f"`{ENTITY_VECTORS}={folder}`"
    if tokenizer is None:
        raise InputError(f"{source}: there is no tokenizer.json beside the shards to spell names; make them again")
    return read_known_entities(folder, tokenizer, source)


def config_for_plan(config: AlbertConfig, folder: str) -> AlbertConfig:
    """Returns the config of a model that is to know the entities of a folder, where there is no vocabulary yet."""
    entities, vectors = read_entity_vectors(folder, f"`{ENTITY_VECTORS}={folder}`")
    # A piece is a character at least, but for the space that SentencePiece sees before each name.
    lengths = [min(1 + len(name), MAX_PIECES_OF_NAME) for name in entities]
    sizes = TrieSizes(config.vocab_size, sum(lengths), _USUAL_COLLISIONS, max(lengths))
    return config_with_entities(config, vectors.shape, sizes)


def check_same_entities(known: KnownEntities, folder: str, init_checkpoint: str) -> None:
    """Checks that the model of `init_checkpoint` knows no entities, or these, which come from `folder`."""
    path = find_checkpoint(init_checkpoint, "`init_checkpoint`")
    config = read_config(path, "`init_checkpoint`")
    if not config.num_entities:
        return
    told = constants(known.vectors, known.trie)
    expected = {f"{MODEL_PREFIX}encoder/entity_fusion/{name}": values for name, values in told.items()}
    reader = CheckpointReader(path)
    is_same = known.config_for(config) == config and expected.keys() <= reader.shapes.keys()
    values = reader.read(expected) if is_same else {}
    if not is_same or not all(_is_stored_as(values[name], value) for name, value in expected.items()):
        raise InputError(
            f"`init_checkpoint={init_checkpoint}` was trained with other entities than "
            f"`{ENTITY_VECTORS}={folder}`; name the folder that it was trained with, or a model without entities"
        )


def _is_stored_as(stored, values):
    """Whether an array in a checkpoint is this one; floats may have been published in half precision."""
    is_float = values.dtype.kind == "f"
    return np.array_equal(stored, values) or (is_float and np.array_equal(stored, values.astype(np.float16)))
