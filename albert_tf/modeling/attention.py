"""The two sub-layers of a Transformer block, each with its residual connection and LayerNorm (post-LN)."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.dropout import dropout, split_dropout_seed
from albert_tf.modeling.kernels.flash_attention import COLUMNS_TOGETHER, flash_attention, uses_flash_attention
from albert_tf.modeling.kernels.plain_attention import plain_attention
from albert_tf.modeling.kernels.rematerialization import rematerialize
from albert_tf.modeling.layers import ACTIVATIONS, AlbertLayer, LayerNorm, Linear


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

    def parameters(self, max_seq_length: int | None) -> dict[str, dict[str, tf.Tensor]]:
        """Returns the weights of every part, as `Linear.parameters` gives them, to read them once for many uses.

        Queries, keys and values come from one matrix product, of whose columns `_in_groups` tells the order.
        """
        merged = {}
        for part in ("kernel", "bias"):
            values = [layer.parameters()[part] for layer in (self.query, self.key, self.value)]
            split = [self._in_groups(value, max_seq_length, 1) for value in values]
            merged[part] = tf.reshape(tf.concat(split, axis=-2), [*values[0].shape[:-1], 3 * self.hidden_size])
        rest = {name: getattr(self, name).parameters() for name in ("output_dense", "layer_norm")}
        return {"query_key_value": merged, **rest}

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
        max_seq_length = hidden_states.shape[1]
        parameters = self.parameters(max_seq_length) if parameters is None else parameters
        probs_seed, output_seed = split_dropout_seed(dropout_seed, 2)
        query_key_value = parameters["query_key_value"]
        if output_positions is None:
            reading = hidden_states
            projections = [self.query(hidden_states, query_key_value)]
        else:
            # Every position is seen, but only what is read later has to look.
            # A product, because a gather's gradient is a scatter, which is slow on a TPU.
            length = tf.shape(hidden_states)[1] if max_seq_length is None else max_seq_length
            selection = tf.one_hot(output_positions, length, dtype=self.compute_dtype)
            reading = tf.matmul(selection, hidden_states)
            query, key_value = {}, {}
            for part, value in query_key_value.items():
                groups = tf.split(self._in_groups(value, max_seq_length, 3), [1, 2], axis=-2)
                query[part], key_value[part] = (tf.reshape(group, [*value.shape[:-1], -1]) for group in groups)
            projections = [self.query(reading, query), self.query(hidden_states, key_value)]
        if self._uses_flash(max_seq_length):
            context = flash_attention(
                projections, attention_bias[:, 0], probs_seed, self.head_size, self.attention_probs_dropout_prob
            )
        else:
            attend = rematerialize(self._attend) if self._rematerializes else self._attend
            context = attend(projections, attention_bias, [] if probs_seed is None else [probs_seed])
        output = self.output_dense(context, parameters["output_dense"])
        output = reading + dropout(output, self.hidden_dropout_prob, output_seed)
        return self.layer_norm(output, parameters["layer_norm"])

    def _uses_flash(self, max_seq_length):
        return uses_flash_attention(self._attention, self.hidden_size, self.head_size, max_seq_length)

    def _in_groups(self, columns, max_seq_length, count):
        """Returns [..., count H] as [..., groups, count, columns], the columns that stay together in one product."""
        columns_together = COLUMNS_TOGETHER if self._uses_flash(max_seq_length) else self.hidden_size
        return tf.reshape(columns, [*columns.shape[:-1], -1, count, columns_together])

    def _attend(self, projections, attention_bias, seeds):
        return plain_attention(
            projections, attention_bias[:, 0], *(seeds or [None]), self.head_size, self.attention_probs_dropout_prob
        )


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
