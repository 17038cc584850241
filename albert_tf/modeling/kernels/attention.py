"""What the heads of self-attention see: by plain operations, kept or computed again, or by flash kernels.

python -m benchmarks.tpu_step        (bytes, memory and operations of each)
"""

import tensorflow as tf

from albert_tf.modeling.kernels.flash_attention import flash_attention
from albert_tf.modeling.kernels.plain_attention import context_and_probabilities, plain_attention
from albert_tf.modeling.kernels.rematerialization import rematerialize
from albert_tf.modeling.kernels.visible_keys import VisibleKeys


def attend(
    projections: list[tf.Tensor] | tuple[list[tf.Tensor], list[tf.Tensor]],
    visible: VisibleKeys,
    seed: tf.Tensor | None,
    head_size: int,
    dropout_rate: float,
    uses_flash: bool = False,
    rematerializes: bool = False,
    output_attentions: bool = False,
) -> list[tf.Tensor]:
    """Returns softmax(query key^T / sqrt(head_size) + bias) value of every head, and the probabilities if asked for.

    Args:
        projections: What `QueryKeyValue` or `SeparateProjections` returns; with the kernels, what
            `QueryKeyValue.products_and_biases` does.
        visible: Which keys are seen, with the kernels by a bias of [B, 1, S]; nothing is differentiated through it.
        seed: int32 [2] of the dropout; None for no dropout.
        head_size: Columns of a head.
        dropout_rate: Share of the probabilities that are dropped.
        uses_flash: Whether the kernels of `flash_attention` compute it.
        rematerializes: Whether plain operations compute the probabilities again in the backward pass.
        output_attentions: Whether to return the probabilities, too; not with the kernels.

    Returns:
        A list of the context [B, R, H] and, if asked for, the probabilities [B, N, R, S].
    """
    options = {"head_size": head_size, "dropout_rate": dropout_rate}
    if uses_flash:
        return [flash_attention(*projections, visible, seed, **options)]

    def plain(*arguments):
        return (
            context_and_probabilities(*arguments, **options)
            if output_attentions
            else [plain_attention(*arguments, **options)]
        )

    return (rematerialize(plain) if rematerializes else plain)(projections, visible, seed)
