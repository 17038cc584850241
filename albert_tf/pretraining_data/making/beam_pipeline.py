"""The builder as an Apache Beam pipeline, for a corpus that is too large for one machine.

The builder's functions run on any engine that Beam supports, and give the same bytes. The engine gathers the examples
of a shard in place of spill files, so a shard must fit into one worker's memory. All workers read the corpus from, and
write the shards to, shared folders.

The graph uses only what every runner has: steps with one output and no side input, and files written by plain
functions. It ends in a single step, because Dask's runner skips whatever doesn't lead to the last one.
"""

import collections
import contextlib
import dataclasses
import functools
import io
import os
import traceback
import uuid

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError, with_extra
from albert_tf.pretraining_data.entities import NameList
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions, ExampleMaker
from albert_tf.pretraining_data.making.examples import COLUMN_DTYPES, Examples
from albert_tf.pretraining_data.making.shard_writer import ShardWriter, check_counts, publish
from albert_tf.pretraining_data.making.state import RESUME_GOES_ON, WorkFolder, open_work_folder
from albert_tf.reading.blocks import BadCorpusError
from albert_tf.reading.documents import CorpusReader, read_documents
from albert_tf.tokenization import Tokenizer

# Names for runners whose full name is long. What Beam itself calls DirectRunner would first download another, Prism.
RUNNERS = {
    "DirectRunner": "apache_beam.runners.portability.fn_api_runner.FnApiRunner",
    "DaskRunner": "apache_beam.runners.dask.dask_runner.DaskRunner",
}

_CORPUS = ("corpus", 0)  # the corpus's counts travel like a shard


def run_on_beam(
    reader: CorpusReader,
    tokenizer: Tokenizer,
    options: BuilderOptions,
    train_paths: list[str],
    held_out_paths: list[str],
    runner: str,
    pipeline_arguments: list[str],
    resume: bool = False,
    names: NameList | None = None,
) -> dict:
    """Builds the same shards as `builder.build`, and manifest.json and the tokenizer beside them; returns the manifest.

    Arguments as for `builder.build`, but every worker must be able to read the corpus, and to write to the folder of
    the shards. The runner is a name in `RUNNERS`, one that Beam knows, or the full name of a class; the pipeline's
    arguments are Beam's and its own, such as "--dask_npartitions=8". To resume reads the corpus again if not all shards
    were finished, and keeps finished ones.

    Raises BadCorpusError if the corpus holds something bad, or gives no examples for some shard: nothing is left then.
    Raises InputError if the runner can't be used, an unfinished build is in the way, or the pipeline failed: `resume`
    goes on then.
    """
    # Workers may run in another folder.
    reader = dataclasses.replace(reader, paths=list(map(_absolute, reader.paths)))
    train_paths, held_out_paths = list(map(_absolute, train_paths)), list(map(_absolute, held_out_paths))
    pipeline = _make_pipeline(runner, pipeline_arguments)
    arguments = reader, tokenizer, options, train_paths, held_out_paths, resume, names, "Beam"
    with open_work_folder(*arguments) as (work, options, shards):
        counts = work.corpus_counts()
        if counts is None:
            num_shards = {split: len(paths) for split, paths in shards.items()}
            _add_steps(pipeline, reader, options, PipelineSteps(work, tokenizer.identity, options, num_shards))
            counts = _run(pipeline, runner, work)
        counts = collections.Counter(counts)
        shard_counts = {
            split: [work.shard_counts(split, shard) or {"examples": 0} for shard in range(len(paths))]
            for split, paths in shards.items()
        }
        examples_per_shard = {split: [shard["examples"] for shard in shards] for split, shards in shard_counts.items()}
        check_counts(reader, options, counts, examples_per_shard)
        return publish(reader, tokenizer, options, shards, work, counts, shard_counts)


@dataclasses.dataclass(frozen=True)
class PipelineSteps:
    """The steps of workers, for a number of shards of each split.

    An engine may repeat a step, also on another worker while the first attempt is still under way: every attempt gives
    the same, and a file takes its place when it is whole.
    """

    work: WorkFolder
    tokenizer_identity: str
    options: BuilderOptions
    num_shards: dict[str, int]

    def read(self, file_index, reader):
        """Yields (chunk id, (documents, counts)) for each chunk of a file."""
        with self._leaving_errors(file_index):
            for documents, chunk in read_documents(reader, file_index):
                yield documents.chunk_id, (documents, chunk.counts)
            self.work.finish_input(file_index, reader.paths[file_index], chunk.file_start)

    def make_examples(self, chunk):
        """Yields ((split, shard), (chunk id, columns of examples)) for shards, and (_CORPUS, (chunk id, counts))."""
        chunk_id, (documents, counts) = chunk
        if documents.texts:
            with self._leaving_errors(chunk_id[0]):
                examples, example_counts = self._load(ExampleMaker.load).make(documents)
            counts = counts + example_counts
            for split, num_shards in self.num_shards.items():
                for shard, columns in _by_shard(examples[split].sorted_by_key(), num_shards):
                    yield (split, shard), (chunk_id, columns)
        yield _CORPUS, (chunk_id, counts)

    def write(self, group):
        """Writes a shard and its counts, or the counts of the corpus."""
        key, values = group
        if self.work.shard_counts(*key) is None:
            if key == _CORPUS:
                counts = sum((chunk_counts for _, chunk_counts in values), collections.Counter())
            else:
                counts = self._write_shard(*key, values)
            self.work.write_shard_counts(*key, counts)

    def _write_shard(self, split, shard, values):
        # They come in any order. The order of chunks is the builder's, should two examples have the same key.
        parts = [Examples(*map(np.frombuffer, columns, COLUMN_DTYPES)) for _, columns in sorted(values)]
        path = self.work.shard_path(split, shard)
        attempt = f"{path}.{uuid.uuid4().hex}"
        counts = self._load(ShardWriter.load).write(attempt, split, shard, [Examples.concatenate(parts)])
        tf.io.gfile.rename(attempt, path, overwrite=True)
        return counts

    def _load(self, load):
        return _load(load, self.work.path, self.tokenizer_identity, self.options)

    @contextlib.contextmanager
    def _leaving_errors(self, file_index):
        """Writes an error of the corpus to the work folder, because runners pass on a traceback at best."""
        try:
            yield
        except InputError as error:
            self.work.write_error(file_index, error)
            raise


