"""The small parts that every block is made of.

They are written against the API that Keras 3 and Keras 2 share. Variables are float32; `compute_dtype`, from the Keras
dtype policy, is what matrix products run in. Keras's own casting is off, because it would also cast what must stay in
float32: LayerNorm, softmax and the logits.
"""

import tensorflow as tf

from albert_tf.compilation.fusion import fused, sum_rows
from albert_tf.compilation.target import is_compiled_for_tpu, optimization_barrier
from albert_tf.modeling.kernels.gelu import gelu

ACTIVATIONS = {
    # The original's "gelu" is the tanh approximation, which Hugging Face calls "gelu_new" (original modeling.py).
    "gelu": gelu,
    "gelu_new": gelu,
    "relu": tf.nn.relu,
    "tanh": tf.nn.tanh,
    "linear": tf.identity,
}


# Keras 3 and Keras 2 name the switch differently that keeps them from casting a variable behind our back.
_NO_AUTOCAST = {"autocast" if hasattr(tf.keras, "Variable") else "experimental_autocast": False}


class AlbertLayer(tf.keras.layers.Layer):
    """A layer whose weights exist as soon as it does, because the config gives every shape."""

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.built = True

    def add_parameter(self, name: str, shape: list[int], initializer: str | float):
        """Adds a float32 weight; `initializer` is "zeros", "ones" or a truncated normal's standard deviation."""
        if isinstance(initializer, float):
            initializer = tf.keras.initializers.TruncatedNormal(stddev=initializer)
        return self.add_weight(name=name, shape=shape, initializer=initializer, dtype="float32", **_NO_AUTOCAST)


class Linear(AlbertLayer):
    """inputs [..., input_size] to [..., output_size] in `compute_dtype`: a matrix product and a bias.

    Args:
        input_size: Last dimension of the input.
        output_size: Last dimension of the output.
        initializer_range: Standard deviation of the truncated normal that initialises the kernel; the bias is zero.
    """

    def __init__(self, input_size: int, output_size: int, initializer_range: float, **kwargs):
        super().__init__(**kwargs)
        self.kernel = self.add_parameter("kernel", [input_size, output_size], initializer_range)
        self.bias = self.add_parameter("bias", [output_size], "zeros")

    def parameters(self) -> dict[str, tf.Tensor]:
        """Returns the weights, float32, to read them once where a layer is applied many times."""
        return {name: tf.convert_to_tensor(getattr(self, name)) for name in ("kernel", "bias")}

    def call(self, inputs, parameters=None):
        parameters = self.parameters() if parameters is None else parameters
        kernel = tf.cast(parameters["kernel"], self.compute_dtype)
        inputs = tf.cast(inputs, self.compute_dtype)
        if is_compiled_for_tpu():
            return _add_bias(tf.tensordot(inputs, kernel, 1), parameters["bias"])
        # As rows, so that TensorFlow's runtime sees a product and its bias together and computes both in one go. A
        # TPU's compiler would read and write half as much again.
        rows = tf.reshape(inputs, [-1, inputs.shape[-1]])
        outputs = _add_bias(tf.matmul(rows, kernel), parameters["bias"])
        return tf.reshape(outputs, tf.concat([tf.shape(inputs)[:-1], [kernel.shape[-1]]], axis=0))


@tf.custom_gradient
def _add_bias(inputs, bias):
    outputs = tf.nn.bias_add(inputs, tf.cast(bias, inputs.dtype))
    return outputs, lambda upstream: (upstream, tf.cast(sum_rows(upstream), bias.dtype))


