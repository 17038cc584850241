"""How a function is compiled, and the device of the program that is traced, as far as the model needs to know them."""

import collections.abc
import functools

import tensorflow as tf


def is_compiled_whole() -> bool:
    """Returns whether XLA compiles all that is being traced as one program, and fuses by itself.

    For a TPU it always does; on one GPU or CPU where `training.devices` runs it.
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


# Elementwise operations as one loop over memory instead of one each.
#
# On a TPU the compiler fuses by itself. On a CPU or GPU TensorFlow's runtime runs one operation after the other,
# each of which reads and writes a whole tensor, unless XLA compiles a function of them. Matrix products stay
# outside, because the runtime's library computes them faster.
#
# python -m benchmarks.train_step --only=albert_tf,products    (the step against its matrix products alone)


def fused(function: collections.abc.Callable) -> collections.abc.Callable:
    """Returns a function of tensors that runs as one loop; for functions that nothing is differentiated through.

    It is compiled only inside a `tf.function` whose shapes are known. Elsewhere each new length would be compiled.
    """
    compiled = tf.function(function, jit_compile=True, autograph=False)

    @functools.wraps(function)
    def call(*arguments):
        fuses = is_fused(*arguments) and not is_compiled_whole()
        return compiled(*arguments) if fuses else function(*arguments)

    return call


def compiled_whole(function: collections.abc.Callable) -> collections.abc.Callable:
    """Returns a tf.function that XLA, where it works, compiles with products and loops; for few and known shapes."""
    return tf.function(function, jit_compile=_xla_compiles_here(), autograph=False)


def is_fused(*arguments) -> bool:
    """Returns whether a function from `fused` runs as one loop, given these arguments; on a TPU it always does."""
    return is_compiled_whole() or (_have_known_shapes(arguments) and _xla_compiles_here())


def _have_known_shapes(arguments):
    tensors = [argument for argument in tf.nest.flatten(arguments) if tf.is_tensor(argument)]
    return tf.inside_function() and all(tensor.shape.is_fully_defined() for tensor in tensors)


@functools.cache
def _xla_compiles_here():
    """Returns whether XLA works outside a TPU's program: on the host of a TPU it may not."""
    try:
        with tf.init_scope():
            # A GPU needs a library for this one.
            tf.function(tf.tanh, jit_compile=True, autograph=False)(tf.zeros([8]))
    except tf.errors.OpError:
        return False
    return True


def sum_rows(values: tf.Tensor) -> tf.Tensor:
    """Returns the sum over all axes but the last."""
    if is_compiled_whole():
        return tf.reduce_sum(values, axis=list(range(values.shape.rank - 1)))
    # TensorFlow's own sum over leading axes takes several times as long on a CPU.
    rows = tf.reshape(values, [-1, values.shape[-1]])
    return tf.matmul(tf.ones([1, tf.shape(rows)[0]], rows.dtype), rows)[0]
