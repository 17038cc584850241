"""Losses that read one encoder's output, and the objective of pre-training that is composed of them."""

import abc
import collections.abc
import typing

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.kernels.positions import with_first_position
from albert_tf.objectives.objective import (
    POOLER,
    Batch,
    BatchSpec,
    Objective,
    WeightedSum,
    encoder_batch_spec,
    encoder_products,
    refuse_causal,
)
from albert_tf.pretraining_data.languages import LANGUAGES_FEATURE
from albert_tf.pretraining_data.records import LABEL_FEATURE


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


# Variables of a model for pre-training, whether a loss reads them or not.
_READ_BY_SOME = (POOLER, "sentence_order_head/", "entity_head/")


class Pretraining(Objective):
    """Adds losses with equal weight, as the originals do (run_pretraining.py of BERT and of ALBERT)."""

    # The masked language model comes first.

    title = "pre-training loss"
    carries_vocabulary = True

    def __init__(self, config: AlbertConfig, losses: list[PretrainingLoss]):
        self.config, self._losses = config, losses
        self.loss_coefficients = {loss.loss_name: 1.0 for loss in losses}
        self.metric_names = tuple(name for loss in losses for name in loss.metric_names)
        # Packings know one of what is learnt of pairs, which stands behind the masked language model.
        self.blind_metric = next((loss.metric_names[0] for loss in losses[1:]), None)
        self.compares_examples = any(loss.compares_examples for loss in losses)
        self.fills_masks = any(loss.fills_masks for loss in losses)
        self.predicts_next = any(loss.predicts_next for loss in losses)
        self._reads_all_states = any(loss.reads_all_states for loss in losses)
        reads_pooler = [loss.name for loss in losses if POOLER in loss.reads]
        if reads_pooler and config.is_causal:
            raise InputError(
                f"{reads_pooler[0]} reads the first piece, which sees no text (is_causal=true); use `objective=causal`"
            )
        for loss in losses:
            if loss.fills_masks:
                refuse_causal(config, loss.name)
        if reads_pooler and not config.pooler:
            raise InputError(
                f"{reads_pooler[0]} reads the pooler, and this model has none (pooler=false); use `objective=roberta`"
            )

    def make_model(self, **options):
        return AlbertForPreTraining(self.config, **options)

    def prepare(self, features, seed):
        if self.config.num_languages:
            features = {**features, "language_ids": find_language_ids(features)}
        for loss in self._losses:
            features = {**features, **loss.prepare(features, seed)}
        names = self.batch_spec(features["input_ids"].shape[1])
        return {name: features[name] for name in names}

    def batch_spec(self, max_seq_length):
        spec = encoder_batch_spec(max_seq_length)
        if self.config.num_languages:
            spec["language_ids"] = spec["segment_ids"]
        for loss in self._losses:
            spec |= loss.batch_spec(max_seq_length)
        return spec

    def separates_documents(self, batch_spec):
        return super().separates_documents(batch_spec) or any(loss.separates_documents for loss in self._losses)

    def loss_weights(self, batch):
        return {loss.loss_name: loss.weight(batch) for loss in self._losses}

    def compute(self, batch, training, dropout_seed, model):
        inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
        if self.config.num_languages:
            inputs["language_ids"] = batch["language_ids"]
        for loss in self._losses:
            inputs |= loss.encoder_inputs(batch)
        # Positions that no loss reads are not computed.
        positions = None if self._reads_all_states else with_first_position(batch["masked_lm_positions"])
        outputs = model.encoder(
            {name: values for name, values in inputs.items() if values is not None},
            training=training,
            dropout_seed=dropout_seed,
            output_positions=positions,
        )
        states = States(outputs["sequence_output"], outputs.get("pooled_output"), positions is not None)
        results = {}
        for loss in self._losses:
            results |= zip([loss.loss_name, *loss.metric_names], loss.compute(model, states, batch), strict=True)
        return results

    def untouched(self, model):
        read = {name for loss in self._losses for name in loss.reads}
        return tuple(name for name in _READ_BY_SOME if name not in read)

    def products(self, batch_spec):
        max_seq_length = batch_spec["input_ids"].shape[1]
        read = max_seq_length if self._reads_all_states else batch_spec["masked_lm_positions"].shape[1] + 1
        products = encoder_products(self.config, max_seq_length, read)
        return products + sum(loss.products(batch_spec) for loss in self._losses)

    def uncounted_flops(self, batch_spec):
        return sum(loss.uncounted_flops(batch_spec) for loss in self._losses)


def composed(*losses: type[PretrainingLoss]) -> collections.abc.Callable[..., Pretraining]:
    """Returns a function for `register` that makes an objective of these losses."""
    return lambda config, **others: Pretraining(config, [loss(config, **others) for loss in losses])


class SentenceOrder(PretrainingLoss):
    """Whether two consecutive segments were swapped (Lan et al. 2020, section 3.1)."""

    # Its label is made with the shards, by pretraining_data/segment_pairs.py.
    name = "sentence_order"
    reads = (POOLER, "sentence_order_head/")

    def prepare(self, features, seed):
        labels = tf.squeeze(features[LABEL_FEATURE], axis=1)
        return {"sentence_order_labels": labels, "example_weights": tf.ones_like(labels, tf.float32)}

    def batch_spec(self, max_seq_length):
        return {
            "sentence_order_labels": tf.TensorSpec([None], tf.int32),
            "example_weights": tf.TensorSpec([None], tf.float32),
        }

    def weight(self, batch):
        return tf.reduce_sum(batch["example_weights"])

    def compute(self, model, states, batch):
        logits = model.sentence_order_head(states.pooled_output)
        return weighted_cross_entropy(logits, batch["sentence_order_labels"], batch["example_weights"])

    def products(self, batch_spec):
        return self.config.hidden_size**2 + 2 * self.config.hidden_size


class NextSentence(SentenceOrder):
    """Whether the second segment follows the first (Devlin et al. 2019, section 3.1), from the same head."""

    name = "next_sentence"
