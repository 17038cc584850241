"""Attention by cuDNN's fused kernel in a program that XLA compiles for an NVIDIA GPU.

XLA knows the kernel by the names of custom calls, `__cudnn$fmhaSoftmax` and its gradient's, whose settings are JSON
(`CudnnfMHABackendConfig` of XLA). The calls are written as StableHLO here and put into TensorFlow's program by
`XlaCallModule`, which lets them keep the layouts that the kernel reads and writes: nothing is transposed.

python -m benchmarks.gpu_step        (a step with it, without it, and Hugging Face's)
"""

import functools
import json
import typing

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from albert_tf.modeling.kernels.positions import VisibleKeys

_LARGEST_HEAD = 128
_ELEMENT_TYPES = {tf.bfloat16: "bf16", tf.float16: "f16", tf.float32: "f32", tf.int32: "i32"}
# Of XlaCallModule's format; the first that TensorFlow 2.21 writes, and later versions read.
_MODULE_VERSION = 9
# [B, R, N, D] is what the kernel reads; what it writes it names [B, N, R, D], and lays it out in memory as the former.
_WRITTEN_LAYOUT = (3, 1, 2, 0)


class AttentionCase(typing.NamedTuple):
    """The properties of an attention that decide whether the kernel can compute it."""

    batch_size: int | None  # None where it is not fixed
    max_seq_length: int | None  # likewise
    head_size: int
    dtype: str  # what queries, keys and values are computed in
    dropout_rate: float = 0.0  # of the probabilities; 0 outside of training
    has_documents: bool = False  # whether pieces see those of their own document alone
    masks_rows: bool = False  # whether the mask says for each query which keys it sees
    output_attentions: bool = False


def find_obstacle(case: AttentionCase) -> str | None:
    """Returns why the kernel can't compute an attention, as the end of "is not possible with ...", or None."""
    obstacles = {
        f"products in {case.dtype} (see `use_bfloat16`, `use_float16`)": case.dtype not in ("bfloat16", "float16"),
        f"heads of {case.head_size} columns": case.head_size % 8 or case.head_size > _LARGEST_HEAD,
        # The kernel draws what to drop by a seed that is a constant of the program: every step would drop the same.
        f"dropout of attention probabilities ({case.dropout_rate:g})": case.dropout_rate > 0.0,
        "batches of several lengths": None in (case.batch_size, case.max_seq_length),
        "several documents in a sequence": case.has_documents,
        "a mask [B, S, S]": case.masks_rows,
        "attention probabilities as outputs": case.output_attentions,
    }
    return next((obstacle for obstacle, is_there in obstacles.items() if is_there), None)


