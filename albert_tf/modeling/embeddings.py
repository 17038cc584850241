"""Ids to vectors of the (small) embedding size."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.initializers import sinusoidal_positions
from albert_tf.modeling.kernels.dropout import dropout
from albert_tf.modeling.layers import AlbertLayer, LayerNorm


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertEmbeddings(AlbertLayer):
    """Sum of word, segment and position embeddings, normalised (paper, section 3.1; original modeling.py).

    Args:
        config: Hyper-parameters.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(**kwargs)
        self._config = config
        size, stddev = config.embedding_size, config.initializer_range
        self.word_embeddings = self.add_parameter("word_embeddings", [config.vocab_size, size], stddev)
        self.token_type_embeddings = self.add_parameter("token_type_embeddings", [config.type_vocab_size, size], stddev)
        is_sinusoidal = config.position_initializer == "sinusoidal"
        self.position_embeddings = self.add_parameter(
            "position_embeddings",
            [config.max_position_embeddings, size],
            sinusoidal_positions if is_sinusoidal else stddev,
        )
        self.layer_norm = LayerNorm(size, config.layer_norm_eps, dtype=kwargs.get("dtype"))

    def call(self, input_ids, segment_ids, position_ids=None, inputs_embeds=None, dropout_seed=None):
        """Looks ids up.

        Args:
            input_ids: int [B, S]; None with `inputs_embeds`.
            segment_ids: int [B, S].
            position_ids: int [B, S]; None for 0 to S - 1.
            inputs_embeds: [B, S, E], to be used in place of word embeddings.
            dropout_seed: int32 [2], or None.

        Returns:
            `compute_dtype` [B, S, E].
        """
        word = self.words(input_ids, inputs_embeds)
        # A product with one-hot rows: on a TPU the gradient of a gather from such a small table is slow.
        segments = tf.one_hot(segment_ids, self._config.type_vocab_size)
        token_type = tf.tensordot(segments, tf.convert_to_tensor(self.token_type_embeddings), 1)
        position_table = tf.convert_to_tensor(self.position_embeddings)
        if position_ids is None:
            position = position_table[: segment_ids.shape[1] or tf.shape(segment_ids)[1]]
        else:
            position = tf.gather(position_table, position_ids)
        embeddings = self.layer_norm(word + token_type + position)
        return dropout(embeddings, self._config.hidden_dropout_prob, dropout_seed)

    def words(self, input_ids, inputs_embeds=None):
        """Returns the word embeddings alone, float32 [B, S, E]; arguments as for `call`."""
        if inputs_embeds is None:
            return tf.gather(tf.convert_to_tensor(self.word_embeddings), input_ids)
        return tf.cast(inputs_embeds, tf.float32)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), "config": self._config.to_dict()}
