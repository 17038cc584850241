"""Choosing how attention is computed on the devices at hand."""

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.attention import suited_attention
from albert_tf.modeling.kernels.attention_check import attention_functions, cudnn_functions, find_fault
from albert_tf.modeling.kernels.cudnn_attention import AttentionCase, find_obstacle
from albert_tf.modeling.kernels.flash_attention import uses_flash_attention
from albert_tf.training.batches import BatchLengths
from albert_tf.training.devices import WholeStepStrategy, is_of_gpus


def check_attention(
    strategy: tf.distribute.Strategy, attention: str, config: AlbertConfig, max_seq_lengths: list[int]
) -> None:
    """Checks that a kind of attention suits the device, the model and the sequences, before anything is traced."""
    attention = suited_attention(attention, config)
    head_size = config.hidden_size // config.num_attention_heads
    with strategy.scope():
        for max_seq_length in max_seq_lengths:
            uses_flash_attention(attention, config.hidden_size, head_size, max_seq_length)


def choose_attention(
    strategy: tf.distribute.Strategy,
    attention: str,
    config: AlbertConfig,
    dtype: str,
    shapes: list[tuple[int, int]],
    lengths: BatchLengths = BatchLengths.ONE,
    has_documents: bool = False,
) -> tuple[str, str | None]:
    """Returns how to compute attention, plainly where kernels fail here, and a line that says so, or None for the line.

    On a TPU or GPU that has kernels it tries them. `shapes` are, for each kind of batch, the length of its sequences
    and how many positions of them are read. An InputError if a kernel that was asked for doesn't suit or doesn't work.
    """
    attention = suited_attention(attention, config)
    head_size, compute_dtype = config.hidden_size // config.num_attention_heads, _compute_dtype(dtype)

    def choose(tried, functions, device, kernels, **options):
        faults = (
            find_fault(strategy, *functions, config.hidden_size, *shape, compute_dtype, config.is_causal, **options)
            for shape in tried
        )
        fault = next(filter(None, faults), None)
        if fault and attention == "flash":
            raise InputError(f"`attention=flash`: on this {device} the {kernels} {fault}; use `attention=plain`")
        if fault:
            return "plain", f"attention: plain operations, because on this {device} the {kernels} {fault}"
        return attention, f"attention: {kernels}, tried on this {device}"

    if attention != "plain" and is_of_gpus(strategy):
        obstacle = _find_obstacle_on_gpu(strategy, config, dtype, shapes, lengths, has_documents)
        if obstacle and attention == "flash":
            raise InputError(f"`attention=flash` is not possible on a GPU with {obstacle}; use `attention=auto`")
        if obstacle:
            # Nor where a model is evaluated, though it has no dropout there: what was not tried is not used.
            return "plain", f"attention: plain operations, because cuDNN's kernels are not possible with {obstacle}"
        return choose(shapes, cudnn_functions(head_size), "GPU", "kernels of cuDNN", knows_documents=False)
    check_attention(strategy, attention, config, [max_seq_length for max_seq_length, _ in shapes])
    if not isinstance(strategy, tf.distribute.TPUStrategy) or attention == "plain":
        return attention, None
    with strategy.scope():
        tried = [each for each in shapes if uses_flash_attention(attention, config.hidden_size, head_size, each[0])]
        functions = attention_functions(head_size, config.attention_probs_dropout_prob)
        return choose(tried, functions, "TPU", "flash kernels") if tried else (attention, "attention: plain operations")


def _compute_dtype(dtype):
    return tf.keras.mixed_precision.Policy(dtype).compute_dtype


def _find_obstacle_on_gpu(strategy, config, dtype, shapes, lengths, has_documents):
    """Returns why cuDNN's kernels can't be had, as the end of "with ..."; None if it can be tried."""
    if not isinstance(strategy, WholeStepStrategy):
        return "steps that run operation by operation"
    if not strategy.runs_cudnn_attention:
        return "a GPU before Ampere"
    case = AttentionCase(
        batch_size=1,
        max_seq_length=shapes[0][0] if lengths is BatchLengths.ONE else None,
        head_size=config.hidden_size // config.num_attention_heads,
        dtype=_compute_dtype(dtype),
        dropout_rate=config.attention_probs_dropout_prob,
        has_documents=has_documents,
    )
    return find_obstacle(case)
