"""The ALBERT encoder: blocks that share weights, applied one after the other."""

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.attention import Block, FeedForward, RelativeEmbeddings, SelfAttention
from albert_tf.modeling.embeddings import AlbertEmbeddings, encoder_inputs
from albert_tf.modeling.entity_fusion import EntityFusion
from albert_tf.modeling.initializers import NeighborAttention
from albert_tf.modeling.kernels.attention import choose_kernel
from albert_tf.modeling.kernels.cudnn_attention import AttentionCase
from albert_tf.modeling.kernels.elementwise import resolve_dropout_seed, split_dropout_seed
from albert_tf.modeling.kernels.linear import read_once
from albert_tf.modeling.kernels.positions import HIDDEN_SCORE, KeyValueCache
from albert_tf.modeling.kernels.rematerialization import rematerialize
from albert_tf.modeling.layers import LayerNorm, Linear
from albert_tf.modeling.pretrained import AlbertModel


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertEncoder(AlbertModel):
    """Embeddings, `num_hidden_layers` applications of shared blocks, and the pooler.

    Args:
        config: Hyper-parameters.
        remat: What the backward pass recomputes to save memory: "none", the "attention" probabilities, or every
            "block". Results are the same.
        attention: "plain" operations, "flash" kernels, or "auto": the kernels where the device and the call allow them.
        embeddings: Those of another model, to share them; None for new ones.
        **kwargs: Of `tf.keras.Model`; `dtype="mixed_bfloat16"` computes in bfloat16 with float32 variables.

    Raises:
        ValueError: There is no such `remat` or `attention`.
        InputError: `attention` is "flash", and there are no kernels for such a model.
    """

    _checkpoint_prefix = "encoder/"

    def __init__(
        self,
        config: AlbertConfig,
        remat: str = "none",
        attention: str = "auto",
        embeddings: AlbertEmbeddings | None = None,
        **kwargs,
    ):
        super().__init__(config, remat, attention, **kwargs)
        policy = kwargs.get("dtype")
        self.embeddings = AlbertEmbeddings(config, dtype=policy) if embeddings is None else embeddings
        neighbors = NeighborAttention.draw(config) if config.attention_initializer == "neighbors" else [None]
        self.embedding_hidden_mapping_in = None
        if config.embedding_size != config.hidden_size:
            self.embedding_hidden_mapping_in = Linear(
                config.embedding_size,
                config.hidden_size,
                config.initializer_range,
                neighbors[0] and neighbors[0].projection,
                dtype=policy,
            )
        # Sub-layers that are shared exist once a group, the others once a layer.
        num_attention = config.num_hidden_groups if config.sharing in ("all", "attention") else config.num_hidden_layers
        num_feed_forward = config.num_hidden_groups if config.sharing in ("all", "ffn") else config.num_hidden_layers
        inner = config.inner_group_num
        self.attention_layers = [
            SelfAttention(config, remat == "attention", neighbors[number % len(neighbors)], dtype=policy)
            for number in range(num_attention * inner)
        ]
        self.feed_forward_layers = [FeedForward(config, dtype=policy) for _ in range(num_feed_forward * inner)]
        self.relative_embeddings = None
        if config.relative_attention != "none":
            self.relative_embeddings = RelativeEmbeddings(config, dtype=policy)
        self.entity_fusion = EntityFusion(config, dtype=policy) if config.num_entities else None
        self.last_layer_norm = None
        if config.norm_position == "pre":
            self.last_layer_norm = LayerNorm(config.hidden_size, config.layer_norm_eps, dtype=policy)
        self.pooler = None
        if config.pooler:
            self.pooler = Linear(config.hidden_size, config.hidden_size, config.initializer_range, dtype=policy)

    def call(
        self,
        inputs,
        training=False,
        dropout_seed=None,
        output_positions=None,
        output_hidden_states=False,
        output_attentions=False,
    ):
        """Encodes a batch.

        Args:
            inputs: Dictionary of `input_ids` int [B, S], or `inputs_embeds` [B, S, E] in place of word embeddings.
                Optional are `input_mask` int [B, S], 1 for visible keys, or [B, S, S] with a row for each query
                (default all); `document_ids` int [B, S], where tokens see only their own document (default one
                document); `segment_ids` int [B, S] (default 0); `position_ids` int [B, S], less than
                `max_position_embeddings` (default 0 to S - 1, or from `position_offset` on); `language_ids` int [B, S],
                less than `num_languages` (default 0); and `entity_ids` int [B, S], the numbers, from 1, of entities
                that a linker of your own has found (default: where their names are found, 0 elsewhere). transformers'
                names `attention_mask`, `token_type_ids` and `langs` are known, too.
            training: Whether dropout is on.
            dropout_seed: int32 [2], the seed of every dropout of this call; drawn anew if None.
            output_positions: int [B, P], the first of them 0, the only ones that the last block computes; None for all.
            output_hidden_states: Whether to return the output of every block.
            output_attentions: Whether to return the attention probabilities; only plain operations can.

        Returns:
            Dictionary of `sequence_output` [B, S, H], or [B, P, H] with `output_positions`, and, if the config has a
            pooler, `pooled_output` [B, H], in `compute_dtype`. If asked for, `hidden_states`, a tuple of the projected
            embeddings and each block's output [B, S, H], the last after the last LayerNorm if there is one, and
            `attentions`, a tuple of each block's [B, N, S, S], after dropout; with `output_positions`, the last of each
            has P rows for S.

        Raises:
            InputError: The dictionary holds an unknown name or lacks one; the sequence is longer than the config's
                `longest_sequence`; attention="flash" can't do what is asked; or entities are to be found where they
                can't.
        """
        inputs = encoder_inputs(inputs)
        max_seq_length = inputs["segment_ids"].shape[1]
        if max_seq_length is not None:
            self.config.check_max_seq_length(max_seq_length)
        attention_bias = _attention_bias(inputs["input_mask"])
        case = AttentionCase(
            inputs["segment_ids"].shape[0],
            max_seq_length,
            self.config.hidden_size // self.config.num_attention_heads,
            self.compute_dtype,
            self.config.attention_probs_dropout_prob if training else 0.0,
            has_documents="document_ids" in inputs,
            masks_rows=attention_bias.shape[1] != 1,
            output_attentions=output_attentions,
        )
        kernel = choose_kernel(self._attention, self.config.hidden_size, case)
        num_blocks = self.config.num_blocks
        embedding_seed, *block_seeds = split_dropout_seed(
            resolve_dropout_seed(training, dropout_seed), 1 + 2 * num_blocks
        )

        hidden_states = self._embed(
            inputs.get("input_ids"),
            inputs["segment_ids"],
            inputs.get("position_ids"),
            inputs.get("inputs_embeds"),
            embedding_seed,
            inputs.get("language_ids"),
        )
        blocks = [self._block(number, kernel, output_attentions) for number in range(num_blocks)]
        relative = None if self.relative_embeddings is None else self.relative_embeddings(hidden_states)
        sees = attention_bias, inputs.get("document_ids"), relative
        entity_ids = self._find_entities(inputs)
        hidden_states, attentions = self._apply_blocks(
            blocks, hidden_states, sees, block_seeds, output_positions, entity_ids
        )

        if self.last_layer_norm is not None:
            hidden_states[-1] = self.last_layer_norm(hidden_states[-1])
        outputs = {"sequence_output": hidden_states[-1]}
        if self.pooler is not None:
            outputs["pooled_output"] = tf.tanh(self.pooler(hidden_states[-1][:, 0]))
        if output_hidden_states:
            outputs["hidden_states"] = tuple(hidden_states)
        if output_attentions:
            outputs["attentions"] = tuple(attentions)
        return outputs

    def query_key_value(self, hidden_states, number):
        """Computes queries, keys and values of one application of a block anew.

        A graph leaves out that application and later ones where no gradient and no output depends on them.

        Args:
            hidden_states: The tuple that `call` returns.
            number: Which application, from 0.

        Returns:
            A list of three, `compute_dtype` [B, S, H] each.
        """
        attention, _ = self.sub_layers_of(number)
        return self.attention_layers[attention].query_key_value(hidden_states[number])

    def sub_layers_of(self, number):
        """Returns the indices in `attention_layers` and `feed_forward_layers` of an application of a block."""
        inner = self.config.inner_group_num
        layer, position = divmod(number, inner)

        def place(layers):
            return layer * (len(layers) // inner) // self.config.num_hidden_layers * inner + position

        return place(self.attention_layers), place(self.feed_forward_layers)

    def extend(
        self, input_ids: tf.Tensor, columns: tf.Tensor, caches: list[KeyValueCache]
    ) -> tuple[tf.Tensor, list[KeyValueCache]]:
        """Encodes further tokens of texts whose earlier ones are cached; each sees those before it.

        Args:
            input_ids: int32 [B, T].
            columns: int32 [B, T], the positions of the tokens, counted from 0 whatever the `position_offset`.
            caches: Of `empty_caches` or of this method.

        Returns:
            The last states of these tokens, [B, T, H] in `compute_dtype`, and the extended caches.
        """
        hidden_states = self._embed(input_ids, tf.zeros_like(input_ids), columns + self.config.position_offset)
        extended = []
        for number, cache in enumerate(caches):
            attention, feed_forward = self._sub_layers(number)
            hidden_states, cache = attention.extend(hidden_states, columns, cache)
            hidden_states = feed_forward(hidden_states)
            extended.append(cache)
        if self.last_layer_norm is not None:
            hidden_states = self.last_layer_norm(hidden_states)
        return hidden_states, extended

    def empty_caches(self, batch_size: int, length: int) -> list[KeyValueCache]:
        """Returns a cache of `length` tokens for each application of a block."""
        num_heads = self.config.num_attention_heads
        shape = batch_size, num_heads, length, self.config.hidden_size // num_heads
        return [KeyValueCache.empty(shape, self.compute_dtype) for _ in range(self.config.num_blocks)]

    def _layers_with_inputs(self):
        ids = self._symbol(None, dtype="int32")
        states, bias = self._symbol(None, self.config.hidden_size), self._symbol(1, None, dtype="float32")
        mapping = self.embedding_hidden_mapping_in
        return [
            (self.embeddings, ids, ids),
            *([] if mapping is None else [(mapping, self._symbol(None, self.config.embedding_size))]),
            *([] if self.relative_embeddings is None else [(self.relative_embeddings, states)]),
            *((layer, states, bias) for layer in self.attention_layers),
            *((layer, states) for layer in self.feed_forward_layers),
            *([] if self.entity_fusion is None else [(self.entity_fusion, states, ids)]),
            *([] if self.last_layer_norm is None else [(self.last_layer_norm, states)]),
            *([] if self.pooler is None else [(self.pooler, self._symbol(self.config.hidden_size))]),
        ]

    def _find_entities(self, inputs):
        given = inputs.get("entity_ids")
        if self.entity_fusion is None:
            if given is not None:
                raise InputError("entity_ids are of no use to a model of num_entities=0; leave them out")
            return None
        if given is not None:
            return given
        if "input_ids" not in inputs or "document_ids" in inputs:
            raise InputError(
                "a model with entities finds their names only in input_ids of a single document; pass entity_ids along "
                "with inputs_embeds or document_ids"
            )
        return self.entity_fusion.find(inputs["input_ids"])

    def _embed(self, *inputs, **options):
        embeddings = self.embeddings(*inputs, **options)
        mapping = self.embedding_hidden_mapping_in
        return embeddings if mapping is None else mapping(embeddings)

    def _apply_blocks(self, blocks, hidden_states, sees, seeds, output_positions, entity_ids):
        """Returns all hidden states and, if asked for, attention probabilities; a loop would keep and read more."""
        hidden_states, attentions = [hidden_states], []
        weights = read_once([block.parts() for block in blocks], self.compute_dtype)
        for number, block in enumerate(blocks):
            if entity_ids is not None and number == self.config.entity_layer:
                hidden_states[-1] = self.entity_fusion(hidden_states[-1], entity_ids)
            is_last = number == len(blocks) - 1
            outputs, *probs = (rematerialize(block) if self._remat == "block" else block)(
                hidden_states[-1],
                sees,
                seeds[2 * number : 2 * number + 2],
                weights[number],
                output_positions if is_last else None,
            )
            hidden_states.append(outputs)
            attentions.extend(probs)
        return hidden_states, attentions

    def _block(self, number, kernel, output_attentions):
        return Block(*self._sub_layers(number), kernel, output_attentions)

    def _sub_layers(self, number):
        attention, feed_forward = self.sub_layers_of(number)
        return self.attention_layers[attention], self.feed_forward_layers[feed_forward]


def _attention_bias(input_mask):
    """Returns float32 [B, 1, S] or [B, S, S]: 0 for visible keys, and a large negative number for others."""
    rows = input_mask[:, None] if input_mask.shape.rank == 2 else input_mask
    return (1.0 - tf.cast(rows, tf.float32)) * HIDDEN_SCORE
