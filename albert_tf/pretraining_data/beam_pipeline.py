"""The builder as an Apache Beam pipeline, for a corpus that is too much for one machine.

The same functions as in `builder` run on whatever engine Beam runs on, and give the same bytes. Between the passes the
engine brings the examples of a shard together, so that there are no spill files; a shard is held in one worker's memory.
All workers read the corpus from, and write the shards to, folders that they share.

The graph keeps to what every runner has: no side inputs, one output a step, and files that are written by plain
functions. All of it leads into one last step, because Dask runs nothing else.
"""

import collections
import contextlib
import dataclasses
import functools
import os
import uuid

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.files import read_json, write_json
from albert_tf.pretraining_data.builder import count_chunk, make_plan, publish
from albert_tf.pretraining_data.chunk_examples import HELD_OUT, TRAIN, BuilderOptions, ExampleMaker
from albert_tf.pretraining_data.corpus import CorpusReader
from albert_tf.pretraining_data.documents import read_documents
from albert_tf.pretraining_data.examples import COLUMN_DTYPES, Examples
from albert_tf.pretraining_data.manifest import check_counts
from albert_tf.pretraining_data.shard_writer import ShardWriter, masking_tokens
from albert_tf.pretraining_data.work_folder import WorkFolder
from albert_tf.tokenization import KoreanWordPieceTokenizer

# Short names of runners. Beam's own DirectRunner would first download another one, Prism.
RUNNERS = {
    "DirectRunner": "apache_beam.runners.portability.fn_api_runner.FnApiRunner",
    "DaskRunner": "apache_beam.runners.dask.dask_runner.DaskRunner",
}

_CORPUS = ("corpus", 0)  # where a shard has its split and number
_ERROR_FILE = "error-"


def run_on_beam(
    reader: CorpusReader,
    tokenizer: KoreanWordPieceTokenizer,
    options: BuilderOptions,
    train_paths: list[str],
    held_out_paths: list[str],
    runner: str,
    pipeline_arguments: list[str],
    resume: bool = False,
) -> dict:
    """Builds the same shards as `builder.build`, and manifest.json and the tokenizer beside them.

    Args:
        reader: The documents; every worker must be able to read the files.
        tokenizer: Tokenizer whose vocabulary holds every special token.
        options: How to make examples.
        train_paths: Shards for training, all in one folder that every worker can write to.
        held_out_paths: Shards for evaluation, in the same folder; none if `options.held_out_fraction` is 0.
        runner: A name in `RUNNERS`, one that Beam knows, or the full name of a class.
        pipeline_arguments: Beam's and the runner's own, such as "--dask_npartitions=8".
        resume: Go on with a build of the same input and options that was stopped; finished shards are kept.

    Returns:
        The manifest.

    Raises:
        InputError: The corpus can't be read or gives no examples for some shard; nothing is left then. Or the runner is
            not there, an unfinished build is in the way, or the pipeline failed; `resume` goes on then.
    """
    masking_tokens(tokenizer)  # before any work: the vocabulary holds what is needed
    if not held_out_paths:
        options = dataclasses.replace(options, held_out_fraction=0.0)
    # Workers may stand in other folders.
    reader = dataclasses.replace(reader, paths=list(map(_absolute, reader.paths)))
    shards = {TRAIN: list(map(_absolute, train_paths))}
    if held_out_paths:
        shards[HELD_OUT] = list(map(_absolute, held_out_paths))
    pipeline = _make_pipeline(runner, pipeline_arguments)
    folder = os.path.dirname(shards[TRAIN][0])
    try:
        # The two engines keep different things in the folder, and can't go on with each other's.
        work = WorkFolder(folder, {**make_plan(reader, tokenizer, options, shards), "engine": "Beam"}, resume)
        tokenizer.save(work.path)
        num_shards = {split: len(paths) for split, paths in shards.items()}
        _add_steps(pipeline, reader, options, PipelineSteps(work, tokenizer.identity, options, num_shards))
        _run(pipeline, runner, work)
        counts, shard_counts = _read_counts(work, num_shards)
        counts = collections.Counter(counts)
        examples_per_shard = {split: [(shard or {}).get("examples", 0) for shard in shard_counts[split]] for split in shards}
        try:
            check_counts(reader, options, counts, examples_per_shard)
        except InputError:
            work.remove()
            raise
        return publish(reader, tokenizer, options, shards, work, counts, shard_counts)
    except (OSError, tf.errors.OpError) as error:
        reason = error.message if isinstance(error, tf.errors.OpError) else error
        raise InputError(f"can't write {folder}: {reason}; once that is mended, --resume goes on") from error


