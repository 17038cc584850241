"""Files between the two passes: the examples of one chunk of text, in the order of their random keys.

The range of keys is divided into buckets of equal width, and a file begins with where each bucket's examples and pieces
begin. So a shard, which is a range of buckets, is read from every file without the rest of it, and what is in memory at
once doesn't grow with the corpus.
"""

import functools

import numpy as np
import tensorflow as tf

from albert_tf.pretraining_data.examples import COLUMN_DTYPES, Examples

_BUCKETS_OF_ONE_SHARD = 1024


def num_buckets(num_shards: int) -> int:
    """Returns how many buckets there are: about a thousand, a whole number of them a shard."""
    return num_shards * max(1, _BUCKETS_OF_ONE_SHARD // num_shards)


def write_spill(path: str, examples: Examples, buckets: int) -> None:
    """Writes examples, sorted by key."""
    examples = examples.sorted_by_key()
    example_borders = np.append(np.searchsorted(examples.keys, _first_keys(buckets)), len(examples)).astype(np.int64)
    piece_borders = np.concatenate([[0], np.cumsum(examples.lengths)])[example_borders]
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(b"".join(array.tobytes() for array in (example_borders, piece_borders, *examples.columns())))


def read_borders(path: str, buckets: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns int64 [buckets + 1] twice: the number of examples and of pieces before each bucket."""
    with tf.io.gfile.GFile(path, "rb") as file:
        return _borders(file, buckets)


def read_spill(path: str, buckets: int, begin: int, end: int) -> Examples:
    """Reads the examples of buckets `begin` up to `end`, in the order of their keys."""
    with tf.io.gfile.GFile(path, "rb") as file:
        example_borders, piece_borders = _borders(file, buckets)
        columns, offset = [], example_borders.nbytes + piece_borders.nbytes
        for dtype, borders in zip(COLUMN_DTYPES, [example_borders] * 4 + [piece_borders]):
            size = np.dtype(dtype).itemsize
            file.seek(offset + int(borders[begin]) * size)
            columns.append(np.frombuffer(file.read(int(borders[end] - borders[begin]) * size), dtype))
            offset += int(borders[-1]) * size
    return Examples(*columns)


def _borders(file, buckets):
    borders = np.frombuffer(file.read(2 * 8 * (buckets + 1)), np.int64)
    return borders[: buckets + 1], borders[buckets + 1 :]


@functools.cache
def _first_keys(buckets):
    return np.array([-(-(bucket << 64) // buckets) for bucket in range(buckets)], np.uint64)
