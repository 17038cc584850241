"""Chooses the next token, given the model's logits.

One uniform number decides, by the inverse of the distribution function. It is drawn where the batch is made, so that a
text's tokens don't depend on what else is computed.
"""

import typing

import tensorflow as tf

from albert_tf.generation.options import GenerationOptions

# The logit of what must not come.
NEVER = -1e30


class ChoiceKind(typing.NamedTuple):
    """The options that the graph is traced for."""

    is_greedy: bool  # whether the most probable piece is taken
    penalizes: bool  # whether pieces that were there already become less probable
    top_k: int | None  # from how many pieces to draw; None for all
    has_top_p: bool  # whether to draw from the most probable ones alone, by their sum

    @classmethod
    def of(cls, options: GenerationOptions, vocab_size: int) -> "ChoiceKind":
        penalizes = options.repetition_penalty != 1
        if options.is_greedy:
            return cls(True, penalizes, None, False)
        top_k = None if options.top_k is None or options.top_k >= vocab_size else int(options.top_k)
        return cls(False, penalizes, top_k, options.top_p is not None and options.top_p < 1)


class ChoiceNumbers(typing.NamedTuple):
    """The numbers of `GenerationOptions`, float32 scalars."""

    repetition_penalty: tf.Tensor
    temperature: tf.Tensor
    top_p: tf.Tensor

    @classmethod
    def of(cls, options: GenerationOptions) -> "ChoiceNumbers":
        values = options.repetition_penalty, options.temperature, 1.0 if options.top_p is None else options.top_p
        return cls(*(tf.constant(value, tf.float32) for value in values))


def penalize(logits: tf.Tensor, is_seen: tf.Tensor, penalty: tf.Tensor) -> tf.Tensor:
    """Lowers logits [B, V] of tokens that were seen, bool [B, V], by the repetition penalty."""
    return tf.where(is_seen, tf.where(logits > 0, logits / penalty, logits * penalty), logits)


def choose_pieces(logits: tf.Tensor, draws: tf.Tensor, kind: ChoiceKind, numbers: ChoiceNumbers) -> tf.Tensor:
    """Returns a token for each row, int32 [B], given logits float32 [B, V] and draws float32 [B], uniform in [0, 1)."""
    if kind.is_greedy:
        return tf.argmax(logits, axis=-1, output_type=tf.int32)
    ids = None
    if kind.top_k is not None or kind.has_top_p:
        logits, ids = tf.math.top_k(logits, kind.top_k or logits.shape[-1])  # the most probable first
    # The largest is taken off first: a low temperature must not make it infinite.
    scaled = (logits - tf.reduce_max(logits, axis=-1, keepdims=True)) / numbers.temperature
    probabilities = tf.nn.softmax(scaled)
    ends = tf.cumsum(probabilities, axis=-1)
    if kind.has_top_p:
        # A piece is left out where those before it have the probability already; the first never is.
        is_kept = ends - probabilities < numbers.top_p
        probabilities = tf.where(is_kept, probabilities, 0.0)
        ends = tf.cumsum(probabilities, axis=-1)
    target = draws[:, None] * ends[:, -1:]
    place = tf.reduce_sum(tf.cast(ends <= target, tf.int32), axis=-1)
    # Rounding may carry it past the last that has a probability.
    last = tf.reduce_max(tf.where(probabilities > 0, tf.range(probabilities.shape[-1]), 0), axis=-1)
    place = tf.minimum(place, last)
    return place if ids is None else tf.gather(ids, place, batch_dims=1)
