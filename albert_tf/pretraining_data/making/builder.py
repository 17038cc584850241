"""Documents to shuffled TFRecord shards and a manifest, in two passes over the disk.

The first pass turns chunks of text into examples, each with a random key; the second writes them into shards in the
order of their keys, masked if they are static. Between them, spill files are merged where the second pass would open
too many. Every random draw is keyed by the seed and the place of the chunk or shard, so the same input and options give
the same bytes, however many workers there are and however often the build was killed and resumed.
"""

import collections
import contextlib
import functools
import itertools
import math
import os
import sqlite3
import time

import numpy as np
import tensorflow as tf

from albert_tf.base.console import ProgressLine
from albert_tf.base.errors import InputError
from albert_tf.base.files import replacing
from albert_tf.pretraining_data.entities import NameList
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions, ExampleMaker
from albert_tf.pretraining_data.making.examples import COLUMN_DTYPES, Examples
from albert_tf.pretraining_data.making.shard_writer import ShardWriter, check_counts, publish
from albert_tf.pretraining_data.making.state import RESUME_GOES_ON, chunk_run, open_work_folder
from albert_tf.pretraining_data.making.workers import WorkerPool
from albert_tf.reading.blocks import BadCorpusError
from albert_tf.reading.documents import CorpusReader, describe_reading, read_documents
from albert_tf.tokenization import Tokenizer

# Files between the two passes: examples in the order of their random keys.
#
# The range of keys is divided into buckets of equal width, and a file begins with where each bucket's examples and
# pieces begin. So a shard, which is a range of buckets, is read from every file in one stretch, and the memory in
# use doesn't grow with the corpus. Bucket follows bucket, each with its examples and then their pieces, so that a
# file can be written from its beginning to its end: not every file system lets a writer go back.
#
# Every shard reads from every spill file; with one file for each chunk of text, that would be chunks times shards. So
# small files are merged into fewer large ones, and the number of opened files grows only with the corpus.

# The columns of `Examples` without the pieces, as a file holds them.
_ROW = np.dtype([(f"column {number}", dtype) for number, dtype in enumerate(COLUMN_DTYPES[:-1])]).newbyteorder("<")
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


MASKING_CHOICES = ("dynamic", "static")


def shard_paths(output_file: str, num_shards: int) -> list[str]:
    """Returns the names of shards: the name itself for one, else name-00000-of-00004 before the extension."""
    if num_shards == 1:
        return [output_file]
    stem, extension = os.path.splitext(output_file)
    return [f"{stem}-{index:05d}-of-{num_shards:05d}{extension}" for index in range(num_shards)]


def start_workers(num_workers: int) -> WorkerPool:
    """Starts the processes of a build: best before TensorFlow is used, as long as they can still be forked at once."""
    return WorkerPool(num_workers, _Worker)


def build(
    reader: CorpusReader,
    tokenizer: Tokenizer,
    options: BuilderOptions,
    train_paths: list[str],
    held_out_paths: list[str],
    workers: WorkerPool | None = None,
    resume: bool = False,
    progress: ProgressLine | None = None,
    names: NameList | None = None,
) -> dict:
    """Builds all shards, and manifest.json and the tokenizer beside them; returns the manifest.

    Earlier files of the same names stay as they are until every new shard is finished. The shards are of one folder;
    there are no `held_out_paths` if `options.held_out_fraction` is 0. The workers of `start_workers` end with the
    build; by default all is done in this process. `names` are those whose hash the options hold.

    Raises BadCorpusError if the corpus holds something bad, or gives no examples for some shard: nothing is left then.
    Raises InputError if an unfinished build is in the way, a file can't be read or written, or a worker was killed: in
    the latter two cases, as after a KeyboardInterrupt, `resume` goes on.
    """
    progress = progress or ProgressLine()
    arguments = reader, tokenizer, options, train_paths, held_out_paths, resume, names
    try:
        with open_work_folder(*arguments) as (work, options, shards):
            num_shards = {split: len(paths) for split, paths in shards.items()}
            with workers or start_workers(1) as pool:
                pool.prepare(work, options, num_shards)
                counts = _make_examples(reader, options, work, pool, progress)
                runs = {
                    split: _merge_runs(split, counts["chunk_ids"], number, work, pool, progress)
                    for split, number in num_shards.items()
                }
                parts, examples_per_shard = {}, {}
                for split, number in num_shards.items():
                    parts[split], examples_per_shard[split] = _shard_parts(split, number, runs[split], work)
                check_counts(reader, options, counts, examples_per_shard)
                shard_counts = _write_shards(parts, runs, work, pool, progress)
            return publish(reader, tokenizer, options, shards, work, counts, shard_counts)
    finally:
        progress.finish()


def _make_examples(reader, options, work, pool, progress):
    """The first pass: writes a spill file for every chunk and split, and returns the counts."""
    counts = work.corpus_counts()
    if counts is None:
        counts, chunk_ids = collections.Counter(), []
        try:
            for chunk_counts in pool.map("make_examples", _tasks(reader, options, work, counts, chunk_ids, progress)):
                counts.update(chunk_counts)
        except BadCorpusError:
            raise
        except InputError as error:
            raise InputError(f"{error}; {RESUME_GOES_ON}") from error
        progress.finish()
        counts = {**counts, "chunk_ids": chunk_ids}
        work.write_corpus_counts(counts)
    return collections.Counter(counts)


