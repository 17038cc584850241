"""A stretch of training on batches of one shape."""

import collections.abc
import dataclasses

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.objectives.objective import BatchSpec, batch_sizes
from albert_tf.training.devices.batches import per_replica_batch_size


@dataclasses.dataclass(frozen=True)
class Phase:
    """A data set to train on, and the step to end at.

    Attributes:
        end_step: Counted from the begin of the whole run.
        batch_spec: Of a global batch: as `Objective.batch_spec` returns it, with the number of examples. Where batches
            are of several lengths, the usual one.
        make_dataset: Given the number of steps of this phase already done, a host's index and the number of hosts,
            returns that host's part of each batch.
        make_eval_dataset: Returns the held-out batches; None to evaluate nothing.
        gradient_accumulation_steps: How many micro-batches a replica's batch is cut into.
        hosts_read_apart: Whether each of several hosts makes its own part of a batch. If not, each makes all batches
            and keeps its part, so that the batches do not depend on the number of hosts.
        num_examples: Of the data; None if unknown.
        score_held_out: Given `Evaluator.compute_outputs`, returns measures of the held-out data that no sum over
            batches gives; None for none.
    """

    end_step: int
    batch_spec: BatchSpec
    make_dataset: collections.abc.Callable[[int, int, int], tf.data.Dataset]
    make_eval_dataset: collections.abc.Callable[[], tf.data.Dataset] | None = None
    gradient_accumulation_steps: int = 1
    hosts_read_apart: bool = False
    num_examples: int | None = None
    score_held_out: collections.abc.Callable[[collections.abc.Callable], dict[str, float]] | None = None

    @property
    def examples(self) -> int:
        """Global batch size."""
        return batch_sizes(self.batch_spec).examples

    @property
    def tokens(self) -> int:
        """Pieces in a global batch, padding included; 0 where batches are not of pieces."""
        return batch_sizes(self.batch_spec).tokens

    @property
    def sequence_length(self) -> int:
        """Pieces of each sequence, of which an example may have several; 0 where batches are not of pieces."""
        ids = self.batch_spec.get("input_ids")
        return ids.shape[-1] if ids is not None else 0

    def check_batch_size(self, strategy: tf.distribute.Strategy) -> None:
        """Raises InputError if the replicas can't share a batch."""
        per_replica_batch_size(strategy, self.examples, "train_batch_size", self.gradient_accumulation_steps)

    def check_batches(self, dataset: tf.data.Dataset) -> None:
        """Raises InputError if a feature is missing, or has another shape or dtype than `batch_spec` says."""
        for name, spec in self.batch_spec.items():
            found = dataset.element_spec.get(name)
            if found is None:
                raise InputError(f"the batches hold no {name}, which the objective's batch_spec requires")
            if found.dtype != spec.dtype or not found.shape[1:].is_compatible_with(spec.shape[1:]):
                raise InputError(
                    f"{name} is {found.dtype.name} {found.shape} in the batches, and {spec.dtype.name} "
                    f"{spec.shape} in the objective's batch_spec; make them agree"
                )
