"""The ALBERT encoder: one block, or one a group, applied again and again."""

import functools
import typing

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.attention import FeedForward, SelfAttention
from albert_tf.modeling.embeddings import AlbertEmbeddings
from albert_tf.modeling.inputs import encoder_inputs
from albert_tf.modeling.kernels.dropout import split_dropout_seed
from albert_tf.modeling.kernels.flash_attention import ATTENTION_CHOICES
from albert_tf.modeling.kernels.rematerialization import REMATERIALIZATION_CHOICES, rematerialize
from albert_tf.modeling.layers import AlbertLayer, Linear, repeat_parameters

# Added to the scores of keys that are padding (original modeling.py).
_MASKED_SCORE = -10000.0


class AlbertEncoder(tf.keras.Model):
    """Embeddings, `num_hidden_layers` applications of shared blocks, and the pooler.

    Args:
        config: Hyper-parameters.
        remat: What the backward pass computes again rather than keep: "none", the "attention" probabilities, or every
            "block". Results are the same.
        attention: "plain" operations, "flash" kernels (see `flash_attention`), or "auto": the kernels on a TPU.
        **kwargs: Of `tf.keras.Model`; `dtype="mixed_bfloat16"` computes in bfloat16 with float32 variables.

    Raises:
        ValueError: There is no such `remat` or `attention`.
    """

    def __init__(self, config: AlbertConfig, remat: str = "none", attention: str = "auto", **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.built = True
        if remat not in REMATERIALIZATION_CHOICES:
            raise ValueError(f"remat must be one of {', '.join(REMATERIALIZATION_CHOICES)}. Received: {remat}")
        if attention not in ATTENTION_CHOICES:
            raise ValueError(f"attention must be one of {', '.join(ATTENTION_CHOICES)}. Received: {attention}")
        self._remat = remat
        policy = kwargs.get("dtype")
        self.config = config
        self.embeddings = AlbertEmbeddings(config, dtype=policy)
        self.embedding_hidden_mapping_in = None
        if config.embedding_size != config.hidden_size:
            self.embedding_hidden_mapping_in = Linear(
                config.embedding_size, config.hidden_size, config.initializer_range, dtype=policy
            )
        # Sub-layers that are shared exist once a group, the others once a layer.
        num_attention = config.num_hidden_groups if config.sharing in ("all", "attention") else config.num_hidden_layers
        num_feed_forward = config.num_hidden_groups if config.sharing in ("all", "ffn") else config.num_hidden_layers
        inner = config.inner_group_num
        self.attention_layers = [
            SelfAttention(config, attention, remat == "attention", dtype=policy) for _ in range(num_attention * inner)
        ]
        self.feed_forward_layers = [FeedForward(config, dtype=policy) for _ in range(num_feed_forward * inner)]
        self.pooler = Linear(config.hidden_size, config.hidden_size, config.initializer_range, dtype=policy)

    def call(self, inputs, training=False, dropout_seed=None, output_positions=None):
        """Encodes.

        Args:
            inputs: Dictionary of int [B, S]: `input_ids`, and if given `input_mask` (1 for real pieces, default all)
                and `segment_ids` (default 0); see `encoder_inputs` for other names.
            training: Whether dropout is on.
            dropout_seed: int32 [2], the seed of every dropout of this call; drawn anew if None.
            output_positions: int [B, P], the positions that are read, the first of them 0; None for all. In the last
                block queries, projection and feed-forward layer are computed for these alone, with the same result;
                keys and values need all positions.

        Returns:
            Dictionary of `sequence_output` [B, S, H], or [B, P, H] with `output_positions`, and `pooled_output` [B, H],
            in `compute_dtype`.

        Raises:
            InputError: The dictionary holds a name that no model knows, or lacks one.
            ValueError: The sequence is longer than `max_position_embeddings`.
        """
        inputs = encoder_inputs(inputs)
        input_ids = inputs["input_ids"]
        max_seq_length = input_ids.shape[1]
        if max_seq_length is not None and max_seq_length > self.config.max_position_embeddings:
            raise ValueError(
                f"sequences must not be longer than max_position_embeddings={self.config.max_position_embeddings}. "
                f"Received: {max_seq_length}"
            )
        input_mask = inputs.get("input_mask")
        input_mask = tf.ones_like(input_ids) if input_mask is None else input_mask
        segment_ids = inputs.get("segment_ids")
        segment_ids = tf.zeros_like(input_ids) if segment_ids is None else segment_ids

        num_blocks = self.config.num_hidden_layers * self.config.inner_group_num
        seeds = split_dropout_seed(resolve_dropout_seed(training, dropout_seed), 1 + 2 * num_blocks)
        hidden_states = self.embeddings(input_ids, segment_ids, dropout_seed=seeds[0])
        if self.embedding_hidden_mapping_in is not None:
            hidden_states = self.embedding_hidden_mapping_in(hidden_states)
        attention_bias = (1.0 - tf.cast(input_mask, tf.float32)[:, None, None, :]) * _MASKED_SCORE
        hidden_states = self._apply_blocks(hidden_states, attention_bias, seeds[1:], output_positions)
        pooled_output = tf.tanh(self.pooler(hidden_states[:, 0]))
        return {"sequence_output": hidden_states, "pooled_output": pooled_output}

    def _apply_blocks(self, hidden_states, attention_bias, seeds, output_positions):
        """Applies all blocks, one after the other: a loop over shared weights would keep more and read more."""
        num_blocks = len(seeds) // 2
        attention = self._applications(self.attention_layers, num_blocks, hidden_states.shape[1])
        feed_forward = self._applications(self.feed_forward_layers, num_blocks)
        for block in range(num_blocks):
            is_last = block == num_blocks - 1
            apply = functools.partial(_apply_block, attention[block].layer, feed_forward[block].layer)
            hidden_states = (rematerialize(apply) if self._remat == "block" else apply)(
                hidden_states,
                attention_bias,
                [] if seeds[0] is None else seeds[2 * block : 2 * block + 2],
                attention[block].parameters,
                feed_forward[block].parameters,
                [output_positions] if is_last and output_positions is not None else [],
            )
        return hidden_states

    def _applications(self, layers, num_blocks, *arguments):
        """Returns for each block its sub-layer, and that one's weights, read once however many blocks share them."""
        owners = [self._owner(layers, block) for block in range(num_blocks)]
        copies = {
            owner: iter(
                repeat_parameters(layers[owner].parameters(*arguments), owners.count(owner), self.compute_dtype)
            )
            for owner in dict.fromkeys(owners)
        }
        return [_Application(layers[owner], next(copies[owner])) for owner in owners]

    def _owner(self, layers, block):
        """Returns the number of the sub-layer that a block applies: its own, or its group's (original modeling.py)."""
        inner = self.config.inner_group_num
        layer, position = divmod(block, inner)
        owner = layer * (len(layers) // inner) // self.config.num_hidden_layers
        return owner * inner + position


class _Application(typing.NamedTuple):
    """A sub-layer and the weights of one use of it."""

    layer: AlbertLayer
    parameters: dict[str, dict[str, tf.Tensor]]


def _apply_block(
    attention,
    feed_forward,
    hidden_states,
    attention_bias,
    seeds,
    attention_parameters,
    feed_forward_parameters,
    positions,
):
    """Applies two sub-layers; a function of its arguments alone, where an empty list stands for None."""
    attention_seed, feed_forward_seed = seeds or (None, None)
    hidden_states = attention(
        hidden_states, attention_bias, attention_seed, attention_parameters, positions[0] if positions else None
    )
    return feed_forward(hidden_states, feed_forward_seed, feed_forward_parameters)


def resolve_dropout_seed(training: bool, dropout_seed: tf.Tensor | None) -> tf.Tensor | None:
    """Returns the seed int32 [2] to use: none outside training, and a random one where none was given."""
    if not training:
        return None
    if dropout_seed is None:
        return tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
    return dropout_seed
