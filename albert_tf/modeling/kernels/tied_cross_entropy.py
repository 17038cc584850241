"""The masked language model's loss without ever holding all its logits.

At 76 predictions and 30,000 tokens, logits take 9 MB an example, and their gradient as much: more than a rematerialised
encoder. The loss is a sum over predictions, and its gradient is linear in the one number that comes in. So both are
computed chunk by chunk in the forward pass, which keeps only the gradients of the states, of the table and of the bias.

python -m benchmarks.largest_batches --models=base            (how large a batch fits a chip)
python -m benchmarks.train_step --only=albert_tf,products     (time on a CPU)
"""

import typing

import tensorflow as tf

from albert_tf.base.compilation import fused, is_compiled_whole

# How many predictions' logits are held at once.
_ROWS_IN_A_CHUNK = 4096


def tied_cross_entropy(
    states: tf.Tensor, table: tf.Tensor, bias: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the weighted sums of -log softmax(states table^T + bias)[label] and of right guesses, float32 scalars.

    Takes states [N, E], embeddings float32 [V, E], the bias float32 [V], labels int32 [N], and weights float32 [N], 0
    for predictions that don't count. Products are in the dtype of `states`; softmax, loss and sums in float32.
    """
    num_rows = states.shape[0] or tf.shape(states)[0]

    @tf.custom_gradient
    def apply(states, table, bias):
        cast_table = tf.cast(table, states.dtype)

        def compute(chunk_states, chunk_labels, chunk_weights):
            logits = tf.matmul(chunk_states, cast_table, transpose_b=True)
            largest, total = _softmax_sums(logits, bias)
            of_label = _logits_of(chunk_labels, logits, bias)
            losses = largest + tf.math.log(total) - of_label
            is_right = tf.equal(of_label, largest)
            cast_gradient, bias_gradient = _logit_gradient(logits, bias, chunk_labels, chunk_weights, largest, total)
            return (
                tf.reduce_sum(losses * chunk_weights),
                tf.reduce_sum(tf.cast(is_right, tf.float32) * chunk_weights),
                tf.matmul(cast_gradient, cast_table),
                tf.cast(tf.matmul(cast_gradient, chunk_states, transpose_a=True), tf.float32),
                bias_gradient,
            )

        loss, right, *gradients = sum_over_chunks(compute, states, labels, weights, num_rows, table)

        def gradient(loss_upstream, _):
            return [tf.cast(loss_upstream, values.dtype) * values for values in gradients]

        return (loss, right), gradient

    return apply(states, table, bias)


@fused
def _softmax_sums(logits, bias):
    """Returns the largest logit of each row [N], and the sum of exp(logit - largest) [N]; `logits` without bias."""
    logits = tf.cast(logits, tf.float32) + bias
    largest = tf.reduce_max(logits, axis=-1)
    return largest, tf.reduce_sum(tf.exp(logits - largest[:, None]), axis=-1)


def _logits_of(labels, logits, bias):
    if is_compiled_whole():
        # A third sum in the same pass over the logits, where a gather would be a pass of its own.
        return tf.reduce_sum(tf.where(_is_label(labels, logits), tf.cast(logits, tf.float32) + bias, 0.0), axis=-1)
    return tf.cast(tf.gather(logits, labels, batch_dims=1), tf.float32) + tf.gather(bias, labels)


@fused
def _logit_gradient(logits, bias, labels, weights, largest, total):
    """Returns the gradient of the weighted sum of losses: of the logits [N, V] in their dtype, and of the bias [V]."""
    exponentials = tf.exp(tf.cast(logits, tf.float32) + bias - largest[:, None])
    weights_of_labels = tf.where(_is_label(labels, logits), weights[:, None], 0.0)
    gradient = exponentials * (weights / total)[:, None] - weights_of_labels
    return tf.cast(gradient, logits.dtype), tf.reduce_sum(gradient, axis=0)


def _is_label(labels, logits):
    return tf.equal(tf.range(logits.shape[-1])[None], labels[:, None])


def uncounted_flops(num_rows: int, embedding_size: int, vocab_size: int) -> int:
    """Returns the floating-point operations of N rows that a compiler misses when it counts the loop's body once."""
    num_chunks, size = count_chunks(num_rows, _ROWS_IN_A_CHUNK)
    # Logits, and the gradients of states and table; two operations for each product.
    return (num_chunks - 1) * 3 * 2 * size * embedding_size * vocab_size


def count_chunks(num_rows: int, most: int) -> tuple[int, int]:
    """Returns the number of chunks, and the rows of each, at most `most`."""
    num_chunks = -(-num_rows // most)
    return num_chunks, -(-num_rows // num_chunks)


def sum_over_chunks(compute, states, labels, weights, num_rows, table):
    """Returns the results of `compute` for all rows, computed a chunk at a time.

    Given some rows of states [N, E], labels [N, ...] and weights float32 [N], 0 for rows that don't count, it returns
    two sums, the gradient of these rows' states, and those of the table float32 [V, E] and of the bias. The results are
    the same five: sums over all rows, and the gradient of the states in one piece. N is a number or a scalar.
    """
    num_chunks, size = count_chunks(num_rows, _ROWS_IN_A_CHUNK) if isinstance(num_rows, int) else (1, None)
    if num_chunks == 1:
        return compute(states, labels, weights)
    padding = num_chunks * size - num_rows

    def split(values):
        padded = tf.pad(values, [[0, padding]] + [[0, 0]] * (values.shape.rank - 1))
        return tf.reshape(padded, [num_chunks, size, *values.shape[1:]])

    chunks = [split(values) for values in (states, labels, weights)]

    def add_one(index, loss, right, state_gradients, table_gradient, bias_gradient):
        more = compute(*(tf.gather(values, index) for values in chunks))
        state_gradients = tf.tensor_scatter_nd_update(state_gradients, [[index]], more[2][None])
        return (
            index + 1,
            loss + more[0],
            right + more[1],
            state_gradients,
            table_gradient + more[3],
            bias_gradient + more[4],
        )

    zero = tf.zeros([])
    start = (tf.constant(0), zero, zero, tf.zeros_like(chunks[0]), tf.zeros_like(table), tf.zeros(table.shape[:1]))
    _, loss, right, state_gradients, table_gradient, bias_gradient = tf.while_loop(
        lambda index, *_: index < num_chunks, add_one, start, maximum_iterations=num_chunks
    )
    flat = tf.reshape(state_gradients, [num_chunks * size, *states.shape[1:]])[:num_rows]
    return loss, right, flat, table_gradient, bias_gradient


# Distillation of a teacher's probabilities at all positions, without ever holding all logits of the two models.


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

        loss, agreement, *gradients = sum_over_chunks(compute, states, teacher.states, weights, num_rows, table)

        def gradient(loss_upstream, _):
            return [tf.cast(loss_upstream, values.dtype) * values for values in gradients]

        return (loss, agreement), gradient

    return apply(*student)


def uncounted_distillation_flops(num_rows: int, embedding_size: int, taught_size: int, vocab_size: int) -> int:
    """Returns the operations of N rows that a compiler misses; sizes are E of student and teacher."""
    of_student, of_teacher = (uncounted_flops(num_rows, size, vocab_size) for size in (embedding_size, taught_size))
    return of_student + of_teacher // 3


def _log_softmax(states, table, bias, temperature):
    logits = tf.cast(tf.matmul(states, table, transpose_b=True), tf.float32) + bias
    return tf.nn.log_softmax(logits / temperature)
