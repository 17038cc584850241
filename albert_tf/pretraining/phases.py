"""A pre-training run's phases, made from sets of shards."""

import collections.abc

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.objectives import AlbertPretraining, MatchingHalves
from albert_tf.objectives.objective import with_batch_size
from albert_tf.pretraining_data import records
from albert_tf.pretraining_data.input_pipeline import eval_dataset, train_dataset
from albert_tf.pretraining_data.shards import ShardSet
from albert_tf.training import Phase, RunSettings


def make_objective(config: AlbertConfig, shards: ShardSet) -> AlbertPretraining:
    """Returns what is to be learnt from the examples in shards."""
    if records.has_halves(shards.sentence_pair):
        return MatchingHalves(config, shards.train_options.max_predictions_per_seq)
    return AlbertPretraining(
        config, records.has_pairs(shards.sentence_pair), shards.train_options.max_predictions_per_seq
    )


def make_phase(
    config: AlbertConfig,
    shards: ShardSet,
    settings: RunSettings,
    end_step: int | None = None,
    gradient_accumulation_steps: int | None = None,
    evaluates: bool = True,
    hosts_read_apart: bool = False,
) -> Phase:
    """Returns the training on a set of shards.

    Args:
        config: Of the model.
        shards: What to train on.
        settings: Of the run.
        end_step: Step of the run that the phase ends at; None for the run's last.
        gradient_accumulation_steps: Parts of a replica's batch; None for those of the settings.
        evaluates: Whether to evaluate on the held-out shards, if there are any.
        hosts_read_apart: Whether each of several hosts reads its own shards, and not all.
    """
    batch_size, options, counts = settings.train_batch_size, shards.train_options, shards.examples_per_shard

    def make_train_dataset(start_step, host_index, num_hosts):
        return train_dataset(
            shards.train_paths, options, batch_size, settings.random_seed, start_step, counts, host_index, num_hosts
        )

    return Phase(
        end_step or settings.num_train_steps,
        with_batch_size(make_objective(config, shards).batch_spec(options.max_seq_length), batch_size),
        make_train_dataset,
        make_held_out_dataset(shards, settings) if evaluates and shards.held_out_paths else None,
        gradient_accumulation_steps or settings.gradient_accumulation_steps,
        hosts_read_apart,
        counts and sum(counts),
    )


def make_held_out_dataset(shards: ShardSet, settings: RunSettings) -> collections.abc.Callable[[], tf.data.Dataset]:
    """Returns a function that returns the held-out batches."""
    return lambda: eval_dataset(shards.held_out_paths, shards.held_out_options, settings.eval_batch_size)
