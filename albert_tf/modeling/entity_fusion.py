"""Knowledge of an entity, added to the state of the token where a text mentions it (ERNIE; Zhang et al. 2019).

As in the paper, state and vector are joined by equation 4, at the first token of a mention, and entity vectors stay
fixed. There, entities have states of their own, which attend to one another, and all tokens pass the same layer; here
they are added at one place of the encoder, and other tokens stay as they are.
"""

import numpy as np
import tensorflow as tf

from albert_tf.base.sequences import Trie, TrieSizes, find_sequences
from albert_tf.config import AlbertConfig
from albert_tf.modeling.layers import ACTIVATIONS, ConfiguredLayer, Linear

_TRIE = "name_"


def trie_sizes(config: AlbertConfig) -> TrieSizes:
    return TrieSizes(
        config.vocab_size, config.entity_name_edges, config.entity_name_collisions, config.entity_name_length
    )


def constants(vectors: np.ndarray, trie: Trie) -> dict[str, np.ndarray]:
    """Returns a layer's values that are not trainable, by their names there; arguments as for `EntityFusion.assign`."""
    return {"entity_embeddings": vectors, **{f"{_TRIE}{name}": values for name, values in trie._asdict().items()}}


@tf.keras.utils.register_keras_serializable("albert_tf")
class EntityFusion(ConfiguredLayer):
    """Finds names in ids, and adds a function of state and entity vector where they begin.

    A new layer knows no name. With names it adds nothing until it is trained: its last kernel begins with zeros, so
    that a model that was trained without goes on unchanged.
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
        """Sets vectors float32 [num_entities, entity_size], and the trie of their names in the same order."""
        for name, values in constants(vectors, trie).items():
            getattr(self, name).assign(values)

    @property
    def knows_names(self) -> bool:
        return bool(tf.reduce_any(tf.convert_to_tensor(self.name_starts_word) > 0))

    def find(self, input_ids):
        """Returns the number, from 1, of the entity whose mention begins at each token, int32 [B, S], else 0."""
        names = Trie._fields
        trie = Trie(*(tf.convert_to_tensor(getattr(self, f"{_TRIE}{name}")) for name in names))
        return find_sequences(trie, trie_sizes(self._config), tf.cast(input_ids, tf.int32))[0]

    def vectors(self, entity_ids):
        """Returns entity vectors by number, float32 [..., entity_size]; for 0, no entity, that of the first."""
        return tf.gather(tf.convert_to_tensor(self.entity_embeddings), tf.maximum(entity_ids - 1, 0))

    def call(self, states, entity_ids):
        """Adds knowledge of entities [B, S] to states [B, S, H]; states of number 0 stay the same to the bit."""
        joined = tf.concat([states, tf.cast(self.vectors(entity_ids), self.compute_dtype)], axis=-1)
        told = self.output_dense(self.activation(self.transform(joined)))
        return tf.where(entity_ids[..., None] > 0, states + told, states)
