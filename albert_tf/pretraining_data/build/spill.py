"""Files between the two passes: examples in the order of their random keys.

The range of keys is divided into buckets of equal width, and a file begins with where each bucket's examples and pieces
begin. So a shard, which is a range of buckets, is read from every file in one stretch, and the memory in use doesn't
grow with the corpus. Bucket follows bucket, each with its examples and then their pieces, so that a file can be written
from its beginning to its end: not every file system lets a writer go back.

Every shard reads from every spill file; with one file for each chunk of text, that would be chunks times shards. So
small files are merged into fewer large ones, and the number of opened files grows only with the corpus.
"""

import contextlib
import functools
import itertools
import math

import numpy as np
import tensorflow as tf

from albert_tf.files import replacing
from albert_tf.pretraining_data.build.examples import Examples

# The columns of `Examples` without the pieces, as a file holds them.
_ROW = np.dtype(
    [
        ("key", "<u8"),
        ("first_length", "<i4"),
        ("second_length", "<i4"),
        ("label", "i1"),
        ("num_characters", "<i4"),
        ("source", "<i2"),
    ]
)
_PIECE = np.dtype("<u4")

_BUCKETS_OF_ONE_SHARD = 1024
_PIECES_IN_MEMORY = 1 << 22  # of one worker

MAX_OPEN_FILES = 256
_OPENS_PER_CHUNK = 8


def num_buckets(num_shards: int) -> int:
    """Returns the number of buckets: about a thousand, a whole number of them a shard."""
    return num_shards * max(1, _BUCKETS_OF_ONE_SHARD // num_shards)


def write_spill(path: str, examples: Examples, buckets: int) -> None:
    examples = examples.sorted_by_key()
    borders = np.append(np.searchsorted(examples.keys, _first_keys(buckets)), len(examples)).astype(np.int64)
    piece_borders = _piece_borders(examples, borders)
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(borders.tobytes() + piece_borders.tobytes() + pack_buckets(examples, borders))


class SpillReader:
    """Reads from a spill file of so many buckets, and keeps it open as a context manager.

    `borders`, int64 [buckets + 1], are the number of examples before each bucket, `piece_borders` that of pieces.
    """

    def __init__(self, path: str, buckets: int):
        self._file = tf.io.gfile.GFile(path, "rb")
        borders = np.frombuffer(self._file.read(2 * 8 * (buckets + 1)), np.int64)
        self.borders, self.piece_borders = borders[: buckets + 1], borders[buckets + 1 :]
        self._offsets = borders.nbytes + self.borders * _ROW.itemsize + self.piece_borders * _PIECE.itemsize

    def read(self, begin: int, end: int) -> Examples:
        """Reads the examples of buckets `begin` up to `end`, in the order of their keys."""
        offsets = self._offsets[begin : end + 1]
        self._file.seek(int(offsets[0]))
        content = memoryview(self._file.read(int(offsets[-1] - offsets[0])))
        begins = (offsets - offsets[0]).tolist()
        middles = (offsets[:-1] - offsets[0] + np.diff(self.borders[begin : end + 1]) * _ROW.itemsize).tolist()
        rows = np.frombuffer(b"".join(map(content.__getitem__, map(slice, begins, middles))), _ROW)
        pieces = np.frombuffer(b"".join(map(content.__getitem__, map(slice, middles, begins[1:]))), _PIECE)
        return Examples(*(np.ascontiguousarray(rows[name]) for name in _ROW.names), pieces)

    def __enter__(self) -> "SpillReader":
        return self

    def __exit__(self, *_) -> None:
        self._file.close()


def pack_buckets(examples: Examples, borders: np.ndarray) -> bytes:
    """Returns the bytes of buckets that begin at int64 borders in `examples`, which are sorted by key."""
    rows = np.empty(len(examples), _ROW)
    for name, column in zip(_ROW.names, examples.columns()):
        rows[name] = column
    rows, pieces = memoryview(rows.tobytes()), memoryview(examples.pieces.astype(_PIECE).tobytes())
    row_ends = (borders * _ROW.itemsize).tolist()
    piece_ends = (_piece_borders(examples, borders) * _PIECE.itemsize).tolist()
    parts = []
    for bucket in range(len(borders) - 1):
        parts.append(rows[row_ends[bucket] : row_ends[bucket + 1]])
        parts.append(pieces[piece_ends[bucket] : piece_ends[bucket + 1]])
    return b"".join(parts)


def ranges(piece_borders: np.ndarray) -> list[tuple[int, int]]:
    """Returns ranges of consecutive buckets that fit into memory; a bucket that doesn't is one by itself."""
    part_of_bucket = (piece_borders[1:] - piece_borders[0]) // _PIECES_IN_MEMORY
    begins = np.flatnonzero(np.diff(part_of_bucket, prepend=-1)).tolist()
    return list(itertools.pairwise([*begins, len(piece_borders) - 1]))


def group_runs(runs: list[str], num_chunks: int, num_shards: int) -> list[list[str]]:
    """Returns which runs to merge into one, always neighbours; every group is a single run if there are few enough.

    A run is a spill file, of one chunk or merged. They are few enough if a shard can hold all of them open, and all
    shards together open files about as often as there are chunks.
    """
    wanted = max(1, min(MAX_OPEN_FILES, _OPENS_PER_CHUNK * num_chunks // num_shards))
    size = min(MAX_OPEN_FILES, max(1, math.ceil(len(runs) / wanted)))
    return [runs[begin : begin + size] for begin in range(0, len(runs), size)]


def merge_spills(sources: list[str], target: str, buckets: int) -> None:
    """Writes the examples of several spill files into one; of equal keys, those of the earlier file come first."""
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(SpillReader(path, buckets)) for path in sources]
        borders = sum(reader.borders for reader in readers)
        piece_borders = sum(reader.piece_borders for reader in readers)
        with replacing(target) as file:
            file.write(borders.tobytes() + piece_borders.tobytes())
            for begin, end in ranges(piece_borders):
                examples = Examples.concatenate([reader.read(begin, end) for reader in readers]).sorted_by_key()
                file.write(pack_buckets(examples, borders[begin : end + 1] - borders[begin]))


def _piece_borders(examples, borders):
    return np.append(0, np.cumsum(examples.lengths)).astype(np.int64)[borders]


@functools.cache
def _first_keys(buckets):
    return np.array([-(-(bucket << 64) // buckets) for bucket in range(buckets)], np.uint64)
