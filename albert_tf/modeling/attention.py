"""The two sub-layers of a Transformer block, each with its residual connection and LayerNorm (post-LN)."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.layers import ACTIVATIONS, AlbertLayer, LayerNorm, Linear, dropout, split_dropout_seed
from albert_tf.modeling.rematerialization import rematerialize


class SelfAttention(AlbertLayer):
    """Multi-head self-attention.

    Args:
        config: Hyper-parameters.
        rematerializes: Whether the backward pass computes the attention probabilities again rather than keep them.
    """

    def __init__(self, config: AlbertConfig, rematerializes: bool = False, **kwargs):
        super().__init__(**kwargs)
        self._rematerializes = rematerializes
        hidden_size = config.hidden_size
        self.num_heads = config.num_attention_heads
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
        # Every position is seen, but only what is read later has to look.
        reading = hidden_states
        if output_positions is not None:
            reading = tf.gather(hidden_states, output_positions, batch_dims=1)
        query = self._split_heads(self.query(reading, parameters["query"]))
        key = self._split_heads(self.key(hidden_states, parameters["key"]))
        value = self._split_heads(self.value(hidden_states, parameters["value"]))
        attend = rematerialize(self._attend) if self._rematerializes else self._attend
        context = attend(query, key, value, attention_bias, [] if probs_seed is None else [probs_seed])
        output = self.output_dense(tf.reshape(context, tf.shape(reading)), parameters["output_dense"])
        output = reading + dropout(output, self.hidden_dropout_prob, output_seed)
        return self.layer_norm(output, parameters["layer_norm"])

    def _attend(self, query, key, value, attention_bias, seeds):
        scores = tf.einsum("bsnd,btnd->bnst", query, key)
        scores = tf.cast(scores, tf.float32) * self.head_size**-0.5 + attention_bias
        probs = tf.cast(tf.nn.softmax(scores), self.compute_dtype)
        probs = dropout(probs, self.attention_probs_dropout_prob, *(seeds or [None]))
        return tf.einsum("bnst,btnd->bsnd", probs, value)

    def _split_heads(self, states):
        batch_size, length = tf.unstack(tf.shape(states))[:2]
        return tf.reshape(states, [batch_size, length, self.num_heads, self.head_size])


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