def _merge_runs(split, chunk_ids, num_shards, work, pool, progress):
    """Between the passes: returns the names of the runs that hold a split's examples, merged until they are few."""
    runs, level = list(map(chunk_run, chunk_ids)), 0
    while len(groups := group_runs(runs, len(chunk_ids), num_shards)) < len(runs):
        level += 1
        runs = [f"merged-{level}-{index:06d}" if len(group) > 1 else group[0] for index, group in enumerate(groups)]
        tasks = [(split, group, run) for group, run in zip(groups, runs) if len(group) > 1]
        for number, _ in enumerate(pool.map("merge", tasks), start=1):
            if progress.is_due:
                progress.show(f"merged {number} of {len(tasks)} groups of files")
        progress.finish()
    return runs


def _tasks(reader, options, work, counts, chunk_ids, progress):
    sizes = reader.sizes()
    is_new = _remember() if options.deduplicate else lambda digest: True
    started, num_bytes = time.monotonic(), 0
    for file_index in range(len(reader.paths)):
        for documents, chunk in read_documents(reader, file_index):
            num_bytes += chunk.num_bytes
            counts.update(chunk.counts)
            is_kept = [is_new(digest) for digest in documents.part_digests]
            counts["duplicate_documents"] += is_kept.count(False)
            if any(is_kept):
                chunk_ids.append(documents.chunk_id)
                yield documents.select(is_kept), chunk.file_start
            if progress.is_due:
                seconds = time.monotonic() - started
                share = (sum(sizes[:file_index]) + chunk.file_position) / sum(sizes)
                progress.show(f"read {describe_reading(num_bytes, share, seconds)}")
        work.finish_input(file_index, reader.paths[file_index], chunk.file_start)


def _remember():
    """Returns a function that says whether a digest is new; it remembers digests on disk."""
    database = sqlite3.connect("")  # a temporary file, of which only the most used pages are in memory
    database.execute("CREATE TABLE digests (digest BLOB PRIMARY KEY) WITHOUT ROWID")

    def is_new(digest):
        try:
            return database.execute("INSERT OR IGNORE INTO digests VALUES (?)", (digest,)).rowcount == 1
        except sqlite3.OperationalError as error:
            raise InputError(
                f"`deduplicate`: can't write a temporary file ({error}); free some space, or point the environment's "
                "SQLITE_TMPDIR elsewhere"
            ) from error

    return is_new


def _shard_parts(split, num_shards, runs, work):
    """Returns for each shard its parts, ranges of buckets that fit into memory, and its number of examples."""
    buckets = num_buckets(num_shards)
    borders, piece_borders = np.zeros(buckets + 1, np.int64), np.zeros(buckets + 1, np.int64)
    for run in runs:
        with SpillReader(work.spill_path(run, split), buckets) as reader:
            borders += reader.borders
            piece_borders += reader.piece_borders
    width = buckets // num_shards
    shards = [
        [(first + begin, first + end) for begin, end in ranges(piece_borders[first : first + width + 1])]
        for first in range(0, buckets, width)
    ]
    return shards, np.diff(borders[::width]).tolist()


def _write_shards(parts, runs, work, pool, progress):
    """The second pass: writes every shard into the work folder, and returns the counts of each."""
    tasks = [(split, shard, ranges, runs[split]) for split in parts for shard, ranges in enumerate(parts[split])]
    counts = {split: [] for split in parts}
    for number, ((split, *_), shard_counts) in enumerate(zip(tasks, pool.map("write_shard", tasks)), start=1):
        counts[split].append(shard_counts)
        if progress.is_due:
            progress.show(f"wrote {number} of {len(tasks)} shards")
    progress.finish()
    return counts


class _Worker:
    """The tasks of a worker process; those that were finished before a kill are not repeated."""

    def __init__(self, work, options, num_shards):
        self._work, self._options = work, options
        self._num_buckets = {split: num_buckets(number) for split, number in num_shards.items()}

    @functools.cached_property
    def _example_maker(self):
        return ExampleMaker.load(self._work.path, self._options)

    @functools.cached_property
    def _shard_writer(self):
        return ShardWriter.load(self._work.path, self._options)

    def make_examples(self, documents, file_start):
        counts = self._work.chunk_counts(documents.chunk_id)
        if counts is None:
            examples, counts = self._example_maker.make(documents)
            for split, num_buckets in self._num_buckets.items():
                path = self._work.spill_path(chunk_run(documents.chunk_id), split)
                write_spill(path, examples[split], num_buckets)
            self._work.write_chunk_counts(documents.chunk_id, counts, file_start)
        return counts

    def merge(self, split, sources, run):
        if not self._work.is_merged(run, split):
            paths = [self._work.spill_path(source, split) for source in sources]
            merge_spills(paths, self._work.spill_path(run, split), self._num_buckets[split])
        self._work.finish_merge(run, split, sources)

    def write_shard(self, split, shard, ranges, runs):
        counts = self._work.shard_counts(split, shard)
        if counts is None:
            with contextlib.ExitStack() as stack:
                paths = [self._work.spill_path(run, split) for run in runs]
                readers = [stack.enter_context(SpillReader(path, self._num_buckets[split])) for path in paths]
                parts = (Examples.concatenate([reader.read(*buckets) for reader in readers]) for buckets in ranges)
                counts = self._shard_writer.write(self._work.shard_path(split, shard), split, shard, parts)
            self._work.write_shard_counts(split, shard, counts)
        return counts
