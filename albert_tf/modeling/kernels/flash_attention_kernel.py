"""Attention inside the fast memory of a TPU core: Pallas kernels, which need JAX.

Like FlashAttention (Dao et al. 2022) they never write scores to memory, and recompute them in the backward pass. They
are simpler, because an ALBERT's sequences are short: all scores of one head fit at once, so that a softmax needs no
running maximum. They read columns as wide as the TPU's registers, one head or several, as the linear layer leaves them.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas
from jax.experimental.pallas import tpu as pallas_tpu

from albert_tf.modeling.kernels.elementwise import drop_threshold
from albert_tf.modeling.kernels.positions import HIDDEN_SCORE, VisibleKeys

LANES = 128


def forward(projections, visible, seed, *, head_size, dropout_rate, interpret=False):
    """Returns softmax(query key^T / sqrt(head_size) + bias) value of all heads, [B, R, H].

    Projections are one array [B, S, 3 H], or queries [B, R, H] and the others [B, S, 2 H], with 128 columns of each in
    turn; `head_size` divides 128. The bias is [B, 1, S] and the seed uint32 [2]. `interpret` runs on any device.
    """
    queries = projections[0]
    hidden_size = sum(array.shape[2] for array in projections) // 3
    context = jax.ShapeDtypeStruct((*queries.shape[:2], hidden_size), queries.dtype)
    kernel = functools.partial(_forward_kernel, head_size=head_size, dropout_rate=dropout_rate)
    (context,) = _call(kernel, seed, visible, projections, [context], context.shape, 2, head_size, interpret)
    return context


def backward(projections, visible, seed, upstream, *, head_size, dropout_rate, interpret=False):
    """Returns the gradients of the projections, and their sums over the rows of each example, float32 [B, 1, ...].

    `upstream` is the gradient of the result of `forward`, [B, R, H]; the other arguments are those of `forward`.
    """
    kernel = functools.partial(_backward_kernel, head_size=head_size, dropout_rate=dropout_rate)
    sums = [jax.ShapeDtypeStruct((array.shape[0], 1, array.shape[2]), jnp.float32) for array in projections]
    inputs, outputs = [*projections, upstream], [*projections, *sums]
    gradients = _call(kernel, seed, visible, inputs, outputs, upstream.shape, 5, head_size, interpret)
    return gradients[: len(sums)], gradients[len(sums) :]


def _call(kernel, seed, visible, inputs, outputs, context_shape, num_products, head_size, interpret):
    """Runs a kernel once for each example and each 128 columns of its heads."""
    batch_size, num_rows, hidden_size = context_shape
    length = visible.bias.shape[2]
    visible = _laid_out(visible)

    def block(array):
        shape = (1, array.shape[1], array.shape[2] * LANES // hidden_size)
        return pallas.BlockSpec(shape, lambda example, column: (example, 0, column))

    return pallas.pallas_call(
        kernel,
        out_shape=[jax.ShapeDtypeStruct(array.shape, array.dtype) for array in outputs],
        grid=(batch_size, hidden_size // LANES),
        in_specs=[
            pallas.BlockSpec(memory_space=pallas_tpu.SMEM),
            jax.tree.map(_whole_block, visible),
            *map(block, inputs),
        ],
        out_specs=[*map(block, outputs)],
        compiler_params=pallas_tpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
        cost_estimate=pallas.CostEstimate(
            flops=num_products * 2 * batch_size * num_rows * length * hidden_size,
            transcendentals=batch_size * num_rows * length * hidden_size // head_size,
            bytes_accessed=sum(
                array.size * array.dtype.itemsize for array in jax.tree.leaves([*inputs, visible, *outputs])
            ),
        ),
        interpret=interpret,
    )(seed, visible, *inputs)


def _laid_out(visible):
    """Returns properties of queries as columns and those of keys as rows, each with the example first."""
    by_query = [visible.query_documents, visible.last_keys]
    documents, positions = (array if array is None else array[:, :, None] for array in by_query)
    keys = visible.key_documents
    return VisibleKeys(visible.bias, documents, keys if keys is None else keys[:, None], positions)


def _whole_block(array):
    """Returns the block of an example, or of all of them where the array has one."""
    number = int(array.shape[0] > 1)
    return pallas.BlockSpec((1, *array.shape[1:]), lambda example, column: (number * example, 0, 0))


def _forward_kernel(seed, visible, *arrays, head_size, dropout_rate):
    *projections, context = arrays
    bias = _bias(visible)
    for head in range(LANES // head_size):
        query, key, value = _read_head(projections, head, head_size)
        probs = _probabilities(query, key, bias)
        kept = (probs * _dropout_factor(seed, probs.shape, head, head_size, dropout_rate)).astype(value.dtype)
        context[0, :, _columns(head, head_size)] = _product(kept, value, 1, 0).astype(context.dtype)


def _backward_kernel(seed, visible, *arrays, head_size, dropout_rate):
    count = len(arrays) // 3
    projections, upstream, gradients, sums = arrays[:count], arrays[count], arrays[count + 1 : -count], arrays[-count:]
    bias = _bias(visible)
    for head in range(LANES // head_size):
        query, key, value = _read_head(projections, head, head_size)
        context_gradient = upstream[0, :, _columns(head, head_size)]
        probs = _probabilities(query, key, bias)
        factor = _dropout_factor(seed, probs.shape, head, head_size, dropout_rate)
        value_gradient = _product((probs * factor).astype(value.dtype), context_gradient, 0, 0)
        probs_gradient = _product(context_gradient, value, 1, 1) * factor
        mean = jnp.sum(probs * probs_gradient, axis=-1, keepdims=True)
        scores_gradient = (probs * (probs_gradient - mean) * head_size**-0.5).astype(query.dtype)
        query_gradient = _product(scores_gradient, key, 1, 0)
        key_gradient = _product(scores_gradient, query, 0, 0)
        head_gradients = query_gradient, key_gradient, value_gradient
        _write_head(gradients, head, head_size, head_gradients)
        _write_head(sums, head, head_size, [jnp.sum(each, axis=0, keepdims=True) for each in head_gradients])


def _columns(head, head_size, part=0):
    start = part * LANES + head * head_size
    return slice(start, start + head_size)


def _head_places(references, head, head_size):
    """Yields where queries, keys and values of a head are: a reference and its columns."""
    for reference in references:
        for part in range(reference.shape[2] // LANES):
            yield reference, _columns(head, head_size, part)


def _read_head(references, head, head_size):
    return [reference[0, :, columns] for reference, columns in _head_places(references, head, head_size)]


def _write_head(references, head, head_size, values):
    for (reference, columns), value in zip(_head_places(references, head, head_size), values):
        reference[0, :, columns] = value.astype(reference.dtype)


def _bias(visible):
    """Computes `visible_keys.bias_of` for one example, float32 [1, S] or [R, S]."""
    bias = visible.bias[0]
    if visible.key_documents is not None:
        bias = jnp.where(visible.query_documents[0] == visible.key_documents[0], bias, HIDDEN_SCORE)
    if visible.last_keys is not None:
        positions = visible.last_keys[0]
        keys = jax.lax.broadcasted_iota(jnp.int32, (positions.shape[0], bias.shape[1]), 1)
        bias = jnp.where(keys <= positions, bias, HIDDEN_SCORE)
    return bias


def _probabilities(query, key, bias):
    """Returns the softmax of one head's scores, float32 [R, S]."""
    scores = _product(query, key, 1, 1) * query.shape[1] ** -0.5 + bias
    weights = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
    return weights / jnp.sum(weights, axis=-1, keepdims=True)


