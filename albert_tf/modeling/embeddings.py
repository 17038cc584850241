"""Ids to vectors of the (small) embedding size."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.dropout import dropout
from albert_tf.modeling.layers import AlbertLayer, LayerNorm


class AlbertEmbeddings(AlbertLayer):
    """Sum of word, segment and position embeddings, normalised (paper, section 3.1; original modeling.py).

    Args:
        config: Hyper-parameters.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(**kwargs)
        self.dropout_prob = config.hidden_dropout_prob
        self.type_vocab_size = config.type_vocab_size
        size, stddev = config.embedding_size, config.initializer_range
        self.word_embeddings = self.add_parameter("word_embeddings", [config.vocab_size, size], stddev)
        self.token_type_embeddings = self.add_parameter("token_type_embeddings", [config.type_vocab_size, size], stddev)
        self.position_embeddings = self.add_parameter(
            "position_embeddings", [config.max_position_embeddings, size], stddev
        )
        self.layer_norm = LayerNorm(size, config.layer_norm_eps, dtype=kwargs.get("dtype"))

    def call(self, input_ids, segment_ids, dropout_seed=None):
        """Looks ids up.

        Args:
            input_ids: int [B, S].
            segment_ids: int [B, S].
            dropout_seed: int32 [2], or None.

        Returns:
            `compute_dtype` [B, S, E].
        """
        word = tf.gather(tf.convert_to_tensor(self.word_embeddings), input_ids)
        # A product with one-hot rows: on TPU the gradient of a gather from so small a table is slow.
        token_type = tf.tensordot(tf.one_hot(segment_ids, self.type_vocab_size), self.token_type_embeddings, 1)
        max_seq_length = input_ids.shape[1] or tf.shape(input_ids)[1]  # a graph may leave the length open
        position = tf.convert_to_tensor(self.position_embeddings)[:max_seq_length]
        return dropout(self.layer_norm(word + token_type + position), self.dropout_prob, dropout_seed)