class LayerNorm(AlbertLayer):
    """Layer normalisation over the last dimension, computed in float32, returned in `compute_dtype`.

    Args:
        size: The last dimension.
        epsilon: Added to the variance.
    """

    def __init__(self, size: int, epsilon: float, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.gamma = self.add_parameter("gamma", [size], "ones")
        self.beta = self.add_parameter("beta", [size], "zeros")

    def parameters(self) -> dict[str, tf.Tensor]:
        """Returns the weights, float32."""
        return {name: tf.convert_to_tensor(getattr(self, name)) for name in ("gamma", "beta")}

    def call(self, inputs, parameters=None):
        parameters = self.parameters() if parameters is None else parameters
        return _normalize(inputs, parameters["gamma"], parameters["beta"], self.epsilon, self.compute_dtype)


def _normalize(inputs, gamma, beta, epsilon, dtype):
    """Returns (inputs - mean) / sqrt(variance + epsilon) gamma + beta; keeps what is before gamma for the gradient."""

    @tf.custom_gradient
    def apply(inputs, gamma, beta):
        outputs, normalized, inverse_deviation = _normalize_forward(inputs, gamma, beta, epsilon, dtype)

        def gradient(upstream):
            inputs_gradient, product = _normalize_backward(normalized, inverse_deviation, gamma, upstream, inputs.dtype)
            return inputs_gradient, sum_rows(product), tf.cast(sum_rows(upstream), tf.float32)

        return outputs, gradient

    return apply(inputs, gamma, beta)


@fused
def _normalize_forward(inputs, gamma, beta, epsilon, dtype):
    values = tf.cast(inputs, tf.float32)
    mean = tf.reduce_mean(values, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(values, mean), axis=-1, keepdims=True)
    inverse_deviation = tf.math.rsqrt(variance + epsilon)
    # Several products read the result. Without the barrier a TPU's compiler would normalise again in each, which takes
    # it longer to compile, too.
    (normalized,) = optimization_barrier([tf.cast((values - mean) * inverse_deviation, dtype)])
    return tf.cast(tf.cast(normalized, tf.float32) * gamma + beta, dtype), normalized, inverse_deviation


@fused
def _normalize_backward(normalized, inverse_deviation, gamma, upstream, dtype):
    """Ba et al. 2016, "Layer Normalization", differentiated by hand."""
    normalized, upstream = tf.cast(normalized, tf.float32), tf.cast(upstream, tf.float32)
    scaled = upstream * gamma
    mean_scaled = tf.reduce_mean(scaled, axis=-1, keepdims=True)
    mean_product = tf.reduce_mean(scaled * normalized, axis=-1, keepdims=True)
    inputs_gradient = inverse_deviation * (scaled - mean_scaled - normalized * mean_product)
    return tf.cast(inputs_gradient, dtype), upstream * normalized


def repeat_parameters(
    parameters: dict[str, dict[str, tf.Tensor]], count: int, dtype: str
) -> list[dict[str, dict[str, tf.Tensor]]]:
    """Returns weights as often as they are used, kernels in `dtype`, cast once.

    Args:
        parameters: Float32 weights by name, of several layers by name.
        count: How many uses there are. The gradients of all are added up in float32.
        dtype: What matrix products run in.
    """
    repeated = {
        layer: {
            name: _repeat_kernel(value, count, dtype) if name == "kernel" else [value] * count
            for name, value in weights.items()
        }
        for layer, weights in parameters.items()
    }
    return [
        {layer: {name: copies[use] for name, copies in weights.items()} for layer, weights in repeated.items()}
        for use in range(count)
    ]


def _repeat_kernel(kernel, count, dtype):
    @tf.custom_gradient
    def apply(kernel):
        values = tf.cast(kernel, dtype)
        # The backward pass comes from the last use to the first.
        return [tf.identity(values) for _ in range(count)], lambda *upstream: _add_up(*reversed(upstream))

    return apply(kernel)


@fused
def _add_up(*gradients):
    """Adds up in float32, reading each gradient once and writing nothing but the sum."""
    return tf.add_n([tf.cast(gradient, tf.float32) for gradient in gradients])


def named_variables(layer: tf.keras.layers.Layer) -> dict[str, tf.Variable]:
    """Returns the TensorFlow variables of a layer under the path of attributes that leads to them.

    For instance "encoder/attention_layers/0/query/kernel". The names follow from our code alone, so that checkpoints
    don't depend on the version of Keras.
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
