"""The device and compiler of the program that is being traced, as far as the model needs to know them."""

import tensorflow as tf


def is_compiled_whole() -> bool:
    """Returns whether XLA compiles all that is being traced as one program, and fuses by itself.

    For a TPU it always does; on one GPU or CPU where `training.devices.whole_step` runs it.
    """
    return is_compiled_for_tpu() or (tf.inside_function() and _strategy_says("compiles_whole_steps"))


def is_compiled_for_tpu() -> bool:
    """Returns whether the step is being traced for a TPU's compiler: TensorFlow's own runtime lacks some of its ops."""
    return isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy) or _strategy_says("is_compiled_for_tpu")


def optimization_barrier(tensors: list[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the same tensors, which XLA computes once and does not recognise as the ones before."""
    if not is_compiled_whole():
        return [tf.identity(tensor) for tensor in tensors]
    from tensorflow.compiler.tf2xla.python import xla  # slow to import, and needed only here

    return list(xla.optimization_barrier(*tensors))


def runs_pallas_kernels() -> bool:
    """Returns whether the target is a TPU that takes Pallas kernels in bfloat16: v4 and later."""
    if not is_compiled_for_tpu():
        return False
    strategy = tf.distribute.get_strategy()
    if not isinstance(strategy, tf.distribute.TPUStrategy):
        return strategy.runs_pallas_kernels
    features = strategy.extended.tpu_hardware_feature
    # Only v2 and v3 have the first kind of embedding accelerator.
    return features.embedding_feature != tf.tpu.experimental.HardwareFeature.EmbeddingFeature.V1


def runs_cudnn_attention() -> bool:
    """Returns whether the target is a GPU that has cuDNN's fused attention: from Ampere on."""
    return tf.inside_function() and _strategy_says("runs_cudnn_attention")


def _strategy_says(name):
    return getattr(tf.distribute.get_strategy(), name, False)
