"""What position embeddings are learnt from."""

import numpy as np
import pytest
from tiny_config import tiny_config

from albert_tf.errors import InputError
from albert_tf.modeling import AlbertEncoder
from albert_tf.modeling.embeddings import sinusoidal_positions


@pytest.mark.parametrize(("length", "size"), [(64, 128), (512, 64), (10, 7)])
def test_sinusoids_are_those_of_the_formula(length, size):
    table = sinusoidal_positions([length, size]).numpy()
    assert table.shape == (length, size)
    for column in range(size):
        wavelength = 2 * np.pi * 100 ** ((column - column % 2) / size)
        wave = np.cos if column % 2 else np.sin
        expected = 0.1 * 2**0.5 * wave(2 * np.pi * np.arange(length) / wavelength)
        np.testing.assert_allclose(table[:, column], expected, atol=1e-5)


def test_neighbours_are_alike_wherever_they_are():
    table = sinusoidal_positions([128, 128]).numpy()
    likeness = table @ table.T / (table[0] @ table[0])
    for distance in (0, 1, 2, 10):
        values = np.diagonal(likeness, distance)
        np.testing.assert_allclose(values, values[0], atol=1e-4)
    assert pytest.approx(likeness[0, 0]) == 1 and likeness[0, 0] > likeness[0, 1] > likeness[0, 2] > likeness[0, 10]


def test_config_chooses_the_initializer():
    config = tiny_config(50)
    tables = {
        name: AlbertEncoder(config.replace(position_initializer=name)).embeddings.position_embeddings.numpy()
        for name in ("normal", "sinusoidal")
    }
    shape = [config.max_position_embeddings, config.embedding_size]
    np.testing.assert_array_equal(tables["sinusoidal"], sinusoidal_positions(shape))
    assert abs(tables["normal"]).max() <= 2 * config.initializer_range + 1e-6
    with pytest.raises(InputError, match=r"position_initializer must be one of normal, sinusoidal\. Received: sine"):
        config.replace(position_initializer="sine")
