"""Chooses and runs the attention of all heads: plain operations, kept or recomputed, or a kernel.

python -m benchmarks.tpu_step        (bytes, memory and operations of each)
"""

import tensorflow as tf

from albert_tf.base.compilation import runs_cudnn_attention
from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.cudnn_attention import AttentionCase, cudnn_attention, find_obstacle
from albert_tf.modeling.kernels.flash_attention import flash_attention, uses_flash_attention
from albert_tf.modeling.kernels.plain_attention import context_and_probabilities, plain_attention
from albert_tf.modeling.kernels.positions import VisibleKeys
from albert_tf.modeling.kernels.relative_scores import Distances
from albert_tf.modeling.kernels.rematerialization import rematerialize

# Those of `flash_attention`, on a TPU; and that of `cudnn_attention`, on a GPU.
PLAIN, PALLAS, CUDNN = "plain", "pallas", "cudnn"


def suited_attention(attention: str, config: AlbertConfig) -> str:
    """Returns `attention`, or "plain" for a model that no kernel supports; an InputError for "flash" there."""
    if config.relative_attention == "none":
        return attention
    if attention == "flash":
        raise InputError(
            "`attention=flash` has no kernel for the distances between pieces that a model of relative_attention="
            f"{config.relative_attention} reads; use `attention=auto`"
        )
    return "plain"


def choose_kernel(attention: str, hidden_size: int, case: AttentionCase) -> str:
    """Returns which of `PLAIN`, `PALLAS` and `CUDNN` computes attention in the program that is being traced.

    "auto" takes the device's kernels where they can; an InputError if "flash" asks for them and they can't.
    """
    if attention == "plain":
        return PLAIN
    if runs_cudnn_attention():
        obstacle = find_obstacle(case)
        if obstacle and attention == "flash":
            raise InputError(f"`attention=flash` on a GPU is not possible with {obstacle}; use `attention=auto`")
        return PLAIN if obstacle else CUDNN
    shape = hidden_size, case.head_size, case.max_seq_length
    return PALLAS if uses_flash_attention(attention, *shape, case.masks_rows, case.output_attentions) else PLAIN


def attend(
    projections: list[tf.Tensor] | tuple[list[tf.Tensor], list[tf.Tensor]],
    visible: VisibleKeys,
    seed: tf.Tensor | None,
    head_size: int,
    dropout_rate: float,
    kernel: str = PLAIN,
    rematerializes: bool = False,
    output_attentions: bool = False,
    distances: Distances | None = None,
) -> list[tf.Tensor]:
    """Returns softmax(query key^T / sqrt(head_size) + bias) value of all heads, and the probabilities if asked for.

    These are the context [B, R, H] and, with plain operations only, the probabilities [B, N, R, S]. Projections are
    those of `QueryKeyValue` or `SeparateProjections`, for `PALLAS` of `QueryKeyValue.products_and_biases`. Kernels need
    a bias [B, 1, S]; it gets no gradient. The seed is int32 [2], None for no dropout. Distances, only with plain
    operations, add one or two products, and all are divided by sqrt(products * head_size).
    """
    options = {"head_size": head_size, "dropout_rate": dropout_rate}
    if kernel == PALLAS:
        return [flash_attention(*projections, visible, seed, **options)]
    if kernel == CUDNN:
        return [cudnn_attention(projections, visible, head_size)]

    def plain(projections, visible, seed, distances):
        arguments = {"projections": projections, "visible": visible, "seed": seed, "distances": distances, **options}
        return context_and_probabilities(**arguments) if output_attentions else [plain_attention(**arguments)]

    return (rematerialize(plain) if rematerializes else plain)(projections, visible, seed, distances)
