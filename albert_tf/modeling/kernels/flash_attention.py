"""The kernels of `flash_attention_kernel` as a TensorFlow operation. JAX is imported when they are first used.

python -m benchmarks.tpu_step        (0.38 of the bytes that plain operations move at length 512)
"""

import contextlib
import functools
import importlib.util

import tensorflow as tf

from albert_tf.base.compilation import is_compiled_for_tpu, runs_pallas_kernels
from albert_tf.base.errors import InputError, with_extra
from albert_tf.modeling.kernels.linear import add_bias
from albert_tf.modeling.kernels.positions import VisibleKeys

ATTENTION_CHOICES = ("auto", "plain", "flash")

# The kernels take queries, keys and values from one array, so many columns of each in turn: the width of a register.
COLUMNS_TOGETHER = 128
# All scores of a head must fit the fast memory of the TPU at once, with some copies.
_LONGEST_SEQUENCE = 512


def uses_flash_attention(
    attention: str,
    hidden_size: int,
    head_size: int,
    max_seq_length: int | None,
    masks_rows: bool = False,
    output_attentions: bool = False,
) -> bool:
    """Returns whether to use the kernels; "auto" means on a TPU that takes them, if they can do what is asked.

    They support documents and causal attention, but no mask [B, S, S] and no probabilities as outputs. With "flash" it
    is an InputError if they can't, the TPU is too old, or JAX is missing.
    """
    if attention == "plain" or (attention == "auto" and not runs_pallas_kernels()):
        return False
    fits = hidden_size % COLUMNS_TOGETHER == 0 and COLUMNS_TOGETHER % head_size == 0
    fits = fits and max_seq_length is not None and max_seq_length <= _LONGEST_SEQUENCE
    is_installed = importlib.util.find_spec("jax") is not None
    if attention == "auto":
        return fits and is_installed and not masks_rows and not output_attentions
    if not fits:
        raise InputError(
            f"`attention=flash` needs hidden_size={hidden_size} to be a multiple of {COLUMNS_TOGETHER}, the "
            f"size of a head, {head_size}, to divide that number, and sequences (here of {max_seq_length}) to "
            f"have a fixed length up to {_LONGEST_SEQUENCE}; use `attention=plain`"
        )
    if masks_rows:
        raise InputError(
            'attention="flash" supports no mask [B, S, S]; use attention="plain" or "auto", or say by '
            "document_ids [B, S] "
            "which pieces see one another"
        )
    if output_attentions:
        raise InputError('attention="flash" cannot output attentions; use attention="plain" or "auto"')
    if is_compiled_for_tpu() and not runs_pallas_kernels():
        raise InputError("`attention=flash` needs a TPU from v4 on; use `attention=plain`")
    if not is_installed:
        raise InputError(f"`attention=flash` needs jax: pip install {with_extra('flash')}, or use `attention=plain`")
    return True


def flash_attention(
    products: list[tf.Tensor],
    biases: list[tf.Tensor],
    visible: VisibleKeys,
    seed: tf.Tensor | None,
    head_size: int,
    dropout_rate: float,
) -> tf.Tensor:
    """Returns the attention of all heads, [B, R, H], without holding scores; off a TPU slowly, for tests.

    Products are queries, keys and values [B, S, 3 H], or queries [B, R, H] and the other two [B, S, 2 H],
    `COLUMNS_TOGETHER` columns of each in turn, before their float32 biases are added. The biases belong here because
    their gradients are sums over rows of the backward kernel's results. The bias of `visible` is [B, 1, S], without a
    gradient.
    """
    rate = 0.0 if seed is None else dropout_rate
    seed = tf.zeros([2], tf.uint32) if seed is None else tf.bitcast(seed, tf.uint32)
    forward, backward = _kernels(head_size, rate, is_compiled_for_tpu())

    @tf.custom_gradient
    def attend(products, biases):
        projections = [add_bias(product, bias) for product, bias in zip(products, biases)]

        def gradient(upstream):
            gradients, sums = backward(projections, visible, seed, upstream)
            return [*gradients, *(tf.reduce_sum(each, axis=[0, 1]) for each in sums)]

        return forward(projections, visible, seed), gradient

    return attend(products, biases)


@functools.cache
def _kernels(head_size, dropout_rate, is_for_tpu):
    import jax
    from jax.experimental import jax2tf

    from albert_tf.modeling.kernels import flash_attention_kernel

    def convert(kernel):
        converted = jax2tf.convert(
            functools.partial(kernel, head_size=head_size, dropout_rate=dropout_rate, interpret=not is_for_tpu),
            with_gradient=False,
            native_serialization_platforms=["tpu" if is_for_tpu else "cpu"],
            # TensorFlow names the platform of a program that is compiled without a TPU "CPU".
            native_serialization_disabled_checks=[jax.export.DisabledSafetyCheck.platform()],
        )

        def call(*arguments):
            with _away_from_the_tpu(jax.config):
                return converted(*arguments)

        return call

    return convert(flash_attention_kernel.forward), convert(flash_attention_kernel.backward)


@contextlib.contextmanager
def _away_from_the_tpu(config):
    """Keeps JAX from looking for other devices than the CPU, unless it was told where to look.

    The kernels run inside TensorFlow, which owns the TPU; JAX would take it for itself. An environment variable would
    come too late: TensorFlow imports JAX. JAX looks only once: code in the same process that uses JAX on a GPU or TPU
    has to do so before.
    """
    if config.jax_platforms:
        yield
        return
    before = config.jax_platforms
    config.update("jax_platforms", "cpu")
    try:
        yield
    finally:
        config.update("jax_platforms", before)
