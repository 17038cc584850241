"""Which halves of sentences belong together: for short texts, such as reviews.

Two halves of one review share its opinion, and little else but its topic; so a model that tells them from the halves of
other reviews has learnt to read opinions, without a label. The loss is InfoNCE (van den Oord et al. 2018, equation 4):
for each half the cross-entropy of its other half among those in one replica's batch, or in a micro-batch of it, scored
by the cosine of mean states.
"""

import typing

import tensorflow as tf

from albert_tf.objectives.losses import PretrainingLoss, weighted_cross_entropy
from albert_tf.objectives.objective import Batch, refuse_entities
from albert_tf.pretraining_data.halves import max_cut_sentences

# Cosines are divided by it. A learnt one came to 0.07 to 0.09 with bags of pieces.
_TEMPERATURE = 0.08
_NO_SENTENCE = -10000.0


class MatchingHalves(PretrainingLoss):
    """Which halves belong together.

    Each half is read as a text of its own: it sees only itself, its positions count from 0, and all segments are 0.

    Raises:
        InputError: The model knows entities, which are found only in examples of one text.
    """

    name = "halves"
    reads_all_states = True
    compares_examples = True
    separates_documents = True

    def __init__(self, config, **others):
        super().__init__(config)
        refuse_entities(config, "halves")

    def prepare(self, features, seed):
        return {}

    def batch_spec(self, max_seq_length):
        return {}

    def encoder_inputs(self, batch):
        halves = find_halves(batch)
        return {
            "input_mask": None,
            "segment_ids": None,
            "document_ids": halves.document_ids,
            "position_ids": halves.position_ids + self.config.position_offset,
        }

    def weight(self, batch):
        return tf.reduce_sum(find_halves(batch).is_sentence)

    def compute(self, model, states, batch):
        return match_halves(states.sequence_output, find_halves(batch))

    def products(self, batch_spec):
        batch_size, max_seq_length = batch_spec["input_ids"].shape
        num_sentences = max_cut_sentences(max_seq_length)
        return num_sentences * self.config.hidden_size * (2 * max_seq_length + num_sentences * batch_size)


class Halves(typing.NamedTuple):
    """Where the halves of at most N sentences stand in each example of a batch."""

    # float32 [B, 2 N, S], 1 where a piece belongs to a half: 2 n to the first half of sentence n.
    membership: tf.Tensor
    document_ids: tf.Tensor  # int32 [B, S], the number of a piece's half, which sees itself alone; -1 of padding.
    position_ids: tf.Tensor  # int32 [B, S], counted from the begin of each half.
    is_sentence: tf.Tensor  # float32 [B N], 1 where there are both halves.


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
    """Returns loss and accuracy, each as (sum, weight), of finding each half's other half, in states [B, S, H]."""
    # Both are averaged over looking for the second half and looking for the first one.
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
