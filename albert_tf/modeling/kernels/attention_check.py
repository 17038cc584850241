"""Checks on the training device that kernels of attention compute the same as plain operations.

Those of `flash_attention` are compiled by the TPU's own compiler, which differs by kind and version of TPU, and that of
`cudnn_attention` comes with the GPU's cuDNN; so they are tried before a run relies on them.
"""

import collections.abc
import functools
import itertools

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import first_line
from albert_tf.modeling.kernels.attention import plain_attention
from albert_tf.modeling.kernels.cudnn_attention import cudnn_attention
from albert_tf.modeling.kernels.flash_attention import COLUMNS_TOGETHER, flash_attention
from albert_tf.modeling.kernels.linear import add_bias
from albert_tf.modeling.kernels.positions import HIDDEN_SCORE, VisibleKeys, visible_keys

# Given products (whole queries, keys and values side by side), their biases, what is seen and a seed, returns the
# context.
Attention = collections.abc.Callable[[list[tf.Tensor], list[tf.Tensor], VisibleKeys, tf.Tensor | None], tf.Tensor]

# A TPU rounds the factors of every product to bfloat16, an error of up to 2^-8, whatever the dtype. From projections
# to gradients, each of the two computations rounds at most eight times in a row: queries, keys, scores, probabilities,
# values, the gradients of probabilities and of scores, and the result. So the two may differ by 16 times 2^-8 of the
# largest value; in practice roundings partly cancel. A wrong position differs by about half of the largest value.
TOLERANCE = 16 * 2.0**-8

_BATCH_SIZE = 2
# Two columns of the kernels' grid show every fault.
_MOST_COLUMNS = 2 * COLUMNS_TOGETHER


def attention_functions(head_size: int, dropout_rate: float) -> tuple[Attention, Attention]:
    """Returns plain attention and the Pallas kernels, as functions of the same arguments."""
    options = {"head_size": head_size, "dropout_rate": dropout_rate}

    def plain(products, biases, visible, seed):
        return plain_attention(_with_biases(products, biases), visible, seed, **options)

    def flash(products, biases, visible, seed):
        hidden_size = sum(product.shape[-1] for product in products) // 3
        in_turn = [[_in_turn(array, hidden_size) for array in arrays] for arrays in (products, biases)]
        return flash_attention(*in_turn, visible, seed, **options)

    return plain, flash


def cudnn_functions(head_size: int) -> tuple[Attention, Attention]:
    """Returns plain attention and cuDNN's kernel, as functions of the same arguments."""
    plain, _ = attention_functions(head_size, dropout_rate=0.0)

    def cudnn(products, biases, visible, seed):
        return cudnn_attention(_with_biases(products, biases), visible, head_size)

    return plain, cudnn


def _with_biases(products, biases):
    return [add_bias(product, bias) for product, bias in zip(products, biases)]


