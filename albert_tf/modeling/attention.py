"""The two sub-layers of a Transformer block, each with its residual connection and LayerNorm (post-LN)."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.layers import ACTIVATIONS, AlbertLayer, LayerNorm, Linear, dropout, split_dropout_seed


class SelfAttention(AlbertLayer):
    """Multi-head self-attention.

    Args:
        config: Hyper-parameters.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(**kwargs)
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

    def call(self, hidden_states, attention_bias, dropout_seed=None):
        """Attends.

        Args:
            hidden_states: [B, S, H].
            attention_bias: float32 [B, 1, 1, S], added to the scores: 0 where a key may be seen, -10000 where not.
            dropout_seed: int32 [2], or None.

        Returns:
            `compute_dtype` [B, S, H].
        """
        probs_seed, output_seed = split_dropout_seed(dropout_seed, 2)
        query, key, value = (self._split_heads(part(hidden_states)) for part in (self.query, self.key, self.value))
        scores = tf.einsum("bsnd,btnd->bnst", query, key)
        scores = tf.cast(scores, tf.float32) * self.head_size**-0.5 + attention_bias
        probs = tf.cast(tf.nn.softmax(scores), self.compute_dtype)
        probs = dropout(probs, self.attention_probs_dropout_prob, probs_seed)
        context = tf.einsum("bnst,btnd->bsnd", probs, value)
        output = self.output_dense(tf.reshape(context, tf.shape(hidden_states)))
        return self.layer_norm(hidden_states + dropout(output, self.hidden_dropout_prob, output_seed))

    def _split_heads(self, states):
        batch_size, max_seq_length = tf.unstack(tf.shape(states))[:2]
        return tf.reshape(states, [batch_size, max_seq_length, self.num_heads, self.head_size])


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

    def call(self, hidden_states, dropout_seed=None):
        """Transforms each position, [B, S, H] to `compute_dtype` [B, S, H]; `dropout_seed` int32 [2] or None."""
        output = self.output_dense(self.activation(self.intermediate(hidden_states)))
        return self.layer_norm(hidden_states + dropout(output, self.hidden_dropout_prob, dropout_seed))