def cudnn_attention(projections: list[tf.Tensor], visible: VisibleKeys, head_size: int) -> tf.Tensor:
    """Computes `plain_attention` without dropout, [B, R, H], and never holds scores in memory.

    Shapes must be fixed, and the bias [B, 1, S]. Visible keys must come before all others, as with padding: otherwise
    the result is NaN.
    """
    hidden_size = sum(projection.shape[-1] for projection in projections) // 3
    query, key, value = (
        tf.reshape(part, [*part.shape[:2], hidden_size // head_size, head_size])
        for projection in projections
        for part in tf.split(projection, projection.shape[-1] // hidden_size, axis=-1)
    )
    lengths, are_prefixes = _lengths(visible.bias)
    query = tf.where(are_prefixes[:, None, None, None], query, tf.constant(float("nan"), query.dtype))
    num_queries = tf.fill([query.shape[0]], query.shape[1])
    mask = "PADDING" if visible.last_keys is None else "PADDING_CAUSAL"

    @tf.custom_gradient
    def attend(query, key, value):
        operands = [query, key, value]
        context, statistics = _call(False, mask, [*operands, num_queries, lengths])

        def gradient(upstream):
            return _call(True, mask, [*operands, statistics, upstream, context, num_queries, lengths])

        return context, gradient

    return tf.reshape(attend(query, key, value), [*query.shape[:2], hidden_size])


def _lengths(bias):
    """Returns how many keys each example sees, int32 [B], at least 1, and whether they are the first, bool [B]."""
    is_seen = tf.equal(bias[:, 0], 0.0)
    count = tf.reduce_sum(tf.cast(is_seen, tf.int32), axis=1)
    past_last = tf.reduce_max(tf.where(is_seen, tf.range(1, 1 + bias.shape[2])[None], 0), axis=1)
    return tf.maximum(count, 1), tf.equal(count, past_last)


def _call(is_backward, mask, operands):
    """Calls the kernel or its gradient's; `mask` is XLA's name of the kind of mask.

    Operands are queries, keys and values [B, R or S, N, D]; for the gradient the statistics [B, N, R], the gradient of
    the context, and the context [B, R, N, D]; the numbers of queries and of visible keys, int32 [B]. Returns the
    context [B, R, N, D] and the statistics; or the gradients of queries, keys and values.
    """
    query = operands[0]
    batch_size, num_queries, num_heads, _ = query.shape
    statistics = (batch_size, num_heads, num_queries), tf.float32
    results = list(map(_as_written, operands[:3])) if is_backward else [_as_written(query), statistics]
    shapes, dtypes = zip(*results)
    outputs = gen_xla_ops.xla_call_module(
        operands,
        version=_MODULE_VERSION,
        module=_module(is_backward, mask, tuple((tuple(each.shape), each.dtype) for each in operands), tuple(results)),
        Sout=shapes,
        Tout=dtypes,
        platforms=["CUDA"],
        disabled_checks=["platform"],  # so that a machine without a GPU can write the program down
        function_list=[],
    )
    return [tf.transpose(each, [0, 2, 1, 3]) if each.shape.rank == 4 else each for each in outputs]


def _as_written(operand):
    """Returns shape and dtype of the kernel's output [B, N, R, D] for an operand [B, R, N, D]."""
    batch_size, length, num_heads, head_size = operand.shape
    return (batch_size, num_heads, length, head_size), operand.dtype


@functools.cache
def _module(is_backward, mask, operands, results):
    """Returns the StableHLO text of a module that calls the kernel; operands and results are shapes and dtypes."""
    arguments = [f"%arg{number}" for number in range(len(operands))]
    types, result_types = list(map(_type, operands)), list(map(_type, results))
    layouts = [_WRITTEN_LAYOUT if len(shape) == 4 else _row_major(shape) for shape, _ in results]
    # The last result is memory for the kernel to work in, whose size XLA finds out.
    called_types, called_layouts = [*result_types, "tensor<0xui8>"], [*layouts, (0,)]
    kernel = "__cudnn$fmhaSoftmax" + "Backward" * is_backward
    return f"""module @attention {{
  func.func public @main({_join(map("{}: {}".format, arguments, types))}) -> ({_join(result_types)}) {{
    %call:{len(called_types)} = stablehlo.custom_call @{kernel}({_join(arguments)}) {{
      api_version = 2 : i32,
      backend_config = {json.dumps(json.dumps(_settings(is_backward, mask, operands)))},
      operand_layouts = [{_join(_layout(_row_major(shape)) for shape, _ in operands)}],
      result_layouts = [{_join(map(_layout, called_layouts))}]
    }} : ({_join(types)}) -> ({_join(called_types)})
    return {_join(f"%call#{number}" for number in range(len(results)))} : {_join(result_types)}
  }}
}}"""


def _join(texts):
    return ", ".join(texts)


def _type(shape_and_dtype):
    shape, dtype = shape_and_dtype
    return f"tensor<{'x'.join(map(str, shape))}x{_ELEMENT_TYPES[dtype]}>"


def _layout(minor_to_major):
    return f"dense<{list(minor_to_major)}> : tensor<{len(minor_to_major)}xindex>"


def _row_major(shape):
    return tuple(reversed(range(len(shape))))


def _settings(is_backward, mask, operands):
    ((batch_size, num_queries, num_heads, head_size), dtype), ((_, num_keys, _, _), _) = operands[:2]
    scores = {
        "element_type": {tf.bfloat16: "BF16", tf.float16: "F16"}[dtype],
        "dimensions": [batch_size, num_heads, num_queries, num_keys],
        "layout": {"minor_to_major": [3, 2, 1, 0]},
        "is_dynamic_dimension": [False] * 4,
    }
    attention = {
        "algorithm": {
            "math_type": "TENSOR_OP_MATH",
            "tuning_knobs": {"17": "1", "24": "0"},
            "is_cudnn_frontend": True,
        },
        "fmha_scale": head_size**-0.5,
        "intermediate_tensor_shape": scores,
        "is_flash_attention": True,
        "mask_type": mask,
        "max_seg_per_batch": 1,
        **(_GRADIENT_PRODUCTS if is_backward else _PRODUCTS),
    }
    if is_backward:
        # The same bits each time, for a run that is resumed to end as one that was not.
        attention["force_deterministic"] = True
    return {"cudnn_fmha_backend_config": attention}


def _product(contracted, batched):
    (left, right), (left_batch, right_batch) = contracted, batched
    return {
        "lhs_contracting_dimensions": [left],
        "rhs_contracting_dimensions": [right],
        "lhs_batch_dimensions": left_batch,
        "rhs_batch_dimensions": right_batch,
    }


# Scores are [B, N, R, S], everything else is [B, R or S, N, D].
_PRODUCTS = {
    "bmm1_dot_dimension_numbers": _product((3, 3), ([0, 2], [0, 2])),  # queries, keys: scores
    "bmm2_dot_dimension_numbers": _product((3, 1), ([0, 1], [0, 2])),  # scores, values: context
}
_GRADIENT_PRODUCTS = {
    "bmm1_grad_gemm1_dot_dimension_numbers": _product((2, 1), ([0, 1], [0, 2])),  # scores, queries: keys
    "bmm1_grad_gemm2_dot_dimension_numbers": _product((3, 1), ([0, 1], [0, 2])),  # scores, keys: queries
    "bmm2_grad_gemm1_dot_dimension_numbers": _product((2, 1), ([0, 1], [0, 2])),  # scores, context: values
    "bmm2_grad_gemm2_dot_dimension_numbers": _product((3, 3), ([0, 2], [0, 2])),  # context, values: scores
}
