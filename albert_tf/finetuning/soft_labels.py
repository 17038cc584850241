"""A fine-tuned teacher's answers, learnt beside the labels (Hinton et al. 2015, section 2).

The teacher answers once, before training, so that a step costs no more than without one. It may have any vocabulary
where its answers are about whole texts.
"""

import collections.abc
import dataclasses

import numpy as np
import tensorflow as tf

from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.objectives.objective import Batch, WeightedSum

# Of features: the teacher's logits of each row, and whether the row has a label of its own, float32 [N].
TAUGHT, HAS_LABEL = "teacher_logits", "has_label"
# Of probabilities that are 0 in float32.
_LEAST = 1e-30


@dataclasses.dataclass(frozen=True)
class SoftLabels:
    """How a teacher's answers are learnt."""

    # Their share of the loss of an example with a label, from 0 to 1; without label it is all of it.
    weight: float = 0.5
    temperature: float = 2.0  # Divides the logits of both models; the divergence is multiplied by its square.

    def mix(self, losses: tf.Tensor, soft_losses: tf.Tensor, has_label: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each example from that of its label, if it has one (1, else 0), and the teacher's."""
        share = 1.0 - (1.0 - self.weight) * has_label
        return (1.0 - share) * losses + share * soft_losses

    def divergence(self, logits: tf.Tensor, taught: tf.Tensor, bias: tf.Tensor | float = 0.0) -> tf.Tensor:
        """Returns T^2 KL(softmax(taught / T) || softmax(logits / T)), float32 [...], of logits [..., classes]."""
        # Or `taught` are logarithms of probabilities. The bias is added behind the division: very negative for no
        # class.
        known, found = (tf.nn.log_softmax(each / self.temperature + bias) for each in (taught, logits))
        return self.temperature**2 * tf.reduce_sum(tf.exp(known) * (known - found), axis=-1)

    def divergence_of_each(self, logits: tf.Tensor, taught: tf.Tensor) -> tf.Tensor:
        """Returns the same of labels that each are given or not, the mean over them; logits [..., labels]."""
        both = (tf.stack([each, tf.zeros_like(each)], axis=-1) for each in (logits, taught))
        return tf.reduce_mean(self.divergence(*both), axis=-1)


def labelled_loss(
    losses: tf.Tensor,
    soft_losses: collections.abc.Callable[[tf.Tensor], tf.Tensor],
    batch: Batch,
    weights: tf.Tensor,
    soft_labels: SoftLabels | None,
) -> WeightedSum:
    """Returns the loss of labels [B, ...], mixed with that of a teacher's answers if `soft_labels` say how."""
    # `soft_losses` returns what to mix in, of the teacher's logits; weights [B, ...] say what each counts.
    if soft_labels is not None:
        losses = soft_labels.mix(losses, soft_losses(batch[TAUGHT]), _like(has_label(batch), weights))
    return tf.reduce_sum(losses * weights), tf.reduce_sum(weights)


def labelled_cross_entropy(
    logits: tf.Tensor, label_ids: tf.Tensor, batch: Batch, weights: tf.Tensor, soft_labels: SoftLabels | None
) -> tuple[WeightedSum, WeightedSum]:
    """Returns the loss and the accuracy of labels int32 [B, ...] that exclude each other."""
    loss, accuracy = weighted_cross_entropy(logits, label_ids, weights * _like(has_label(batch), weights))
    if soft_labels is not None:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(label_ids, logits)
        loss = labelled_loss(losses, lambda taught: soft_labels.divergence(logits, taught), batch, weights, soft_labels)
    return loss, accuracy


def _like(values, weights):
    """Returns values [B] as [B, 1, ...], with as many axes as weights."""
    return tf.reshape(values, [-1, *[1] * (len(weights.shape) - 1)])


def has_label(batch: Batch) -> tf.Tensor:
    """Returns 1 for examples with a label, float32 [B]; all of a batch that doesn't say it."""
    return batch[HAS_LABEL] if HAS_LABEL in batch else tf.ones_like(batch["example_weights"])


def log_probabilities(predictions: list[dict], labels: tuple[str, ...]) -> np.ndarray:
    """Returns the logarithms of the probabilities that predictions give labels, float32 [T, labels]."""
    return np.log(np.maximum(_probabilities(predictions, labels), _LEAST)).astype(np.float32)


def log_odds(predictions: list[dict], labels: tuple[str, ...]) -> np.ndarray:
    """Returns the logits of labels that each have a probability of their own, float32 [T, labels]."""
    least = np.finfo(np.float32).eps
    values = np.clip(_probabilities(predictions, labels), least, 1 - least)
    return np.log(values / (1 - values)).astype(np.float32)


def _probabilities(predictions, labels):
    return np.array([[each["probabilities"][label] for label in labels] for each in predictions], np.float64)
