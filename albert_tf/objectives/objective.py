"""The seam between what is learnt and everything that trains, evaluates, plans or compiles it."""

import abc
import collections.abc
import types
import typing

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.objectives.flops import TRAINING_FLOPS_PER_PRODUCT

Batch = collections.abc.Mapping[str, tf.Tensor]
BatchSpec = dict[str, tf.TensorSpec]
# The sum of a loss or metric over some examples, and the sum of their weights; two float32 scalars.
# Of a metric that is a vector, two vectors.
WeightedSum = tuple[tf.Tensor, tf.Tensor]
# What the names of the pooler's variables begin with.
POOLER = "encoder/pooler/"


class Objective(abc.ABC):
    """Which model learns, from which batches, by which losses, and what is measured on the way.

    Training, evaluation, the TPU planner and the compile tests know an objective by this interface alone. A new one
    implements the abstract methods below and is registered with `objectives.register`, or in `finetuning.TASKS`. In
    them `batch` is what `batch_spec` describes, on one replica, and `models` are those of `make_models`, by name.

    Attributes:
        config: Hyper-parameters of the model.
        loss_coefficients: The losses by name; training minimises the sum of each loss times its coefficient.
        metric_names: Metrics besides the losses.
        selection_metric: The held-out metric that decides which checkpoint is best: the lowest if it ends in
            "loss", as "loss" itself, the sum above, else the highest.
        frozen_models: Those of `make_models` that are used but neither trained nor saved, such as a teacher, with the
            folder of ours that holds the weights of each, "" for none. A run is resumed only as long as their content
            is the same.
        auxiliary_models: Those that learn and are of use in training alone: checkpoints hold them, and that is all.
        vector_metrics: The lengths of those of `metric_names` that are no single numbers, such as scores counted in
            bins; see `metrics_of_vectors`.
        compares_examples: Whether an example's loss depends on the others of its batch, so that an evaluation is the
            same only with batches of one size.
        blind_metric: The metric that a packing's rule which reads no text has a value of, too; None if there is none.
        carries_vocabulary: Whether a run may begin with a model of another vocabulary than its data have, whose pieces'
            embeddings are then carried over.
        fills_masks: Whether `make_model`'s model has learnt what stands where there is a [MASK].
        predicts_next: Whether it has learnt which piece comes next.
        name: What registries and runs call it; None for the name of its class.
        title: Title of the plot of the losses.
    """

    config: AlbertConfig
    loss_coefficients: collections.abc.Mapping[str, float]
    metric_names: tuple[str, ...] = ()
    selection_metric: str = "loss"
    frozen_models: collections.abc.Mapping[str, str] = types.MappingProxyType({})
    auxiliary_models: tuple[str, ...] = ()
    vector_metrics: collections.abc.Mapping[str, int] = types.MappingProxyType({})
    compares_examples: bool = False
    blind_metric: str | None = None
    carries_vocabulary: bool = False
    fills_masks: bool = True
    predicts_next: bool = False
    name: str | None = None
    title: str = "loss"

    @abc.abstractmethod
    def make_model(self, **options) -> tf.keras.Model:
        """Returns a new model; options as for `AlbertEncoder`: `remat`, `attention`, `dtype`."""

    def make_models(self, **options) -> dict[str, tf.keras.Model]:
        """Returns all models that a step needs, by name; "model" is the one that the run is for.

        Override it where there is more than one. The names are the keyword arguments of `compute`.
        """
        return {"model": self.make_model(**options)}

    def begin(self, model: tf.keras.Model) -> tuple[str, list[str]] | None:
        """Assigns what `make_model`'s model is to begin with where no checkpoint says so.

        Returns:
            A line that tells what that is, and the names of variables that stay random; None if nothing is assigned.
        """
        return None

    def prepare(self, features: dict[str, tf.Tensor], seed: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the batch that is made of records, in the graph of the input pipeline; see `batch_spec`.

        Args:
            features: Of B records, as `input_pipeline.parse` returns them.
            seed: int64 [2], of what is drawn for this batch: a function of the run's seed, the step and the host.
        """
        return features

    @abc.abstractmethod
    def batch_spec(self, max_seq_length: int) -> BatchSpec:
        """Returns shape [None, ...] and dtype of every feature of a batch; None is the number of examples."""

    def separates_documents(self, batch_spec: BatchSpec) -> bool:
        """Returns whether pieces see those of their own document alone: here, whether the batch tells documents."""
        return "document_ids" in batch_spec

    @abc.abstractmethod
    def loss_weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        """Returns the weight of each loss in one replica's batch, a float32 scalar, from the batch alone."""

    @abc.abstractmethod
    def compute(
        self, batch: Batch, training: bool, dropout_seed: tf.Tensor | None, **models: tf.keras.Model
    ) -> dict[str, WeightedSum]:
        """Returns (sum, weight) of each loss and metric over the batch, two float32 [n] for a vector of n.

        Args:
            batch: As `batch_spec` says.
            training: Whether dropout is on.
            dropout_seed: int32 [2], the seed of every dropout in this step; None outside training.
            **models: To be named in the signature: `compute(self, batch, ..., model)`.
        """

    def metrics_of_vectors(self, vectors: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
        """Returns metrics by name, computed from the sums and weights of `vector_metrics` over all examples."""
        return {}

    def identity(self) -> dict[str, typing.Any]:
        """Returns what tells it from others, JSON values by name; a run is resumed with the same ones only."""
        return {"objective": self.name or type(self).__name__}

    def followers(self, models: dict[str, tf.keras.Model]) -> dict[str, str]:
        """Returns which learnt variables follow which others, by their names in `learnt_variables`.

        Both begin with the same values. From then on each update of the one that is followed, which its own gradient
        makes, is made of the follower too, beside the follower's own: it is the sum of the other and of what its own
        gradient has learnt, whose gradients don't mix.
        """
        return {}

    def untouched(self, model: tf.keras.Model) -> tuple[str, ...]:
        """Returns what the names of variables of `make_model`'s model begin with that no loss depends on.

        Where they began at random they are random still, which a run writes down for those who go on with its weights.
        """
        return () if getattr(model, "reads_pooler", True) else (POOLER,)

    def order_of_head(self, settings: dict[str, typing.Any], source: str) -> tuple[int, ...] | None:
        """Returns which output of another run's head each output of `make_model`'s is, to begin with that head.

        Args:
            settings: Of the run that the head is of.
            source: The file that they are from; named in errors.

        Returns:
            Their numbers, nothing where they are the same or none has a name; None if that head is for something else.
        """
        return ()

    def products(self, batch_spec: BatchSpec) -> int:
        """Returns the multiplications of all matrix products for one example, forward; 0 if unknown.

        Args:
            batch_spec: What `batch_spec` returned, with the number of examples in place of None.
        """
        return 0

    def flops(self, batch_spec: BatchSpec) -> int:
        """Returns the floating-point operations of a training step, of its matrix products alone."""
        return TRAINING_FLOPS_PER_PRODUCT * batch_sizes(batch_spec).examples * self.products(batch_spec)

    def uncounted_flops(self, batch_spec: BatchSpec) -> int:
        """Returns how many operations XLA's cost analysis misses, because it counts a loop's body once."""
        return 0


def with_batch_size(batch_spec: BatchSpec, batch_size: int) -> BatchSpec:
    """Returns the spec of batches of so many examples."""
    return {name: tf.TensorSpec([batch_size, *spec.shape[1:]], spec.dtype) for name, spec in batch_spec.items()}


def encoder_batch_spec(max_seq_length: int) -> BatchSpec:
    """Returns the spec of what every encoder reads: int32 [None, S] ids, mask and segments."""
    return {
        name: tf.TensorSpec([None, max_seq_length], tf.int32) for name in ("input_ids", "input_mask", "segment_ids")
    }


class Sized(typing.NamedTuple):
    """How much there is in a batch."""

    examples: int
    tokens: int  # Padding included; 0 where a batch holds no `input_ids`.


def batch_sizes(batch_spec: BatchSpec) -> Sized:
    """Returns how much a batch of a known size holds."""
    examples = next(iter(batch_spec.values())).shape[0]
    ids = batch_spec.get("input_ids")
    return Sized(examples, ids.shape.num_elements() if ids is not None else 0)
