"""Masked language model, and which halves of sentences belong together: for text of short pieces, such as reviews.

Two halves of one review share what the review thinks, and little else but its topic; so a model that tells them from
the halves of other reviews has learnt to read opinions, without a label. The loss is InfoNCE (van den Oord et al. 2018,
equation 4): for each half the cross-entropy of its other half among those of all sentences that one replica has in its
batch, or in a micro-batch of it, scored by the cosine of mean states.
"""

import typing

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.objectives.albert_pretraining import AlbertPretraining
from albert_tf.objectives.flops import TRAINING_FLOPS_PER_PRODUCT, encoder_products
from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.objectives.objective import Batch
from albert_tf.pretraining_data.records import max_cut_sentences

# Cosines are divided by it. A learnt one came to 0.07 to 0.09 with bags of pieces.
_TEMPERATURE = 0.08
_NO_SENTENCE = -10000.0


class MatchingHalves(AlbertPretraining):
    """Adds the loss of the masked language model and that of the halves with equal weight.

    Each half is a text of its own: it sees itself alone, its positions count from 0, and all segments are 0, as in the
    single texts that the model will read. So there is no sentence order, and those variables stay as they are.

    Args:
        config: Hyper-parameters.
        max_predictions_per_seq: As for `AlbertPretraining`.
    """

    def __init__(self, config: AlbertConfig, max_predictions_per_seq: int | None = None):
        super().__init__(config, has_pairs=False, max_predictions_per_seq=max_predictions_per_seq)
        self.loss_coefficients = {"masked_lm_loss": 1.0, "halves_loss": 1.0}
        self.metric_names = ("masked_lm_accuracy", "halves_accuracy")

    def loss_weights(self, batch):
        """Returns the number of masked pieces, and of sentences; see `Objective`."""
        return {
            "masked_lm_loss": tf.reduce_sum(batch["masked_lm_weights"]),
            "halves_loss": tf.reduce_sum(find_halves(batch).is_sentence),
        }

    def compute(self, batch, training, dropout_seed, model):
        """Returns losses and accuracies of both tasks; see `Objective`."""
        halves = find_halves(batch)
        outputs = model.encoder(
            {"input_ids": batch["input_ids"], "document_ids": halves.document_ids, "position_ids": halves.position_ids},
            training=training,
            dropout_seed=dropout_seed,
        )
        weights = batch["masked_lm_weights"]
        loss, right = model.masked_lm_head.cross_entropy(
            tf.gather(outputs["sequence_output"], batch["masked_lm_positions"], batch_dims=1),
            tf.convert_to_tensor(model.encoder.embeddings.word_embeddings),
            batch["masked_lm_ids"],
            weights,
        )
        total = tf.reduce_sum(weights)
        halves_loss, halves_accuracy = match_halves(outputs["sequence_output"], halves)
        return {
            "masked_lm_loss": (loss, total),
            "masked_lm_accuracy": (right, total),
            "halves_loss": halves_loss,
            "halves_accuracy": halves_accuracy,
        }

    def flops(self, batch_spec):
        """Returns the operations of a step; see `Objective`.

        To those of the encoder the heads add P E (H + V) multiplications for each example of S pieces, and with room
        for N sentences in it 2 N S H for the means and N^2 B H for the scores of B examples.
        """
        config = self.config
        batch_size, predictions = batch_spec["masked_lm_positions"].shape
        max_seq_length = batch_spec["input_ids"].shape[1]
        num_sentences = max_cut_sentences(max_seq_length)
        products = encoder_products(config, max_seq_length, max_seq_length)
        products += predictions * config.embedding_size * (config.hidden_size + config.vocab_size)
        products += num_sentences * config.hidden_size * (2 * max_seq_length + num_sentences * batch_size)
        return TRAINING_FLOPS_PER_PRODUCT * batch_size * products


class Halves(typing.NamedTuple):
    """Where the halves of N sentences at most stand in each example of a batch.

    Attributes:
        membership: float32 [B, 2 N, S], 1 where a piece belongs to a half: 2 n to the first half of sentence n.
        document_ids: int32 [B, S], the number of a piece's half, which sees itself alone; -1 of padding.
        position_ids: int32 [B, S], counted from the begin of each half.
        is_sentence: float32 [B N], 1 where there are both halves.
    """

    membership: tf.Tensor
    document_ids: tf.Tensor
    position_ids: tf.Tensor
    is_sentence: tf.Tensor


def find_halves(batch: Batch) -> Halves:
    """Finds halves by `segment_ids` [B, S], which alternate, and `input_mask` [B, S]; [CLS] belongs to the first."""
    segment_ids, is_piece = batch["segment_ids"], tf.equal(batch["input_mask"], 1)
    max_seq_length = segment_ids.shape[1]
    changes = tf.cast(tf.not_equal(segment_ids[:, 1:], segment_ids[:, :-1]), tf.int32)
    numbers = tf.where(is_piece, tf.pad(tf.cumsum(changes, axis=1), [[0, 0], [1, 0]]), -1)
    membership = tf.one_hot(numbers, 2 * max_cut_sentences(max_seq_length), axis=1)
    lengths = tf.reduce_sum(membership, axis=2)
    begins = tf.cumsum(lengths, axis=1, exclusive=True)
    # No product of matrices, which a TPU rounds to bfloat16.
    own_begins = tf.cast(tf.reduce_sum(membership * begins[:, :, None], axis=1), tf.int32)
    return Halves(
        membership,
        numbers,
        tf.range(max_seq_length) - own_begins,
        tf.reshape(tf.cast(lengths[:, 1::2] > 0, tf.float32), [-1]),
    )


def match_halves(sequence_output: tf.Tensor, halves: Halves):
    """Returns loss and accuracy, each as (sum, weight), of finding each half's other half.

    Both are averaged over looking for the second half and looking for the first one.

    Args:
        sequence_output: [B, S, H].
        halves: Of the same batch.
    """
    states = tf.cast(sequence_output, tf.float32)
    # A sum has the direction of the mean.
    sums = tf.matmul(halves.membership, states)
    directions = tf.math.l2_normalize(sums, axis=-1, epsilon=1e-6)
    first, second = (tf.reshape(directions[:, part::2], [-1, states.shape[-1]]) for part in (0, 1))
    scores = tf.matmul(first, second, transpose_b=True) / _TEMPERATURE
    no_candidate = _NO_SENTENCE * (1.0 - halves.is_sentence)
    labels = tf.range(tf.shape(scores)[0])
    searches = [
        weighted_cross_entropy(direction + no_candidate, labels, halves.is_sentence)
        for direction in (scores, tf.transpose(scores))
    ]
    (loss, total), (right, _) = searches[0]
    (other_loss, _), (other_right, _) = searches[1]
    return (0.5 * (loss + other_loss), total), (0.5 * (right + other_right), total)
