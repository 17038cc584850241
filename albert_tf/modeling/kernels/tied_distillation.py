"""Distillation of a teacher's probabilities at all positions, without ever holding all logits of the two models."""

import typing

import tensorflow as tf

from albert_tf.modeling.kernels import tied_cross_entropy


class Scorer(typing.NamedTuple):
    """Scores tokens by a table of embeddings: states [N, E], table float32 [V, E] and bias float32 [V]."""

    states: tf.Tensor
    table: tf.Tensor
    bias: tf.Tensor


def tied_distillation(
    student: Scorer, teacher: Scorer, weights: tf.Tensor, temperature: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the weighted sums of T^2 KL(softmax(t / T) || softmax(s / T)) and of equal guesses, float32 scalars.

    The student gives the logits s of N rows; the teacher, whose E may differ, t. Weights are float32 [N], 0 for rows
    that don't count, and T is the temperature. Products are in the dtype of the states; softmax, divergence and sums in
    float32. The teacher gets no gradient.
    """
    num_rows = student.states.shape[0] or tf.shape(student.states)[0]
    taught_table = tf.cast(teacher.table, teacher.states.dtype)

    @tf.custom_gradient
    def apply(states, table, bias):
        cast_table = tf.cast(table, states.dtype)

        def compute(chunk_states, chunk_taught, chunk_weights):
            learnt = _log_softmax(chunk_states, cast_table, bias, temperature)
            taught = _log_softmax(chunk_taught, taught_table, teacher.bias, temperature)
            probabilities = tf.exp(taught)
            divergence = tf.reduce_sum(probabilities * (taught - learnt), axis=-1)
            agrees = tf.equal(tf.argmax(taught, axis=-1), tf.argmax(learnt, axis=-1))
            gradient = (tf.exp(learnt) - probabilities) * (temperature * chunk_weights)[:, None]
            cast_gradient = tf.cast(gradient, chunk_states.dtype)
            return (
                temperature**2 * tf.reduce_sum(divergence * chunk_weights),
                tf.reduce_sum(tf.cast(agrees, tf.float32) * chunk_weights),
                tf.matmul(cast_gradient, cast_table),
                tf.cast(tf.matmul(cast_gradient, chunk_states, transpose_a=True), tf.float32),
                tf.reduce_sum(gradient, axis=0),
            )

        loss, agreement, *gradients = tied_cross_entropy.sum_over_chunks(
            compute, states, teacher.states, weights, num_rows, table
        )

        def gradient(loss_upstream, _):
            return [tf.cast(loss_upstream, values.dtype) * values for values in gradients]

        return (loss, agreement), gradient

    return apply(*student)


def uncounted_flops(num_rows: int, embedding_size: int, taught_size: int, vocab_size: int) -> int:
    """Returns the operations of N rows that a compiler misses; sizes are E of student and teacher."""
    of_student, of_teacher = (
        tied_cross_entropy.uncounted_flops(num_rows, size, vocab_size) for size in (embedding_size, taught_size)
    )
    return of_student + of_teacher // 3


def _log_softmax(states, table, bias, temperature):
    logits = tf.cast(tf.matmul(states, table, transpose_b=True), tf.float32) + bias
    return tf.nn.log_softmax(logits / temperature)
