"""What is known of an entity, added to the state of the piece where a text mentions it (ERNIE; Zhang et al. 2019).

Of the paper is how the two are joined (equation 4), at the first piece of a mention; and that vectors of entities are
learnt elsewhere and stay as they are. There entities have states of their own, which attend to one another, and other
pieces pass the same layer; here they are added at one place of the encoder, and what mentions nothing is left alone.
"""

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.mentions.trie import Trie, TrieSizes, find_sequences
from albert_tf.modeling.layers import ACTIVATIONS, ConfiguredLayer, Linear

_TRIE = "name_"


def trie_sizes(config: AlbertConfig) -> TrieSizes:
    """Returns the sizes of the trie of names that a config says."""
    return TrieSizes(
        config.vocab_size, config.entity_name_edges, config.entity_name_collisions, config.entity_name_length
    )


def constants(vectors: np.ndarray, trie: Trie) -> dict[str, np.ndarray]:
    """Returns what a layer is told and never learns, by the names that it has there; arguments as for `assign`."""
    return {"entity_embeddings": vectors, **{f"{_TRIE}{name}": values for name, values in trie._asdict().items()}}


@tf.keras.utils.register_keras_serializable("albert_tf")
class EntityFusion(ConfiguredLayer):
    """Finds names in ids, and adds to the states where they begin what follows from these and from their vectors.

    A new layer knows no name. With names it adds nothing until it has learnt to: its last kernel begins with zeros, so
    that a model that has been trained without goes on as it was.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        size, stddev, policy = config.hidden_size, config.initializer_range, kwargs.get("dtype")
        self.entity_embeddings = self.add_constant("entity_embeddings", [config.num_entities, config.entity_size])
        for name, shape in trie_sizes(config).shapes().items():
            setattr(self, f"{_TRIE}{name}", self.add_constant(f"{_TRIE}{name}", shape, "int32"))
        self.activation = ACTIVATIONS[config.hidden_act]
        self.transform = Linear(size + config.entity_size, size, stddev, dtype=policy)
        self.output_dense = Linear(size, size, stddev, np.zeros([size, size]), dtype=policy)

    def assign(self, vectors: np.ndarray, trie: Trie) -> None:
        """Tells it vectors, float32 [num_entities, entity_size], and the trie of their names in the same order."""
        for name, values in constants(vectors, trie).items():
            getattr(self, name).assign(values)

    @property
    def knows_names(self) -> bool:
        """Whether it has been told any."""
        return bool(tf.reduce_any(tf.convert_to_tensor(self.name_starts_word) > 0))

    def find(self, input_ids):
        """Returns the number of the entity, from 1, that is mentioned from each piece on, int32 [B, S], else 0."""
        names = Trie._fields
        trie = Trie(*(tf.convert_to_tensor(getattr(self, f"{_TRIE}{name}")) for name in names))
        return find_sequences(trie, trie_sizes(self._config), tf.cast(input_ids, tf.int32))[0]

    def vectors(self, entity_ids):
        """Returns vectors of entities by number, from 1, float32 [..., entity_size]; 0, none, has that of the first."""
        return tf.gather(tf.convert_to_tensor(self.entity_embeddings), tf.maximum(entity_ids - 1, 0))

    def call(self, states, entity_ids):
        """Adds to states [B, S, H] what is known of entities [B, S]; those of 0, none, stay as they are, to the bit."""
        joined = tf.concat([states, tf.cast(self.vectors(entity_ids), self.compute_dtype)], axis=-1)
        told = self.output_dense(self.activation(self.transform(joined)))
        return tf.where(entity_ids[..., None] > 0, states + told, states)
