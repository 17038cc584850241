"""Drawing tokens from a masked language model's predictions, without ever holding all of its logits.

One uniform number for each token decides, by the inverse of the distribution function. It is drawn where the batch is
made, so that an example's tokens are the same on whichever replica it is computed. Probabilities and sums are in
float32, because in bfloat16 a sum of thousands of probabilities stands still.

python -m benchmarks.objective_steps        (its share of a step)
"""

import tensorflow as tf

from albert_tf.base.compilation import fused
from albert_tf.modeling.kernels.tied_cross_entropy import count_chunks

# How many rows' logits are held at once.
_ROWS_IN_A_CHUNK = 2048
# Probabilities are summed up in blocks first, so that one row's sums are of few numbers.
_PIECES_IN_A_BLOCK = 256
# The logit of padding, which is no token.
_NEVER = -1e30


def sample_pieces(states: tf.Tensor, table: tf.Tensor, bias: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
    """Returns tokens drawn from softmax(states table^T + bias), int32 [N]; no gradient passes.

    Takes states [N, E], embeddings float32 [V, E], the bias float32 [V], and draws float32 [N], uniform in [0, 1).
    """
    states, table, bias = map(tf.stop_gradient, (states, tf.cast(table, states.dtype), bias))
    # What fills the last block up is never drawn. The table is padded, and not the logits, which are far more.
    padding = -table.shape[0] % _PIECES_IN_A_BLOCK
    padded_table = tf.pad(table, [[0, padding], [0, 0]])
    padded_bias = tf.pad(bias, [[0, padding]], constant_values=_NEVER)

    def sample(chunk_states, chunk_draws):
        logits = tf.matmul(chunk_states, padded_table, transpose_b=True)
        return tf.minimum(_sample_rows(logits, padded_bias, chunk_draws), table.shape[0] - 1)

    num_rows = states.shape[0]
    num_chunks, size = count_chunks(num_rows, _ROWS_IN_A_CHUNK) if num_rows else (1, None)
    if num_chunks == 1:
        return sample(states, draws)
    padding = num_chunks * size - num_rows
    states = tf.reshape(tf.pad(states, [[0, padding], [0, 0]]), [num_chunks, size, states.shape[1]])
    draws = tf.reshape(tf.pad(draws, [[0, padding]]), [num_chunks, size])
    found = tf.map_fn(lambda chunk: sample(*chunk), (states, draws), fn_output_signature=tf.int32)
    return tf.reshape(found, [-1])[:num_rows]


def uncounted_flops(num_rows: int, embedding_size: int, vocab_size: int) -> int:
    """Returns the floating-point operations of N rows that a compiler misses when it counts the loop's body once."""
    num_chunks, size = count_chunks(num_rows, _ROWS_IN_A_CHUNK)
    return (num_chunks - 1) * 2 * size * embedding_size * vocab_size


def _sample_rows(logits, bias, draws):
    """Returns for each row of logits [N, blocks x tokens] where the sum of probabilities passes a draw [N]."""
    num_blocks = logits.shape[1] // _PIECES_IN_A_BLOCK
    largest, block_sums = _block_sums(logits, bias)
    ends = tf.cumsum(block_sums, axis=-1)
    target = draws[:, None] * ends[:, -1:]
    block = _count_until(ends, target, num_blocks)
    before = tf.gather(ends - block_sums, block, batch_dims=1)
    logits_within = tf.gather(tf.reshape(logits, [-1, num_blocks, _PIECES_IN_A_BLOCK]), block, batch_dims=1)
    logits_within = tf.cast(logits_within, tf.float32) + tf.gather(
        tf.reshape(bias, [num_blocks, _PIECES_IN_A_BLOCK]), block
    )
    within = tf.cumsum(tf.exp(logits_within - largest[:, None]), axis=-1)
    return block * _PIECES_IN_A_BLOCK + _count_until(within, target - before[:, None], _PIECES_IN_A_BLOCK)


@fused
def _block_sums(logits, bias):
    """Returns the largest logit of each row [N], and the sums of exp(logit - largest) of its blocks [N, blocks]."""
    logits = tf.cast(logits, tf.float32) + bias
    largest = tf.reduce_max(logits, axis=-1)
    blocks = tf.reshape(
        tf.exp(logits - largest[:, None]), [-1, logits.shape[1] // _PIECES_IN_A_BLOCK, _PIECES_IN_A_BLOCK]
    )
    return largest, tf.reduce_sum(blocks, axis=-1)


def _count_until(ends, target, count):
    """Returns in which of `count` parts a target lies, given their ends; int32 [N]."""
    passed = tf.reduce_sum(tf.cast(ends <= target, tf.int32), axis=-1)
    return tf.minimum(passed, count - 1)  # rounding may carry it past the last one
