"""A Transformer block and its two sub-layers, each with its residual connection and LayerNorm.

LayerNorm comes after the sum (post-LN), or with `norm_position` "pre" before the sub-layer, whose input is added as it
is (pre-LN).

Attention may know the distance of two tokens in every layer (DeBERTa; He et al. 2021, section 3.1). All layers share
one table of distance embeddings. From each a layer makes a key, whose product with a token's query scores looking that
far (content to position), and a query for the tokens' keys (position to content).
"""

import typing

import tensorflow as tf

from albert_tf.base.compilation import is_compiled_whole
from albert_tf.config import AlbertConfig
from albert_tf.modeling.initializers import NeighborAttention, residual_range
from albert_tf.modeling.kernels.attention import (
    CUDNN,
    PALLAS,
    PLAIN,
    Distances,
    attend,
    attend_by_heads,
    heads_of,
    num_distances,
    places_of_pairs,
    split_heads,
)
from albert_tf.modeling.kernels.elementwise import dropout, split_dropout_seed
from albert_tf.modeling.kernels.flash_attention import COLUMNS_TOGETHER
from albert_tf.modeling.kernels.linear import Part, QueryKeyValue, SeparateProjections, using
from albert_tf.modeling.kernels.positions import KeyValueCache, select_positions, visible_keys
from albert_tf.modeling.layers import ACTIVATIONS, ConfiguredLayer, LayerNorm, Linear


class RelativePositions(typing.NamedTuple):
    """Embeddings of the distances in a batch, and the index of that of each pair of tokens."""

    embeddings: tf.Tensor  # [M, H]
    places: tf.Tensor  # int32 [S, S], from 0 to M - 1, query by key


@tf.keras.utils.register_keras_serializable("albert_tf")
class RelativeEmbeddings(ConfiguredLayer):
    """The table of distance embeddings, with LayerNorm if `norm_rel_ebd` asks for it."""

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        shape = [num_distances(config), config.hidden_size]
        self.table = self.add_parameter("table", shape, config.initializer_range)
        self.layer_norm = None
        if config.norm_rel_ebd == "layer_norm":
            self.layer_norm = LayerNorm(config.hidden_size, config.layer_norm_eps, dtype=kwargs.get("dtype"))

    def call(self, hidden_states):
        length = hidden_states.shape[1] or tf.shape(hidden_states)[1]
        first, last, places = places_of_pairs(length, self._config)
        embeddings = tf.convert_to_tensor(self.table)[first : last + 1]
        if self.layer_norm is not None:
            embeddings = self.layer_norm(embeddings)
        return RelativePositions(tf.cast(embeddings, self.compute_dtype), tf.convert_to_tensor(places))


@tf.keras.utils.register_keras_serializable("albert_tf")
class DistanceProjections(ConfiguredLayer):
    """Makes queries and keys of distances in one layer; has no weights of its own with `share_att_key`."""

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        size, policy = config.hidden_size, kwargs.get("dtype")
        self.query, self.key = (
            Linear(size, size, config.initializer_range, name=name, dtype=policy)
            if term in config.relative_attention and not config.share_att_key
            else None
            for name, term in (("query", "p2c"), ("key", "c2p"))
        )

    def project(
        self, relative: RelativePositions, shared: QueryKeyValue | SeparateProjections, dropout_seed: tf.Tensor | None
    ) -> Distances:
        """Projects the embeddings after dropout; `shared` are the projections of tokens."""
        config = self._config
        head_size = config.hidden_size // config.num_attention_heads
        *_, seed = split_dropout_seed(dropout_seed, 3)  # the first two are those of attention
        embeddings = dropout(relative.embeddings, config.hidden_dropout_prob, seed, has_examples=False)[None]
        if config.share_att_key:
            query, key, _ = heads_of(shared(embeddings, embeddings), head_size)
        else:
            query, key = (
                None if linear is None else split_heads(linear(embeddings), config.hidden_size, head_size)[0]
                for linear in (self.query, self.key)
            )
        query, key = (
            heads[0] if term in config.relative_attention else None for heads, term in ((query, "p2c"), (key, "c2p"))
        )
        return Distances(query, key, relative.places)

    def parts(self) -> list[Part]:
        return [linear for linear in (self.query, self.key) if linear is not None]


