"""Initial weights for small models, which from random ones learn nothing for thousands of steps.

A masked token is guessed from its neighbours, and a model with random weights first has to find out which positions are
neighbours, and to look at them.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig

_SHORTEST_WAVELENGTH, _LONGEST_WAVELENGTH = 2 * np.pi, 200 * np.pi  # in positions
_SINUSOID_STDDEV = 0.1
_TRUNCATED_NORMAL_VARIANCE = 0.774  # of a normal distribution cut at two standard deviations, for one of variance 1
_OFFSETS = (-1, 1, -2, 2, -3, 3, -4, 4)  # in positions; head by head
_FEWEST_NEIGHBORS = 4  # that some block looks at
_HIGHEST_SCORE = 16.0


def residual_range(config: AlbertConfig) -> float:
    """Returns the standard deviation of weights whose product is added to a block's input.

    Without LayerNorm after each sum, the additions of L applications of two sub-layers would grow with sqrt(2 L)
    (Radford et al. 2019, section 2.3).
    """
    scale = 1.0 if config.norm_position == "post" else (2 * config.num_blocks) ** -0.5
    return config.initializer_range * scale


def sinusoidal_positions(shape: list[int], dtype: str = "float32") -> tf.Tensor:
    """Returns an initial table [P, E] of position embeddings: sines and cosines of E / 2 wavelengths.

    Neighbours are alike, and one linear map leads from every position to the one before it (Vaswani et al. 2017,
    section 3.5, whose waves are longer).
    """
    length, size = shape
    angles = np.arange(length)[:, None] * _frequencies(size)
    table = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, -1)[:, :size]
    return tf.constant(_SINUSOID_STDDEV * np.sqrt(2) * table, dtype)


def _frequencies(size):
    """Returns the angles between a position and the next, [ceil(E / 2)], the largest first."""
    ratios = np.arange(0, size, 2) / size
    return 2 * np.pi / (_SHORTEST_WAVELENGTH * (_LONGEST_WAVELENGTH / _SHORTEST_WAVELENGTH) ** ratios)


@dataclasses.dataclass(frozen=True)
class NeighborAttention:
    """Initial kernels of blocks whose heads look at neighbours: the one before, the one after, the second before...

    With r the angles of a position's waves, the embedding of position t holds sin(r t) and cos(r t). A head whose query
    turns them by r times an offset, and whose key leaves them as they are, scores position s as the sum of cos(r (t +
    offset - s)), which is highest where s = t + offset. Query and key first undo the projection to the hidden size,
    which is therefore drawn here; the waves outlast the residual connections of a few blocks. A hidden size below E,
    such as that of ELECTRA's generator, holds the waves that heads read, and less of all else.
    """

    # Random, scaled so that hidden states are as large as after LayerNorm; None where E is H.
    projection: np.ndarray | None  # float32 [E, H]
    query: np.ndarray  # float32 [H, H]; random for heads after the eighth
    key: np.ndarray  # likewise

    @classmethod
    def draw(cls, config: AlbertConfig) -> list["NeighborAttention"]:
        """Draws the random parts from NumPy's seed, which `tf.keras.utils.set_random_seed` sets.

        Positions must be sinusoidal. Blocks take the results in turn: four heads or more do the same in every block,
        and fewer go on with the next neighbours, until four of these are looked at.
        """
        embedding_size, hidden_size = config.embedding_size, config.hidden_size
        head_size = hidden_size // config.num_attention_heads
        frequencies = _frequencies(embedding_size)[: min(head_size, embedding_size) // 2]
        projection, to_embedding = None, np.eye(embedding_size)
        if embedding_size != hidden_size:
            projection = _draw_projection(config, 2 * len(frequencies))
            to_embedding = np.linalg.pinv(projection)
        query, key = (_draw([hidden_size, hidden_size], config) for _ in range(2))
        scale = _wave_scale(config, len(frequencies), head_size)
        num_heads = min(config.num_attention_heads, len(_OFFSETS))
        queries = [query.copy() for _ in range(max(1, _FEWEST_NEIGHBORS // num_heads))]
        for head in range(num_heads):
            columns = slice(head * head_size, head * head_size + 2 * len(frequencies))
            for turn, query in enumerate(queries):
                offset = _OFFSETS[turn * num_heads + head]
                query[:, columns] = scale * to_embedding @ _turn(frequencies * offset, embedding_size)
            key[:, columns] = scale * to_embedding @ _turn(0 * frequencies, embedding_size)
        return [cls(projection, query, key) for query in queries]


def _draw_projection(config, num_waves):
    """Draws [E, H]; where H is less than E, the first numbers of an embedding, its waves, stay as they are."""
    embedding_size, hidden_size = config.embedding_size, config.hidden_size
    kept = num_waves if hidden_size < embedding_size else 0
    projection = np.eye(embedding_size, hidden_size, dtype=np.float32)
    if hidden_size > kept:
        others = _draw([embedding_size - kept, hidden_size - kept], config)
        others /= others.std() * np.sqrt(embedding_size - kept)
        projection[kept:, kept:] = others
    return projection


def _draw(shape, config):
    """Draws as Keras's `TruncatedNormal` does, but in NumPy, so that a model can also be built inside a graph."""
    values = np.random.normal(size=shape)
    while np.any(is_far := abs(values) > 2):
        values[is_far] = np.random.normal(size=is_far.sum())
    return (config.initializer_range * values).astype(np.float32)


def _wave_scale(config, num_waves, head_size):
    other_variance = 2 * _TRUNCATED_NORMAL_VARIANCE * config.initializer_range**2  # pieces and segments
    wave_variance = _SINUSOID_STDDEV**2 / (_SINUSOID_STDDEV**2 + other_variance)  # after LayerNorm, of a sine
    return np.sqrt(_HIGHEST_SCORE * np.sqrt(head_size) / (2 * num_waves * wave_variance))


def _turn(angles, embedding_size):
    """Returns a matrix [E, 2 * waves] that takes the first waves of an embedding, each turned by its angle."""
    matrix = np.zeros([embedding_size, 2 * len(angles)])
    for wave, angle in enumerate(angles):
        pair = slice(2 * wave, 2 * wave + 2)
        matrix[pair, pair] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return matrix