@functools.lru_cache(maxsize=2)
def _load(load, folder, tokenizer_identity, options):  # the identity, because a later build may use the same folder
    """Returns `load(folder, options)`, once per process: engines split work into many small parts."""
    return load(folder, options)


def _by_shard(examples, num_shards):
    """Yields (shard, columns as bytes) where there are examples; each shard has an equal range of keys."""
    shards, begins = np.unique([key * num_shards >> 64 for key in examples.keys.tolist()], return_index=True)
    *columns, pieces = examples.columns()
    first_pieces = np.cumsum(examples.lengths) - examples.lengths
    parts = [np.split(column, begins[1:]) for column in columns] + [np.split(pieces, first_pieces[begins[1:]])]
    for shard, *columns in zip(shards.tolist(), *parts):
        yield shard, tuple(column.tobytes() for column in columns)


def _absolute(path):
    return path if "://" in path else os.path.abspath(path)


def _make_pipeline(runner, arguments):
    try:
        import apache_beam
        from apache_beam.options.pipeline_options import PipelineOptions
    except ImportError as error:
        raise InputError(
            f"`runner={runner}` needs apache_beam, which is not installed; pip install {with_extra('beam')}"
        ) from error
    usage = io.StringIO()
    try:
        with contextlib.redirect_stderr(usage):
            pipeline = apache_beam.Pipeline(RUNNERS.get(runner, runner), PipelineOptions(list(arguments)))
            pipeline.options.get_all_options()  # finds values of the wrong type
        return pipeline
    except SystemExit:  # how a command line ends
        reason = usage.getvalue().strip().rpartition("\n")[2]
    except (ImportError, AttributeError, ValueError) as error:
        reason = " ".join(str(error).split())
    raise InputError(f"`runner={runner}` can't be used ({reason}); docs/beam.md says what runners need")


def _add_steps(pipeline, reader, options, steps):
    import apache_beam as beam

    chunks = pipeline | "files" >> beam.Create(range(len(reader.paths))) | "read" >> beam.FlatMap(steps.read, reader)
    # In both cases the chunks of one file are spread over all workers.
    chunks = _first_of_each_document(chunks) if options.deduplicate else chunks | "deal out" >> beam.Reshuffle()
    examples = chunks | "make examples" >> beam.FlatMap(steps.make_examples)
    _ = examples | "gather shards" >> beam.GroupByKey() | "write" >> beam.Map(steps.write)


def _first_of_each_document(chunks):
    """Drops documents that occurred before, in the order of files, chunks and places in a chunk."""
    import apache_beam as beam

    first = chunks | "digests" >> beam.FlatMap(_digests) | "first of each" >> beam.CombinePerKey(min)
    kept = first | "kept places" >> beam.MapTuple(lambda digest, place: (place[:2], place[2]))
    return (chunks, kept) | "gather chunks" >> beam.CoGroupByKey() | "select" >> beam.Map(_select)


def _digests(chunk):
    chunk_id, (documents, _) = chunk
    return [(digest, (*chunk_id, place)) for place, digest in enumerate(documents.part_digests)]


def _select(group):
    chunk_id, ([(documents, counts)], kept_places) = group
    kept_places = set(kept_places)
    is_kept = [place in kept_places for place in range(len(documents.texts))]
    return chunk_id, (documents.select(is_kept), counts + collections.Counter(duplicate_documents=is_kept.count(False)))


def _run(pipeline, runner, work):
    try:
        state = pipeline.run().wait_until_finish()
    except Exception as error:  # each runner has its own
        _raise_error_of_corpus(work)
        # The message may be a worker's whole traceback.
        reason = traceback.format_exception_only(error)[-1].strip().rpartition("\n")[2]
        raise InputError(f"`runner={runner}` failed ({reason}); {RESUME_GOES_ON}") from error
    if state != "DONE":
        raise InputError(f"`runner={runner}` ended as {state}; `resume` continues")
    counts = work.shard_counts(*_CORPUS)
    if counts is None:
        work.remove()
        raise InputError(f"no worker wrote to {work.path}; name an `output_file` in a folder that all workers share")
    work.write_corpus_counts(counts)
    return counts


def _raise_error_of_corpus(work):
    errors = work.take_errors()
    for error in errors:
        if error["is_final"]:
            raise BadCorpusError(error["message"])
    if errors:
        raise InputError(f"{errors[0]['message']}; {RESUME_GOES_ON}")
