"""What a pre-training objective is composed of: losses that read one encoder's output."""

import abc
import typing

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.objectives.objective import Batch, BatchSpec, WeightedSum
from albert_tf.pretraining_data.languages import LANGUAGES_FEATURE


class States(typing.NamedTuple):
    """What the encoder made of a batch.

    Attributes:
        sequence_output: [B, S, H]; [B, 1 + P, H], at the first position and at the masked pieces, if
            `is_partial`.
        pooled_output: [B, H]; None of a model without a pooler.
        is_partial: Whether states were computed where they are read alone; see `kernels.output_positions`.
    """

    sequence_output: tf.Tensor
    pooled_output: tf.Tensor | None
    is_partial: bool


class PretrainingLoss(abc.ABC):
    """One loss, and what it needs of records and of the model.

    Args:
        config: Hyper-parameters.
        others: What `register` says; a loss takes what it needs of it.

    Attributes:
        name: What its metrics' names begin with: `name`_loss and `name`_accuracy.
        further_metrics: Metrics that `compute` returns besides.
        reads: What the names begin with of the model's variables that no other loss depends on.
        reads_all_states: Whether it needs the states of all positions.
        compares_examples: Whether an example's loss depends on the others of its batch.
        separates_documents: Whether `encoder_inputs` finds documents that no feature of the batch tells.
        fills_masks: Whether it teaches what stands where there is a [MASK].
        predicts_next: Whether it teaches which piece comes next.
    """

    name: str
    further_metrics: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    reads_all_states: bool = False
    compares_examples: bool = False
    separates_documents: bool = False
    fills_masks: bool = False
    predicts_next: bool = False

    def __init__(self, config: AlbertConfig, **others):
        self.config = config

    @property
    def loss_name(self) -> str:
        """Name of the loss."""
        return f"{self.name}_loss"

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return f"{self.name}_accuracy", *self.further_metrics

    @abc.abstractmethod
    def prepare(self, features: dict[str, tf.Tensor], seed: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the features of its part of `batch_spec`, and changed ones for the encoder.

        Args:
            features: Of the records, as `input_pipeline.parse` returns them, and what other losses made of them.
            seed: int64 [2], of what is drawn for this batch.
        """

    @abc.abstractmethod
    def batch_spec(self, max_seq_length: int) -> BatchSpec:
        """Returns the features that it needs besides the encoder's; see `Objective.batch_spec`."""

    def encoder_inputs(self, batch: Batch) -> dict[str, tf.Tensor]:
        """Returns inputs of the encoder in place of those of the batch; None for one that is left out."""
        return {}

    @abc.abstractmethod
    def weight(self, batch: Batch) -> tf.Tensor:
        """Returns the weight of the loss in a batch; see `Objective.loss_weights`."""

    @abc.abstractmethod
    def compute(self, model: AlbertForPreTraining, states: States, batch: Batch) -> tuple[WeightedSum, ...]:
        """Returns loss, accuracy and further metrics, each as (sum, weight)."""

    @abc.abstractmethod
    def products(self, batch_spec: BatchSpec) -> int:
        """Returns the multiplications of its head for one example.

        Args:
            batch_spec: With the number of examples.
        """

    def uncounted_flops(self, batch_spec: BatchSpec) -> int:
        """Returns operations that XLA's cost analysis misses; see `Objective.uncounted_flops`."""
        return 0


def find_language_ids(features: dict[str, tf.Tensor]) -> tf.Tensor:
    """Returns the number of each piece's language, int32 [B, S], of records that say their languages."""
    language_ids = tf.gather(features[LANGUAGES_FEATURE], features["segment_ids"], batch_dims=1)
    return tf.ensure_shape(language_ids, features["segment_ids"].shape)