def _product(left, right, left_axis, right_axis):
    dimensions = (((left_axis,), (right_axis,)), ((), ()))
    return jax.lax.dot_general(left, right, dimensions, preferred_element_type=jnp.float32)


def _dropout_factor(seed, shape, head, head_size, dropout_rate):
    """Returns the factor of one head's probabilities that `dropout` would apply to an array [B, N, R, S]."""
    if not dropout_rate:
        return 1.0
    heads_together = LANES // head_size
    example, column = pallas.program_id(0), pallas.program_id(1)
    head = (example * pallas.num_programs(1) + column) * heads_together + head
    row = jax.lax.broadcasted_iota(jnp.uint32, shape, 0) + (head * shape[0]).astype(jnp.uint32)
    position = row * jnp.uint32(shape[1]) + jax.lax.broadcasted_iota(jnp.uint32, shape, 1)
    bits = _xor_shift(position + seed[0], 16) * jnp.uint32(0x7FEB352D)
    bits = _xor_shift(bits ^ seed[1], 15) * jnp.uint32(0x846CA68B)
    is_kept = _xor_shift(bits, 16) >= jnp.uint32(drop_threshold(dropout_rate))
    return jnp.where(is_kept, jnp.float32(1.0 / (1.0 - dropout_rate)), jnp.float32(0.0))


def _xor_shift(bits, distance):
    return bits ^ (bits >> jnp.uint32(distance))
