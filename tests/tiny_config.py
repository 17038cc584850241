"""A model that trains a step in no time."""

from albert_tf.config import AlbertConfig


def tiny_config(vocab_size: int = 30, **changes) -> AlbertConfig:
    """Returns the smallest model with two heads, with some values changed."""
    values = {
        "embedding_size": 8,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 64,
    }
    return AlbertConfig(vocab_size=vocab_size, **{**values, **changes})
