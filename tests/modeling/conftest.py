"""A tiny model, its weights and its input, for the tests of all models."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config as make_config

from albert_tf.config import AlbertConfig
from albert_tf.modeling.layers import named_variables


@pytest.fixture
def tiny_config() -> AlbertConfig:
    """A config without dropout, small enough to build in no time."""
    return make_config(num_hidden_layers=2, num_attention_heads=4, intermediate_size=32, max_position_embeddings=12)


@pytest.fixture
def randomized():
    """Gives a model weights that are far from their initial ones, biases and LayerNorms too, and returns it."""

    def randomize(model):
        random = np.random.default_rng(0)
        for name, variable in named_variables(model).items():
            mean = 1.0 if name.endswith("gamma") else 0.0
            variable.assign(random.normal(mean, 0.3, variable.shape))
        return model

    return randomize


@pytest.fixture
def batch() -> dict[str, tf.Tensor]:
    """Three examples, two of them padded, each of two segments, with four masked positions, some of them repeated."""
    random = np.random.default_rng(1)
    lengths, max_seq_length = np.array([[10], [7], [4]]), 10
    position = np.arange(max_seq_length)
    values = {
        "input_ids": random.integers(1, 30, [3, max_seq_length]) * (position < lengths),
        "input_mask": position < lengths,
        "segment_ids": (lengths // 2 <= position) & (position < lengths),
        "masked_lm_positions": random.integers(0, lengths, [3, 4]),
    }
    return {name: tf.constant(value, tf.int32) for name, value in values.items()}