@dataclasses.dataclass(frozen=True)
class PipelineSteps:
    """What workers do.

    An engine may try a step again, on another worker too and even while the first attempt is under way; the result is
    the same, and whoever finishes last replaces it.

    Attributes:
        work: The folder of the build.
        tokenizer_identity: Identity of the tokenizer in it.
        options: How to make examples.
        num_shards: Number of shards of each split.
    """

    work: WorkFolder
    tokenizer_identity: str
    options: BuilderOptions
    num_shards: dict[str, int]

    def read(self, file_index, reader):
        """Yields (chunk id, (documents, counts)) for each chunk of a file."""
        with self._telling_errors(file_index):
            for documents, chunk in read_documents(reader, file_index):
                counts = collections.Counter()
                count_chunk(chunk, counts)
                yield documents.chunk_id, (documents, counts)

    def make_examples(self, chunk):
        """Yields ((split, shard), (chunk id, columns of examples)) for the shards of a chunk's examples, and counts."""
        chunk_id, (documents, counts) = chunk
        if documents.texts:
            with self._telling_errors(chunk_id[0]):
                examples, example_counts = self._load(ExampleMaker).make(documents)
            counts = counts + example_counts
            for split, num_shards in self.num_shards.items():
                for shard, columns in _by_shard(examples[split].sorted_by_key(), num_shards):
                    yield (split, shard), (chunk_id, columns)
        yield _CORPUS, (chunk_id, counts)

    def write(self, group):
        """Leaves a shard, or what was counted in the corpus."""
        key, values = group
        if key == _CORPUS:
            self.work.write_corpus_counts(sum((counts for _, counts in values), collections.Counter()))
        elif self.work.shard_counts(*key) is None:
            # Values come in any order. That of the chunks is the builder's, should two keys be the same.
            columns = [columns for _, columns in sorted(values)]
            examples = Examples.concatenate([Examples(*map(np.frombuffer, part, COLUMN_DTYPES)) for part in columns])
            path = self.work.shard_path(*key)
            attempt = f"{path}.{uuid.uuid4().hex}"
            counts = self._load(ShardWriter).write(attempt, *key, [examples])
            tf.io.gfile.rename(attempt, path, overwrite=True)
            self.work.write_shard_counts(*key, counts)

    def _load(self, make):
        return _load(make, self.work.path, self.tokenizer_identity, self.options)

    @contextlib.contextmanager
    def _telling_errors(self, file_index):
        """Leaves an error of the corpus where it is found, since engines hand on a traceback at best."""
        try:
            yield
        except InputError as error:
            write_json(os.path.join(self.work.path, f"{_ERROR_FILE}{file_index:05d}.json"), {"message": str(error)})
            raise


@functools.lru_cache(maxsize=2)
def _load(make, folder, tokenizer_identity, options):  # the identity: a later build may use the same folder
    """Returns `make(tokenizer, options)`, the same for all steps that a process runs."""
    return make(KoreanWordPieceTokenizer.load(folder), options)


def _by_shard(examples, num_shards):
    """Yields (shard, columns as bytes) of the shards that sorted examples fall to: equal ranges of keys."""
    shards, begins = np.unique([key * num_shards >> 64 for key in examples.keys.tolist()], return_index=True)
    for shard, begin, end in zip(shards.tolist(), begins, [*begins[1:], len(examples)]):
        yield shard, tuple(column.tobytes() for column in examples.slice(begin, end).columns())


def _absolute(path):
    return path if "://" in path else os.path.abspath(path)


def _make_pipeline(runner, arguments):
    try:
        import apache_beam as beam
        from apache_beam.options.pipeline_options import PipelineOptions
    except ImportError as error:
        raise InputError(
            f"--runner={runner} needs apache_beam, which is not installed; pip install albert_tf[beam]"
        ) from error
    try:
        return beam.Pipeline(RUNNERS.get(runner, runner), PipelineOptions(list(arguments)))
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"--runner={runner} can't be used ({error}); docs/beam.md says what each runner needs"
        ) from error


def _add_steps(pipeline, reader, options, steps):
    import apache_beam as beam

    chunks = pipeline | "files" >> beam.Create(range(len(reader.paths))) | "read" >> beam.FlatMap(steps.read, reader)
    # Either of them deals the chunks of one file out to all workers.
    chunks = _first_of_each(chunks) if options.deduplicate else chunks | beam.Reshuffle()
    examples = chunks | "make examples" >> beam.FlatMap(steps.make_examples)
    examples | "bring shards together" >> beam.GroupByKey() | "write" >> beam.Map(steps.write)  # noqa: B018


def _first_of_each(chunks):
    """Leaves out documents that have come before, in the order of files, chunks and places in a chunk."""
    import apache_beam as beam

    places = chunks | "digests" >> beam.FlatMap(_digests) | "first" >> beam.CombinePerKey(min)
    kept = places | "kept" >> beam.MapTuple(lambda digest, place: (place[:2], place[2]))
    return (chunks, kept) | "meet" >> beam.CoGroupByKey() | "select" >> beam.FlatMap(_select)


def _digests(chunk):
    chunk_id, (documents, _) = chunk
    return [(digest, (*chunk_id, place)) for place, digest in enumerate(documents.part_digests)]


def _select(group):
    chunk_id, ([(documents, counts)], kept) = group
    is_kept = [place in set(kept) for place in range(len(documents.texts))]
    return [(chunk_id, (documents.select(is_kept), counts + collections.Counter(duplicate_documents=is_kept.count(False))))]


def _run(pipeline, runner, work):
    """Runs the pipeline and returns what was counted in the corpus."""
    try:
        state = pipeline.run().wait_until_finish()
        reason = None if state == "DONE" else f"it ended as {state}"
    except Exception as error:  # every runner has its own, and most put the worker's traceback into the message
        _raise_corpus_error(work)
        last_line = traceback.format_exception_only(error)[-1].strip().rpartition("\n")[2]
        raise InputError(f"--runner={runner} failed: {last_line}; once that is mended, --resume goes on") from error
    counts = work.shard_counts(*_CORPUS)
    if reason or counts is None:
        reason = reason or f"nothing came to {work.path}; the shards must be in a folder that all workers share"
        raise InputError(f"--runner={runner} failed: {reason}")
    work.write_corpus_counts(counts)
    return counts
