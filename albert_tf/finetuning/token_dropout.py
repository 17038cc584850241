"""Hiding pieces of training texts, so that a classifier doesn't learn a few of them by heart."""

import dataclasses

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.objectives.objective import Batch
from albert_tf.tokenization import Vocabulary
from albert_tf.tokenization.vocabulary import MASK, SPECIAL_TOKENS


@dataclasses.dataclass(frozen=True)
class TokenDropout:
    """Replaces pieces by [MASK], others each time (Iyyer et al. 2015, section 3, who leave words out).

    Attributes:
        rate: The share of the pieces.
        vocabulary: Of the pieces; its special tokens are never replaced.

    Raises:
        InputError: The rate is not in [0, 1), or a special token is missing.
    """

    rate: float
    vocabulary: Vocabulary

    def __post_init__(self):
        if not 0.0 <= self.rate < 1.0:
            raise InputError(f"`token_dropout` must be at least 0 and less than 1. Received: {self.rate}")
        self.vocabulary.require(*SPECIAL_TOKENS)

    def __call__(self, batch: Batch, seed: tf.Tensor) -> Batch:
        """Returns the batch with other `input_ids` [B, ...]; the seed is int64 [2]."""
        input_ids = batch["input_ids"]
        is_special = tf.reduce_any([input_ids == self.vocabulary.id_of(token) for token in SPECIAL_TOKENS], axis=0)
        is_drawn = tf.random.stateless_uniform(tf.shape(input_ids), seed) < self.rate
        mask_id = tf.constant(self.vocabulary.id_of(MASK), input_ids.dtype)
        return {**batch, "input_ids": tf.where(is_drawn & ~is_special, mask_id, input_ids)}
