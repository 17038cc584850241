"""Attention that knows the distance of two tokens in every layer (DeBERTa; He et al. 2021, section 3.1).

All layers share one table of distance embeddings. From each a layer makes a key, whose product with a token's query
scores looking that far (content to position), and a query for the tokens' keys (position to content).
"""

import typing

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.elementwise import dropout, split_dropout_seed
from albert_tf.modeling.kernels.linear import QueryKeyValue, SeparateProjections
from albert_tf.modeling.kernels.plain_attention import heads_of, split_heads
from albert_tf.modeling.kernels.relative_scores import Distances, num_distances, places_of_pairs
from albert_tf.modeling.kernels.shared_weights import Part
from albert_tf.modeling.layers import ConfiguredLayer, LayerNorm, Linear


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
