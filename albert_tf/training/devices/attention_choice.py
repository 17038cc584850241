"""Choosing how attention is computed on the devices at hand."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.modeling.kernels.attention_check import attention_functions, find_fault
from albert_tf.modeling.kernels.flash_attention import uses_flash_attention


def check_attention(
    strategy: tf.distribute.Strategy, attention: str, config: AlbertConfig, max_seq_lengths: list[int]
) -> None:
    """Checks that a kind of attention suits the device, the model and the sequences, before anything is traced."""
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
) -> tuple[str, str | None]:
    """Returns how to compute attention: as asked, but plainly where the kernels don't work on this TPU.

    On a TPU it tries the kernels; see `find_fault`.

    Args:
        strategy: Where to run.
        attention: "auto", "plain" or "flash".
        config: The model's.
        dtype: Keras dtype policy of the model.
        shapes: For each kind of batch the length of its sequences, and how many positions of them are read.

    Returns:
        "auto", "plain" or "flash", and a line that says what was chosen; None off a TPU.

    Raises:
        InputError: What is asked for does not suit the device, the model or the sequences, or the kernels that are
            asked for don't work.
    """
    check_attention(strategy, attention, config, [max_seq_length for max_seq_length, _ in shapes])
    if not isinstance(strategy, tf.distribute.TPUStrategy) or attention == "plain":
        return attention, None
    hidden_size, head_size = config.hidden_size, config.hidden_size // config.num_attention_heads
    compute_dtype = tf.keras.mixed_precision.Policy(dtype).compute_dtype
    # A batch of GPT-BERT's has rows of both kinds.
    is_causal = (True, False) if config.masked_lm_is_shifted else (config.is_causal,)
    functions = attention_functions(head_size, config.attention_probs_dropout_prob)
    with strategy.scope():
        tried = [shape for shape in shapes if uses_flash_attention(attention, hidden_size, head_size, shape[0])]
        faults = [find_fault(strategy, *functions, hidden_size, *shape, compute_dtype, is_causal) for shape in tried]
    fault = next(filter(None, faults), None)
    if fault and attention == "flash":
        raise InputError(f"`attention=flash`: on this TPU the kernels {fault}; use `attention=plain`")
    if fault:
        return "plain", f"attention: plain operations, for on this TPU the flash kernels {fault}"
    return attention, f"attention: {'flash kernels, tried on this TPU' if tried else 'plain operations'}"
