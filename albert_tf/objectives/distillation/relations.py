"""Relations among queries, among keys and among values (MiniLMv2; Wang et al. 2021, section 3)."""

import math
import types

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.objectives.distillation.lesson import Lesson, scores_of_heads
from albert_tf.objectives.flops import encoder_products

# Columns of the teacher in a relation head where nobody says how many heads there are: as in the paper, 48 of 768.
_COLUMNS = 16


class Relations(Lesson):
    """How much each piece is like each other one, by queries, keys and values of one application of a block.

    What all heads have is laid side by side and cut anew into relation heads, so the two models may differ in width, in
    heads and in depth. For X of queries, keys and values the relations are softmax(X X^T / sqrt(d)), with d columns of
    a head; the loss is KL(teacher || student), the mean over relation heads and over all pieces.
    """

    coefficients = types.MappingProxyType({f"{name}_relation_loss": 1.0 for name in ("query", "key", "value")})
    masked_lm_coefficient = 0.0
    own_settings = ("relation_heads", "teacher_layer")

    def check(self, config, teacher, source):
        self._num_heads(config, teacher)
        layer = self.settings["teacher_layer"]
        if not -1 <= layer < teacher.num_blocks:
            raise InputError(
                f"`teacher_layer={layer}` must be one of the {teacher.num_blocks} layers of {source}, 0 to "
                f"{teacher.num_blocks - 1}, or -1 for the last"
            )

    def compute(self, student, teacher, bias, weights):
        layers = student.config.num_blocks - 1, _layer(self.settings, teacher.config)
        learnt, taught = (
            reading.encoder.query_key_value(reading.outputs["hidden_states"], layer)
            for reading, layer in zip((student, teacher), layers)
        )
        num_heads, total = self._num_heads(student.config, teacher.config), tf.reduce_sum(weights)
        return {
            name: (relation_divergence(tf.stop_gradient(known), found, num_heads, bias, weights), total)
            for name, known, found in zip(self.coefficients, taught, learnt)
        }

    def products(self, config, teacher, max_seq_length):
        """Returns 3 (S H^2 + S^2 H) of the student, and of the teacher the same and the blocks below."""

        def of_layer(width):
            return 3 * max_seq_length * width * (width + max_seq_length)

        number = _layer(self.settings, teacher)
        below = teacher.replace(num_hidden_layers=number + 1, num_hidden_groups=1, inner_group_num=1)
        # Its queries, keys and values are counted above.
        keys_and_values = 2 * max_seq_length * teacher.hidden_size**2
        taught = encoder_products(below, max_seq_length, 0) - keys_and_values + of_layer(teacher.hidden_size)
        return of_layer(config.hidden_size), taught

    def _num_heads(self, config: AlbertConfig, teacher: AlbertConfig) -> int:
        """Returns the number of relation heads, which divides both widths."""
        widths, number = (config.hidden_size, teacher.hidden_size), self.settings["relation_heads"]
        common = math.gcd(*widths)
        if number == 0:
            return max(each for each in range(1, max(1, widths[1] // _COLUMNS) + 1) if common % each == 0)
        if number < 0 or common % number:
            raise InputError(
                f"`relation_heads={number}` must divide the width of the student, {widths[0]}, and that of the "
                f"teacher, {widths[1]}; use a divisor of {common}, or 0 to have it chosen"
            )
        return number


def relation_divergence(
    taught: tf.Tensor, learnt: tf.Tensor, num_heads: int, bias: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
    """Returns the weighted sum over positions of KL(teacher || student), averaged over relation heads.

    Args:
        taught: [B, S, H] of the teacher.
        learnt: [B, S, H] of the student; its H may be another.
        num_heads: Number of relation heads.
        bias: As for `Lesson.compute`.
        weights: As for `Lesson.compute`.
    """
    known = tf.nn.log_softmax(_scores(taught, num_heads, bias))
    divergences = _divergence(known, _scores(learnt, num_heads, bias))
    return tf.reduce_sum(tf.reduce_mean(divergences, axis=1) * weights)


def _divergence(known, scores):
    """Returns KL of log-probabilities and the softmax of scores; the gradient is 0 to the bit where they are equal."""

    @tf.custom_gradient
    def apply(scores):
        found, probabilities = tf.nn.log_softmax(scores), tf.exp(known)

        def gradient(upstream):
            return (tf.exp(found) - probabilities) * upstream[..., None]

        return tf.reduce_sum(probabilities * (known - found), axis=-1), gradient

    return apply(scores)


def _scores(states, num_heads, bias):
    """Returns X X^T / sqrt(d) of each head, float32 [B, heads, S, S], and what hides keys added."""
    return scores_of_heads(states, states, num_heads) + bias[:, None]


def _layer(settings, teacher):
    """Returns the number of the teacher's application that is read, from 0."""
    return settings["teacher_layer"] % teacher.num_blocks