@tf.keras.utils.register_keras_serializable("albert_tf")
class SelfAttention(ConfiguredLayer):
    """Multi-head self-attention (Vaswani et al. 2017, section 3.2), disentangled with `relative_attention`.

    `neighbors` initializes query and key. On a CPU or GPU one product computes queries, keys and values if
    `is_one_product`, which pays where their kernels are concatenated less often than they are used.
    """

    def __init__(
        self,
        config: AlbertConfig,
        rematerializes: bool = False,
        neighbors: NeighborAttention | None = None,
        **kwargs,
    ):
        super().__init__(config, **kwargs)
        self._rematerializes = rematerializes
        self._norm_is_first = config.norm_position == "pre"
        hidden_size, policy = config.hidden_size, kwargs.get("dtype")

        def linear(name, kernel=None, stddev=config.initializer_range):
            return Linear(hidden_size, hidden_size, stddev, kernel, name=name, dtype=policy)

        self.query = linear("query", neighbors and neighbors.query)
        self.key = linear("key", neighbors and neighbors.key)
        self.value = linear("value")
        self.output_dense = linear("output_dense", stddev=residual_range(config))
        self.layer_norm = LayerNorm(hidden_size, config.layer_norm_eps, dtype=policy)
        self.distances = None
        if config.relative_attention != "none":
            self.distances = DistanceProjections(config, dtype=policy)
        # One product for all three, in the order of columns that plain operations and flash kernels want.
        query_key_value = [self.query, self.key, self.value]
        self._plain_projections = QueryKeyValue(query_key_value, hidden_size)
        self._flash_projections = QueryKeyValue(query_key_value, COLUMNS_TOGETHER)
        self._separate_projections = SeparateProjections(query_key_value)
        shares_attention = config.sharing in ("all", "attention")
        self.is_one_product = shares_attention and config.num_hidden_groups < config.num_hidden_layers

    def call(
        self,
        hidden_states,
        attention_bias,
        dropout_seed=None,
        output_positions=None,
        document_ids=None,
        kernel=PLAIN,
        output_attentions=False,
        relative=None,
    ):
        """Attends to [B, S, H] from all positions, or from `output_positions` int [B, P].

        Returns `compute_dtype` [B, S, H] or [B, P, H]; with `output_attentions` also the probabilities after dropout,
        [B, N, S, S] or [B, N, P, S]. The bias is float32 [B, 1, S] or [B, S, S]: 0 for visible keys, -10000 for others.
        A position sees only its own document of `document_ids` int32 [B, S]. The seed is int32 [2] or None; `kernel`
        comes from `choose_kernel`, and `relative` from `RelativeEmbeddings`.
        """
        probs_seed, output_seed = split_dropout_seed(dropout_seed, 2)
        residual = queries = select_positions(hidden_states, output_positions)
        if self._norm_is_first:
            hidden_states = self.layer_norm(hidden_states)
            queries = select_positions(hidden_states, output_positions)
        seen_from, distances = output_positions, None
        if relative is not None:  # distances are known of all pairs alone
            queries, seen_from = hidden_states, None
            distances = self.distances.project(relative, self._projections(kernel), dropout_seed)
        projections = self._projections(kernel)
        project = projections.products_and_biases if kernel == PALLAS else projections
        query_key_value = project(queries, hidden_states)
        if kernel == CUDNN and self._config.is_causal and output_positions is not None:
            kernel = PLAIN  # cuDNN's knows causal masks for all positions alone
        context, *probs = attend(
            query_key_value,
            visible_keys(attention_bias, document_ids, self._config.is_causal, seen_from),
            probs_seed,
            self._config.hidden_size // self._config.num_attention_heads,
            self._config.attention_probs_dropout_prob,
            kernel,
            self._rematerializes,
            output_attentions,
            distances,
        )
        if relative is not None and output_positions is not None:
            context = select_positions(context, output_positions)
            probs = [tf.gather(each, output_positions, axis=2, batch_dims=1) for each in probs]
        hidden_states = self._add(residual, context, output_seed)
        return (hidden_states, *probs) if output_attentions else hidden_states

    def query_key_value(self, hidden_states):
        """Returns queries, keys and values of hidden states as `call` takes them, `compute_dtype` [B, S, H] each."""
        if self._norm_is_first:
            hidden_states = self.layer_norm(hidden_states)
        return [linear(hidden_states) for linear in (self.query, self.key, self.value)]

    def extend(
        self, hidden_states: tf.Tensor, columns: tf.Tensor, cache: KeyValueCache
    ) -> tuple[tf.Tensor, KeyValueCache]:
        """Attends from further states [B, T, H], at `columns` int32 [B, T], to all before; returns output and cache."""
        inputs = self.layer_norm(hidden_states) if self._norm_is_first else hidden_states
        hidden_size = self._config.hidden_size
        query, key, value = (
            heads
            for projection in self._separate_projections(inputs, inputs)
            for heads in split_heads(projection, hidden_size, hidden_size // self._config.num_attention_heads)
        )
        cache = cache.written(key, value, columns)
        context, _ = attend_by_heads(query, *cache, cache.visible_from(columns))
        return self._add(hidden_states, context), cache

    def _add(self, residual, context, dropout_seed=None):
        output = dropout(self.output_dense(context), self._config.hidden_dropout_prob, dropout_seed)
        return residual + output if self._norm_is_first else self.layer_norm(residual + output)

    def parts(self, kernel: str) -> list[Part]:
        """Returns the holders of the weights that `call` uses, for `shared_weights.read_once`."""
        of_distances = [] if self.distances is None else self.distances.parts()
        return [*self._projections(kernel).parts(), *of_distances, self.output_dense, self.layer_norm]

    def _projections(self, kernel):
        if kernel == PALLAS:
            return self._flash_projections
        is_separate = not (self.is_one_product or is_compiled_whole())
        return self._separate_projections if is_separate else self._plain_projections

    def get_config(self):
        return {**super().get_config(), "rematerializes": self._rematerializes}


@tf.keras.utils.register_keras_serializable("albert_tf")
class FeedForward(ConfiguredLayer):
    """Two linear layers with an activation in between, applied to each position."""

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        self._norm_is_first = config.norm_position == "pre"
        policy = kwargs.get("dtype")
        self.activation = ACTIVATIONS[config.hidden_act]
        sizes = config.hidden_size, config.intermediate_size
        self.intermediate = Linear(*sizes, config.initializer_range, name="intermediate", dtype=policy)
        self.output_dense = Linear(*reversed(sizes), residual_range(config), name="output_dense", dtype=policy)
        self.layer_norm = LayerNorm(config.hidden_size, config.layer_norm_eps, dtype=policy)

    def call(self, hidden_states, dropout_seed=None):
        """Maps [B, S, H] to `compute_dtype` [B, S, H]; `dropout_seed` is int32 [2] or None."""
        if is_compiled_whole():
            return self._transform(hidden_states, dropout_seed)
        # As rows, between whose products and activation nothing stands: where nothing is to be differentiated,
        # TensorFlow's runtime passes product, bias and GELU to oneDNN as one operation.
        rows = tf.reshape(hidden_states, [-1, hidden_states.shape[-1]])
        return tf.reshape(self._transform(rows, dropout_seed), tf.shape(hidden_states))

    def _transform(self, hidden_states, dropout_seed):
        inputs = self.layer_norm(hidden_states) if self._norm_is_first else hidden_states
        intermediate = self.activation(self.intermediate(inputs))
        output = dropout(self.output_dense(intermediate), self._config.hidden_dropout_prob, dropout_seed)
        return hidden_states + output if self._norm_is_first else self.layer_norm(hidden_states + output)

    def parts(self) -> list[Part]:
        return [self.intermediate, self.output_dense, self.layer_norm]


class Block:
    """One application of a block: attention, then the feed-forward network, either of which other blocks may share."""

    def __init__(
        self, attention: SelfAttention, feed_forward: FeedForward, kernel: str, output_attentions: bool = False
    ):
        self._attention = attention
        self._feed_forward = feed_forward
        self._kernel = kernel
        self._output_attentions = output_attentions

    def parts(self) -> list[Part]:
        return [*self._attention.parts(self._kernel), *self._feed_forward.parts()]

    def __call__(self, hidden_states, sees, seeds, weights, output_positions=None) -> list[tf.Tensor]:
        """Returns hidden states and, if asked for, attention probabilities; a pure function of its arguments.

        Takes states [B, S, H], `sees` (`attention_bias`, `document_ids` and `relative` of `SelfAttention`), a seed
        int32 [2] or None for each sub-layer, and the weights of `parts`.
        """
        attention_seed, feed_forward_seed = seeds
        attention_bias, document_ids, relative = sees
        with using(self.parts(), weights):
            attended = self._attention(
                hidden_states,
                attention_bias,
                attention_seed,
                output_positions,
                document_ids,
                kernel=self._kernel,
                output_attentions=self._output_attentions,
                relative=relative,
            )
            hidden_states, *probs = attended if self._output_attentions else [attended]
            return [self._feed_forward(hidden_states, feed_forward_seed), *probs]
