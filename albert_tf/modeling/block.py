"""A Transformer block: what the encoder applies again and again."""

import tensorflow as tf

from albert_tf.modeling.attention import FeedForward, SelfAttention
from albert_tf.modeling.kernels.shared_weights import Part, using


class Block:
    """One application of a Transformer block: attention, then the feed-forward network, which other blocks may share."""

    def __init__(
        self, attention: SelfAttention, feed_forward: FeedForward, kernel: str, output_attentions: bool = False
    ):
        self._attention = attention
        self._feed_forward = feed_forward
        self._kernel = kernel
        self._output_attentions = output_attentions

    def parts(self) -> list[Part]:
        """Returns what holds the weights, for `shared_weights.read_once`."""
        return [*self._attention.parts(self._kernel), *self._feed_forward.parts()]

    def __call__(self, hidden_states, sees, seeds, weights, output_positions=None) -> list[tf.Tensor]:
        """Returns hidden states and, if asked for, attention probabilities; a function of its arguments alone.

        Takes states [B, S, H], `attention_bias` and `document_ids` as for `SelfAttention`, a seed int32 [2] or None for
        each sub-layer, and the weights of `parts`.
        """
        attention_seed, feed_forward_seed = seeds
        attention_bias, document_ids = sees
        with using(self.parts(), weights):
            attended = self._attention(
                hidden_states,
                attention_bias,
                attention_seed,
                output_positions,
                document_ids,
                kernel=self._kernel,
                output_attentions=self._output_attentions,
            )
            hidden_states, *probs = attended if self._output_attentions else [attended]
            return [self._feed_forward(hidden_states, feed_forward_seed), *probs]
