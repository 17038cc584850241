"""A model's outputs for every example of a data set."""

import collections.abc
import functools
import typing

import numpy as np
import tensorflow as tf

from albert_tf.objectives.objective import Batch
from albert_tf.progress_line import with_progress
from albert_tf.training.devices.batches import distribute_batches, has_any_length, read_batches
from albert_tf.training.devices.workers import is_chief


def make_output_function(
    strategy: tf.distribute.Strategy, function: collections.abc.Callable[[Batch], dict[str, tf.Tensor]]
) -> collections.abc.Callable[[tf.data.Dataset], dict[str, np.ndarray]]:
    """Returns a function of global batches that returns another's outputs for every example, arrays [N, ...] by name.

    It is traced once, however often it is called. The other returns tensors [B, ...] by name, inside a replica; where
    batches are of several lengths, shorter outputs are filled up with 0. Examples are in order; those that only fill up
    the last batch have an `example_weights` of 0 and are left out.
    """

    step = make_output_step(strategy, function)

    def gather(values):
        return strategy.gather(values, axis=0).numpy()

    def compute_all(count, batches):
        collected = collections.defaultdict(list)
        for batch in with_progress(batches, count, "predicting") if is_chief(strategy) else batches:
            outputs, weights = step(batch)
            is_counted = gather(weights) > 0
            for name, values in outputs.items():
                collected[name].append(gather(values)[is_counted])
        return {name: _concatenate(rows) for name, rows in collected.items()}

    def compute(dataset):
        compute_these = functools.partial(compute_all, int(dataset.cardinality()))
        return read_batches(distribute_batches(strategy, dataset), compute_these)

    return compute


def make_output_step(
    strategy: tf.distribute.Strategy, function: collections.abc.Callable[[Batch], dict[str, tf.Tensor]]
) -> typing.Callable:
    """Returns a tf.function (batch) that returns what another makes of it in every replica, and `example_weights`."""

    def replica_step(batch):
        return function(batch), batch["example_weights"]

    @tf.function(autograph=False, reduce_retracing=has_any_length(strategy))
    def step(batch):
        return strategy.run(replica_step, args=(batch,))

    return step


def _concatenate(batches):
    """Returns arrays [B, ...] as one, each filled up with 0 to the longest along every other axis."""
    shape = np.max([batch.shape[1:] for batch in batches], axis=0, initial=0).astype(int)
    padded = [
        np.pad(batch, [(0, 0), *((0, longest - size) for longest, size in zip(shape, batch.shape[1:]))])
        for batch in batches
    ]
    return np.concatenate(padded)
