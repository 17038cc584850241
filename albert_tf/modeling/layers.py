"""The small parts of every block, written against the API that Keras 3 and Keras 2 share.

Variables are float32; matrix products run in `compute_dtype`, from the Keras dtype policy. Keras's own casting is off,
because it would also cast LayerNorm, softmax and the logits, which must stay in float32.
"""

import collections.abc

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.elementwise import gelu, gelu_erf, layer_norm
from albert_tf.modeling.kernels.linear import linear, weights_of

ACTIVATIONS = {
    # The original's "gelu" is the tanh approximation, which Hugging Face calls "gelu_new" (original modeling.py).
    "gelu": gelu,
    "gelu_new": gelu,
    # What Hugging Face calls "gelu".
    "gelu_erf": gelu_erf,
    "relu": tf.nn.relu,
    "tanh": tf.nn.tanh,
    "linear": tf.identity,
}


# Keras 3 and Keras 2 have different names for the switch that keeps them from casting a variable when it is read.
_NO_AUTOCAST = {"autocast" if hasattr(tf.keras, "Variable") else "experimental_autocast": False}


class AlbertLayer(tf.keras.layers.Layer):
    """A layer whose weights exist as soon as it does, because the config gives every shape."""

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.built = True

    def add_parameter(self, name: str, shape: list[int], initializer: str | float | collections.abc.Callable):
        """Adds a float32 weight: "zeros", "ones", a truncated normal's deviation, or a function of shape and dtype."""
        if isinstance(initializer, float):
            initializer = tf.keras.initializers.TruncatedNormal(stddev=initializer)
        return self.add_weight(name=name, shape=shape, initializer=initializer, dtype="float32", **_NO_AUTOCAST)

    def add_constant(self, name: str, shape: list[int], dtype: str = "float32"):
        """Adds a variable that is saved with the weights but not trainable; zeros until it is assigned."""
        return self.add_weight(
            name=name, shape=shape, initializer="zeros", dtype=dtype, trainable=False, **_NO_AUTOCAST
        )

    @classmethod
    def from_config(cls, config):
        return cls(**with_albert_config(config))


class ConfiguredLayer(AlbertLayer):
    """A layer whose first argument is the config of the model."""

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(**kwargs)
        self._config = config

    def get_config(self):
        return {**super().get_config(), "config": self._config.to_dict()}


def with_albert_config(config: dict) -> dict:
    """Returns a Keras config whose "config", a dictionary, is an `AlbertConfig`."""
    return {**config, "config": AlbertConfig.from_dict(config["config"])} if "config" in config else config


@tf.keras.utils.register_keras_serializable("albert_tf")
class Linear(AlbertLayer):
    """Maps [..., input_size] to [..., output_size] in `compute_dtype`: a matrix product and a bias.

    The kernel begins as the given float32 [input_size, output_size], or as a truncated normal with the standard
    deviation `initializer_range`; the bias begins as zeros.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        initializer_range: float,
        kernel: np.ndarray | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._initializer_range = initializer_range
        shape = [input_size, output_size]
        self.kernel = self.add_parameter("kernel", shape, initializer_range if kernel is None else _constant(kernel))
        self.bias = self.add_parameter("bias", [output_size], "zeros")

    def read_weights(self) -> dict[str, tf.Tensor]:
        return {name: tf.convert_to_tensor(getattr(self, name)) for name in ("kernel", "bias")}

    def call(self, inputs):
        return linear(inputs, **weights_of(self), dtype=self.compute_dtype)

    def get_config(self):
        input_size, output_size = self.kernel.shape
        sizes = {"input_size": input_size, "output_size": output_size}
        return {**super().get_config(), **sizes, "initializer_range": self._initializer_range}


def _constant(values):
    """Returns an initializer that, unlike Keras's `Constant`, takes an array."""
    return lambda shape, dtype: tf.constant(values, dtype, shape)


@tf.keras.utils.register_keras_serializable("albert_tf")
class LayerNorm(AlbertLayer):
    """Layer normalisation over the last dimension, computed in float32, returned in `compute_dtype`."""

    def __init__(self, size: int, epsilon: float, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.gamma = self.add_parameter("gamma", [size], "ones")
        self.beta = self.add_parameter("beta", [size], "zeros")

    def read_weights(self) -> dict[str, tf.Tensor]:
        return {name: tf.convert_to_tensor(getattr(self, name)) for name in ("gamma", "beta")}

    def call(self, inputs):
        return layer_norm(inputs, **weights_of(self), epsilon=self.epsilon, dtype=self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "size": self.gamma.shape[0], "epsilon": self.epsilon}


def named_variables(layer: tf.keras.layers.Layer) -> dict[str, tf.Variable]:
    """Returns TensorFlow's variables by attribute path, such as "encoder/attention_layers/0/query/kernel".

    The names follow from our code alone, so that checkpoints don't depend on the version of Keras.
    """
    keras_variable = getattr(tf.keras, "Variable", None)  # Keras 3 wraps TensorFlow's variables
    found = {}

    def visit(name, value):
        if isinstance(value, tf.keras.layers.Layer):
            for attribute, child in vars(value).items():
                if not attribute.startswith("_"):
                    visit(f"{name}/{attribute}", child)
        elif isinstance(value, (list, tuple)):
            for index, child in enumerate(value):
                visit(f"{name}/{index}", child)
        elif isinstance(value, tf.Variable):
            found[name.lstrip("/")] = value
        elif keras_variable is not None and isinstance(value, keras_variable):
            found[name.lstrip("/")] = value.value

    visit("", layer)
    return found
