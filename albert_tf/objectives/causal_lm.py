"""Causal language model: which token comes next (GPT; Radford et al. 2018, section 3.1)."""

import math

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.modeling.kernels import tied_cross_entropy
from albert_tf.objectives.losses import PretrainingLoss
from albert_tf.objectives.objective import refuse_entities
from albert_tf.pretraining_data.records import CHARACTERS_FEATURE


class CausalLM(PretrainingLoss):
    """The cross-entropy of the next token, at every token but the last of a document.

    A document in an example is read as if it stood alone: it sees only itself, its positions count from the first, and
    all segments are 0. `bits_per_character` makes models of different vocabularies comparable.

    Raises:
        InputError: The model is not causal, or knows entities.
    """

    name = "causal_lm"
    reads_all_states = True
    predicts_next = True
    further_metrics = ("bits_per_character",)

    def __init__(self, config, **others):
        super().__init__(config)
        refuse_entities(config, "causal")
        if not config.is_causal:
            raise InputError(
                "causal_lm needs pieces that see only those before them; set is_causal to true in `albert_config_file`"
            )

    def prepare(self, features, seed):
        document_ids, position_ids = find_documents(features["segment_ids"], features["input_mask"])
        return {
            "document_ids": document_ids,
            "position_ids": position_ids + self.config.position_offset,
            CHARACTERS_FEATURE: tf.cast(features[CHARACTERS_FEATURE][:, 0], tf.float32),
        }

    def batch_spec(self, max_seq_length):
        return {
            "document_ids": tf.TensorSpec([None, max_seq_length], tf.int32),
            "position_ids": tf.TensorSpec([None, max_seq_length], tf.int32),
            CHARACTERS_FEATURE: tf.TensorSpec([None], tf.float32),
        }

    def encoder_inputs(self, batch):
        return {
            "input_mask": None,
            "segment_ids": None,
            "document_ids": batch["document_ids"],
            "position_ids": batch["position_ids"],
        }

    def weight(self, batch):
        return tf.reduce_sum(_targets(batch)[1])

    def compute(self, model, states, batch):
        labels, weights = _targets(batch)
        table = tf.convert_to_tensor(model.encoder.embeddings.word_embeddings)
        loss, right = model.masked_lm_head.cross_entropy(states.sequence_output, table, labels, weights)
        total = tf.reduce_sum(weights)
        bits = loss / math.log(2), tf.reduce_sum(batch[CHARACTERS_FEATURE])
        return (loss, total), (right, total), bits

    def products(self, batch_spec):
        config, max_seq_length = self.config, batch_spec["input_ids"].shape[1]
        transform = config.hidden_size if config.language_model_head == "dense" else 0
        return max_seq_length * config.embedding_size * (transform + config.vocab_size)

    def uncounted_flops(self, batch_spec):
        rows = batch_spec["input_ids"].shape.num_elements()
        return tied_cross_entropy.uncounted_flops(rows, self.config.embedding_size, self.config.vocab_size)


def find_documents(segment_ids: tf.Tensor, input_mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the number of each token's document, from 1, and its place there, from 0: int32 [B, S]; 0 of padding."""
    # Segments alternate from document to document.
    max_seq_length = segment_ids.shape[1]
    changes = tf.cast(tf.not_equal(segment_ids[:, 1:], segment_ids[:, :-1]), tf.int32)
    numbers = tf.pad(tf.cumsum(changes, axis=1), [[0, 0], [1, 0]])
    lengths = tf.math.bincount(numbers, minlength=max_seq_length, maxlength=max_seq_length, axis=-1)
    begins = tf.gather(tf.cumsum(lengths, axis=1, exclusive=True), numbers, batch_dims=1)
    is_piece = tf.equal(input_mask, 1)
    return tf.where(is_piece, numbers + 1, 0), tf.where(is_piece, tf.range(max_seq_length) - begins, 0)


def _targets(batch):
    """Returns the token after each, int32 [B, S], and float32 weights: 0 where it isn't one of the same document."""
    document_ids = batch["document_ids"]
    next_documents = tf.pad(document_ids[:, 1:], [[0, 0], [0, 1]])
    is_predicted = tf.equal(document_ids, next_documents) & (document_ids > 0)
    return tf.pad(batch["input_ids"][:, 1:], [[0, 0], [0, 1]]), tf.cast(is_predicted, tf.float32)
