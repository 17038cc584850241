"""Many small spill files into fewer large ones, so that files are opened as often as the corpus is large.

Every shard reads from every spill file; with one for each chunk of text, that would be chunks times shards.
"""

import contextlib
import math

import tensorflow as tf

from albert_tf.pretraining_data.build import spill
from albert_tf.pretraining_data.build.examples import Examples

MAX_OPEN_FILES = 256

_OPENS_PER_CHUNK = 8


def group_runs(runs: list[str], num_chunks: int, num_shards: int) -> list[list[str]]:
    """Returns which runs to merge into one, always neighbours; every group is a single run if there are few enough.

    A run is a spill file, of one chunk or merged. They are few enough if a shard can hold all of them open, and
    all shards together open files about as often as there are chunks.

    Args:
        runs: The names of runs, in the order of their chunks.
        num_chunks: How many chunks there are.
        num_shards: How many shards read all runs.
    """
    wanted = max(1, min(MAX_OPEN_FILES, _OPENS_PER_CHUNK * num_chunks // num_shards))
    size = min(MAX_OPEN_FILES, max(1, math.ceil(len(runs) / wanted)))
    return [runs[begin : begin + size] for begin in range(0, len(runs), size)]


def merge_spills(sources: list[str], target: str, buckets: int) -> None:
    """Writes the examples of several spill files into one, under a temporary name first.

    Of examples with the same key, those of the earlier file come first.

    Args:
        sources: Spill files, only parts of which are in memory at once.
        target: A spill file.
        buckets: How many buckets each of them has.
    """
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(spill.SpillReader(path, buckets)) for path in sources]
        borders = sum(reader.borders for reader in readers)
        piece_borders = sum(reader.piece_borders for reader in readers)
        temporary = f"{target}.temporary"
        with tf.io.gfile.GFile(temporary, "wb") as file:
            file.write(spill.pack_borders(borders, piece_borders))
            for begin, end in spill.ranges(piece_borders):
                examples = Examples.concatenate([reader.read(begin, end) for reader in readers]).sorted_by_key()
                file.write(spill.pack_buckets(examples, borders[begin : end + 1] - borders[begin]))
        tf.io.gfile.rename(temporary, target, overwrite=True)