def _in_turn(array, hidden_size):
    """Reorders whole queries, keys and values side by side to `COLUMNS_TOGETHER` columns of each in turn."""
    *sizes, columns = array.shape
    whole = tf.reshape(array, [*sizes, columns // hidden_size, -1, COLUMNS_TOGETHER])
    return tf.reshape(tf.experimental.numpy.swapaxes(whole, -3, -2), [*sizes, columns])


def find_fault(
    strategy: tf.distribute.Strategy,
    expected: Attention,
    found: Attention,
    hidden_size: int,
    max_seq_length: int,
    num_positions: int,
    dtype: str,
    is_causal: bool = False,
    knows_documents: bool = True,
) -> str | None:
    """Compares small attentions on every replica, forward and backward; returns the end of a sentence, or None.

    It tells how `found` fails or differs beyond `TOLERANCE`. `num_positions` queries are computed where only some
    positions are read; `knows_documents` says whether `found` supports documents, and causality for some positions.
    """
    compare = make_comparison(strategy, expected, found, dtype)
    counts = (None,) if is_causal and not knows_documents else (None, num_positions)
    for num_rows, has_documents in itertools.product(counts, (False, True) if knows_documents else (False,)):
        try:
            differences = compare(
                *_draw(min(hidden_size, _MOST_COLUMNS), max_seq_length, num_rows, has_documents, is_causal)
            )
            per_replica = [values.numpy() for values in strategy.experimental_local_results(differences)]
        except Exception as error:  # the compiler and JAX raise errors of many types
            name, message = type(error).__name__, first_line(error)
            return f"fail with {name}" if message == name else f"fail with {name}: {message[:200]}"
        largest = float(np.max(per_replica))
        if not largest <= TOLERANCE:
            rows = "all positions" if num_rows is None else f"{num_rows} positions"
            documents = " of several documents" if has_documents else ""
            return (
                f"differ from plain operations by {largest:.2g} of the largest value where {rows}{documents} are read"
            )
    return None


def make_comparison(
    strategy: tf.distribute.Strategy, expected: Attention, found: Attention, dtype: str
) -> collections.abc.Callable:
    """Returns a tf.function of the results of `_draw`, which returns each replica's largest difference, a scalar.

    It compares the context and all gradients, each relative to its largest absolute value. NaN counts as infinite.
    """

    def compute(attend, products, visible, seed, upstream):
        biases = [tf.zeros(product.shape[-1:]) for product in products]
        with tf.GradientTape() as tape:
            tape.watch([products, biases])
            context = attend(products, biases, visible, seed)
        gradients, sums = tape.gradient(context, [products, biases], tf.cast(upstream, context.dtype))
        hidden_size = upstream.shape[-1]
        parts = [part for array in gradients for part in tf.split(array, array.shape[-1] // hidden_size, axis=-1)]
        # All in one, because that of the keys is 0 but for rounding: a softmax doesn't see what is added to all scores.
        return [tf.cast(values, tf.float32) for values in (context, *parts, tf.concat(sums, axis=0))]

    def replica_compare(projections, given, seed, upstream):
        visible = VisibleKeys(**given)
        projections = [tf.cast(array, dtype) for array in projections]
        shares = []
        for right, other in zip(*(compute(each, projections, visible, seed, upstream) for each in (expected, found))):
            difference = tf.where(tf.math.is_finite(other), tf.abs(right - other), np.inf)
            shares.append(tf.reduce_max(difference) / tf.reduce_max(tf.abs(right)))
        return tf.reduce_max(tf.stack(shares))

    @tf.function(autograph=False)
    def compare(projections, visible, seed, upstream):
        given = {
            name: values for name, values in visible._asdict().items() if values is not None
        }  # a TPU takes no None
        return strategy.run(replica_compare, args=(projections, given, seed, upstream))

    return compare


def _draw(hidden_size, max_seq_length, num_rows, has_documents, is_causal):
    """Returns random projections, visible keys (some of one example hidden), a seed and an upstream gradient."""
    draws = np.random.default_rng(0)
    shapes = [[max_seq_length, 3]] if num_rows is None else [[num_rows, 1], [max_seq_length, 2]]
    projections = [draws.normal(size=[_BATCH_SIZE, rows, count * hidden_size]) for rows, count in shapes]
    upstream = draws.normal(size=[_BATCH_SIZE, shapes[0][0], hidden_size])
    bias = np.zeros([_BATCH_SIZE, 1, max_seq_length])
    bias[0, :, -(max_seq_length // 3) :] = HIDDEN_SCORE
    *projections, upstream, bias = (tf.constant(array, tf.float32) for array in (*projections, upstream, bias))
    draw = functools.partial(draws.integers, size=[_BATCH_SIZE, max_seq_length])
    documents = tf.constant(draw(3), tf.int32) if has_documents else None
    positions = None if num_rows is None else tf.constant(draw(max_seq_length)[:, :num_rows], tf.int32)
    return projections, visible_keys(bias, documents, is_causal, positions), tf.constant([1, 2]), upstream
