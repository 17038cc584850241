"""One GPU or CPU whose steps XLA compiles as one program each, as it does for a TPU.

TensorFlow's own runtime hands a GPU one operation after the other, each of which reads and writes a whole tensor; XLA
fuses what stands between the matrix products, and has attention by cuDNN besides (`kernels.cudnn_attention`).

python -m benchmarks.gpu_step        (a step on a GPU, beside Hugging Face's)
python -m benchmarks.train_step --only=albert_tf,albert_tf_xla        (on a CPU, beside operation by operation)
"""

import tensorflow as tf
from tensorflow.python.distribute.one_device_strategy import OneDeviceExtended

JIT_COMPILE_CHOICES = ("auto", "true", "false")

# Ampere, the first that computes in bfloat16 and that cuDNN's fused attention runs on.
_AMPERE = (8, 0)


class WholeStepStrategy(tf.distribute.Strategy):
    """Runs on one device, and compiles the functions that `run` is given, each shape once, in up to a minute.

    `compilation.target` tells the model so. Shapes should be few.
    """

    compiles_whole_steps = True

    def __init__(self, device: str):
        super().__init__(_WholeStepExtended(self, device))
        self.runs_cudnn_attention = has_ampere(device)


class _WholeStepExtended(OneDeviceExtended):
    def _call_for_each_replica(self, fn, args, kwargs):
        call_operations = super()._call_for_each_replica

        @tf.function(jit_compile=True, autograph=False)
        def compiled(args, kwargs):
            return call_operations(fn, args, kwargs)

        return compiled(args, kwargs)


def is_of_gpus(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether a strategy runs on GPUs."""
    mirrored = tf.distribute.MirroredStrategy, tf.distribute.MultiWorkerMirroredStrategy
    if not isinstance(strategy, (WholeStepStrategy, *mirrored)):
        return False
    return tf.DeviceSpec.from_string(strategy.extended.worker_devices[0]).device_type == "GPU"


def has_ampere(device: str) -> bool:
    """Returns whether a device is an NVIDIA GPU of the generation of Ampere (compute capability 8.0) or later."""
    spec = tf.DeviceSpec.from_string(device)
    if spec.device_type != "GPU":
        return False
    gpu = tf.config.list_physical_devices("GPU")[spec.device_index or 0]
    return tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0)) >= _AMPERE
