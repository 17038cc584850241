"""The two sub-layers of a Transformer block, each with its residual connection and LayerNorm (post-LN)."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.dropout import dropout, split_dropout_seed
from albert_tf.modeling.flash_attention import COLUMNS_TOGETHER, flash_attention, uses_flash_attention
from albert_tf.modeling.fusion import fused
from albert_tf.modeling.layers import ACTIVATIONS, AlbertLayer, LayerNorm, Linear
from albert_tf.modeling.rematerialization import rematerialize


class SelfAttention(AlbertLayer):
    """Multi-head self-attention.

    Args:
        config: Hyper-parameters.
        attention: How probabilities are computed: "plain", "flash", or "auto"; see `flash_attention`.
        rematerializes: Whether the backward pass computes the attention probabilities again rather than keep them.
    """

    def __init__(self, config: AlbertConfig, attention: str = "auto", rematerializes: bool = False, **kwargs):
        super().__init__(**kwargs)
        self._attention = attention
        self._rematerializes = rematerializes
        self.hidden_size = hidden_size = config.hidden_size
        self.head_size = hidden_size // config.num_attention_heads
        self.attention_probs_dropout_prob = config.attention_probs_dropout_prob
        self.hidden_dropout_prob = config.hidden_dropout_prob
        policy = kwargs.get("dtype")

        def linear(name):
            return Linear(hidden_size, hidden_size, config.initializer_range, name=name, dtype=policy)

        self.query = linear("query")
        self.key = linear("key")
        self.value = linear("value")
        self.output_dense = linear("output_dense")
        self.layer_norm = LayerNorm(hidden_size, config.layer_norm_eps, dtype=policy)

    def parameters(self) -> dict[str, dict[str, tf.Tensor]]:
        """Returns the weights of every part, as `Linear.parameters` gives them."""
        return {
            name: getattr(self, name).parameters() for name in ("query", "key", "value", "output_dense", "layer_norm")
        }

    def call(self, hidden_states, attention_bias, dropout_seed=None, parameters=None, output_positions=None):
        """Attends.

        Args:
            hidden_states: [B, S, H].
            attention_bias: float32 [B, 1, 1, S], added to the scores: 0 where a key may be seen, -10000 where not.
            dropout_seed: int32 [2], or None.
            parameters: What `parameters` returned; None to read the weights.
            output_positions: int [B, P]: which positions to compute; None for all.

        Returns:
            `compute_dtype` [B, S, H], or [B, P, H].
        """
        parameters = self.parameters() if parameters is None else parameters
        probs_seed, output_seed = split_dropout_seed(dropout_seed, 2)
        uses_flash = uses_flash_attention(self._attention, self.hidden_size, self.head_size, hidden_states.shape[1])
        columns_together = COLUMNS_TOGETHER if uses_flash else self.hidden_size
        if output_positions is None:
            reading = hidden_states
            projections = [self._project(hidden_states, parameters, ["query", "key", "value"], columns_together)]
        else:
            # Every position is seen, but only what is read later has to look.
            # A product, because a gather's gradient is a scatter, which is slow on a TPU.
            selection = tf.one_hot(output_positions, hidden_states.shape[1], dtype=self.compute_dtype)
            reading = tf.matmul(selection, hidden_states)
            projections = [
                self._project(reading, parameters, ["query"], columns_together),
                self._project(hidden_states, parameters, ["key", "value"], columns_together),
            ]
        if uses_flash:
            context = flash_attention(
                projections, attention_bias[:, 0], probs_seed, self.head_size, self.attention_probs_dropout_prob
            )
        else:
            attend = rematerialize(self._attend) if self._rematerializes else self._attend
            context = attend(projections, attention_bias, [] if probs_seed is None else [probs_seed])
        output = self.output_dense(context, parameters["output_dense"])
        output = reading + dropout(output, self.hidden_dropout_prob, output_seed)
        return self.layer_norm(output, parameters["layer_norm"])

    def _project(self, states, parameters, names, columns_together):
        """Returns several projections by one matrix product: so many columns of each in turn."""

        def merge(part):
            values = [parameters[name][part] for name in names]
            split = [tf.reshape(value, [*value.shape[:-1], -1, columns_together]) for value in values]
            return tf.reshape(tf.stack(split, axis=-2), [*values[0].shape[:-1], len(names) * self.hidden_size])

        return self.query(states, {part: merge(part) for part in ("kernel", "bias")})

    def _attend(self, projections, attention_bias, seeds):
        """Returns the mean of the values that each head's queries see, [B, R, H]."""
        query, key, value = (heads for projection in projections for heads in self._split_heads(projection))
        scores = tf.matmul(query, key, transpose_b=True)
        probs = _scaled_softmax(scores, self.head_size**-0.5, attention_bias)
        probs = dropout(probs, self.attention_probs_dropout_prob, *(seeds or [None]))
        context = tf.transpose(tf.matmul(probs, value), [0, 2, 1, 3])
        return tf.reshape(context, [*tf.unstack(tf.shape(context))[:2], self.hidden_size])

    def _split_heads(self, projection):
        """Returns what one array holds of queries, keys and values, each [B, N, S, head_size]."""
        batch_size, length = tf.unstack(tf.shape(projection))[:2]
        count = projection.shape[-1] // self.hidden_size
        split = tf.reshape(projection, [batch_size, length, count, -1, self.head_size])
        return tf.unstack(tf.transpose(split, [2, 0, 3, 1, 4]), count)


