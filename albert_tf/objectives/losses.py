"""The losses of a pre-training objective, which read one encoder's output."""

import abc
import typing

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.objectives.objective import Batch, BatchSpec, WeightedSum
from albert_tf.pretraining_data.languages import LANGUAGES_FEATURE


class States(typing.NamedTuple):
    """The encoder's output for a batch.

    Attributes:
        sequence_output: [B, S, H]; if `is_partial`, [B, 1 + P, H], at the first position and at the masked tokens.
        pooled_output: [B, H]; None of a model without a pooler.
        is_partial: Whether only the states of these positions were computed.
    """

    sequence_output: tf.Tensor
    pooled_output: tf.Tensor | None
    is_partial: bool


class PretrainingLoss(abc.ABC):
    """One loss, and its demands on records and model.

    Args:
        others: Those of `register`; a loss takes what it needs of them.

    Attributes:
        name: Its metrics are `name`_loss and `name`_accuracy.
        further_metrics: Metrics that `compute` returns besides.
        reads: The beginnings of the names of the model's variables that no other loss depends on.
        reads_all_states: Whether it needs the states of all positions.
        compares_examples: Whether an example's loss depends on the others of its batch.
        separates_documents: Whether `encoder_inputs` finds documents that are no feature of the batch.
        fills_masks: Whether it teaches a model to fill in [MASK].
        predicts_next: Whether it teaches a model to predict the next token.
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
        """`name`_loss."""
        return f"{self.name}_loss"

    @property
    def metric_names(self) -> tuple[str, ...]:
        """`name`_accuracy and the further metrics."""
        return f"{self.name}_accuracy", *self.further_metrics

    @abc.abstractmethod
    def prepare(self, features: dict[str, tf.Tensor], seed: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the features of its part of `batch_spec`, and changed ones for the encoder.

        Args:
            features: Those of `input_pipeline.parse`, and of the losses before.
            seed: int64 [2], for this batch's random draws.
        """

    @abc.abstractmethod
    def batch_spec(self, max_seq_length: int) -> BatchSpec:
        """Returns the spec of features besides the encoder's, as `Objective.batch_spec` does."""

    def encoder_inputs(self, batch: Batch) -> dict[str, tf.Tensor]:
        """Returns inputs of the encoder in place of those of the batch; None for one that is left out."""
        return {}

    @abc.abstractmethod
    def weight(self, batch: Batch) -> tf.Tensor:
        """Returns the weight of the loss in a batch, a float32 scalar."""

    @abc.abstractmethod
    def compute(self, model: AlbertForPreTraining, states: States, batch: Batch) -> tuple[WeightedSum, ...]:
        """Returns loss, accuracy and further metrics, each as (sum, weight)."""

    @abc.abstractmethod
    def products(self, batch_spec: BatchSpec) -> int:
        """Returns the multiplications of its head for one example; `batch_spec` has the number of examples."""

    def uncounted_flops(self, batch_spec: BatchSpec) -> int:
        """Returns how many operations XLA's cost analysis misses, because it counts a loop's body once."""
        return 0


def find_language_ids(features: dict[str, tf.Tensor]) -> tf.Tensor:
    """Returns the number of each token's language, int32 [B, S], of records that say their languages."""
    language_ids = tf.gather(features[LANGUAGES_FEATURE], features["segment_ids"], batch_dims=1)
    return tf.ensure_shape(language_ids, features["segment_ids"].shape)


def weighted_cross_entropy(logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor) -> tuple[WeightedSum, WeightedSum]:
    """Returns loss and accuracy, each as (sum, weight).

    Args:
        logits: float32 [..., classes].
        labels: int [...].
        weights: float32 [...], 0 for what doesn't count.
    """
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    is_right = tf.cast(tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels), tf.float32)
    total = tf.reduce_sum(weights)
    return (tf.reduce_sum(losses * weights), total), (tf.reduce_sum(is_right * weights), total)