def _scaled_softmax(scores, scale, bias):
    """Returns softmax(scale scores + bias), computed in float32; keeps nothing but the result."""

    @tf.custom_gradient
    def apply(scores):
        probs = _softmax_forward(scores, scale, bias)
        return probs, lambda upstream: _softmax_backward(probs, upstream, scale)

    return apply(scores)


@fused
def _softmax_forward(scores, scale, bias):
    return tf.cast(tf.nn.softmax(tf.cast(scores, tf.float32) * scale + bias), scores.dtype)


@fused
def _softmax_backward(probs, upstream, scale):
    dtype = probs.dtype
    probs, upstream = tf.cast(probs, tf.float32), tf.cast(upstream, tf.float32)
    mean = tf.reduce_sum(probs * upstream, axis=-1, keepdims=True)
    return tf.cast(probs * (upstream - mean) * scale, dtype)


class FeedForward(AlbertLayer):
    """Two linear layers with an activation between them.

    Args:
        config: Hyper-parameters.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(**kwargs)
        policy = kwargs.get("dtype")
        self.activation = ACTIVATIONS[config.hidden_act]
        self.hidden_dropout_prob = config.hidden_dropout_prob
        sizes = config.hidden_size, config.intermediate_size
        self.intermediate = Linear(*sizes, config.initializer_range, name="intermediate", dtype=policy)
        self.output_dense = Linear(*reversed(sizes), config.initializer_range, name="output_dense", dtype=policy)
        self.layer_norm = LayerNorm(config.hidden_size, config.layer_norm_eps, dtype=policy)

    def parameters(self) -> dict[str, dict[str, tf.Tensor]]:
        """Returns the weights of every part, as `Linear.parameters` gives them."""
        return {name: getattr(self, name).parameters() for name in ("intermediate", "output_dense", "layer_norm")}

    def call(self, hidden_states, dropout_seed=None, parameters=None):
        """Transforms each position.

        Args:
            hidden_states: [B, S, H].
            dropout_seed: int32 [2], or None.
            parameters: What `parameters` returned; None to read the weights.

        Returns:
            `compute_dtype` [B, S, H].
        """
        parameters = self.parameters() if parameters is None else parameters
        intermediate = self.activation(self.intermediate(hidden_states, parameters["intermediate"]))
        output = self.output_dense(intermediate, parameters["output_dense"])
        output = hidden_states + dropout(output, self.hidden_dropout_prob, dropout_seed)
        return self.layer_norm(output, parameters["layer_norm"])
