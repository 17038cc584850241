"""Apache Beam gives the local builder's bytes, on each engine that can be started here."""

import contextlib
import itertools
import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf
from killed_builds import Killed, kill_at

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data.making import beam_pipeline
from albert_tf.pretraining_data.making.beam_pipeline import PipelineSteps, run_on_beam
from albert_tf.pretraining_data.making.builder import build, shard_paths
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions, ExampleMaker
from albert_tf.pretraining_data.making.examples import COLUMN_DTYPES
from albert_tf.pretraining_data.making.shard_writer import ShardWriter
from albert_tf.pretraining_data.making.state import WorkFolder
from albert_tf.pretraining_data.manifest import WORK_FOLDER
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.reading.documents import CorpusReader


@pytest.fixture
def needs_beam():
    """Skips where Apache Beam isn't installed."""
    pytest.importorskip("apache_beam", reason="needs Apache Beam: pip install -r requirements-beam.txt")


@pytest.fixture(scope="module")
def dask_cluster():
    """A Dask cluster of two processes."""
    distributed = pytest.importorskip("distributed", reason="needs Dask: pip install -r requirements-beam.txt")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture
def dask_arguments(needs_beam, dask_cluster):
    """Arguments for DaskRunner, which name the cluster."""
    from distributed import default_client

    yield [f"--dask_client_address={dask_cluster.scheduler_address}", "--dask_npartitions=4"]
    default_client().close()


@pytest.fixture
def build_with(tmp_path, contents_of):
    """Builds in a folder of tmp_path, locally or with a runner; returns what the folder holds."""

    def build_in(name, paths, tokenizer, runner=None, arguments=(), num_shards=2, resume=False, **options):
        folder = tmp_path / name
        train_paths, held_out_paths = shard_paths(str(folder / "train.tfrecord"), num_shards), []
        options = BuilderOptions(**({"max_seq_length": 32, "masking_options": MaskingOptions(5)} | options))
        if options.held_out_fraction:
            held_out_paths.append(str(folder / "held_out.tfrecord"))
        common = CorpusReader(paths), tokenizer, options, train_paths, held_out_paths
        if runner:
            run_on_beam(*common, runner, list(arguments), resume)
        else:
            build(*common, resume=resume)
        return contents_of(folder)

    return build_in


@pytest.fixture
def small_chunks(monkeypatch, tmp_path, random_documents, write_corpus):
    """Three files of several chunks each, with documents that are repeated in a chunk, a file and another file."""
    monkeypatch.setattr("albert_tf.reading.documents.CHARACTERS_PER_CHUNK", 200)
    documents = random_documents(40)
    documents = [*documents[:20], documents[19], *documents[5:9], *documents[20:], *documents[10:30]]
    parts = documents[:30], documents[30:35], documents[35:]
    return [write_corpus(tmp_path / f"{number}.txt", part) for number, part in enumerate(parts)]


@pytest.mark.slow
def test_files_are_those_of_the_builder(
    needs_beam, build_with, small_chunks, tiny_tokenizer, random_documents, write_corpus, tmp_path
):
    options = {"deduplicate": True, "masking": "static", "dupe_factor": 3, "held_out_fraction": 0.3, "num_shards": 5}
    [long] = random_documents(1, num_sentences=(70, 71))  # of several chunks
    paths = [*small_chunks, write_corpus(tmp_path / "long.txt", [long, ["가나", "다라"], long])]
    expected = build_with("local", paths, tiny_tokenizer, **options)
    assert build_with("beam", paths, tiny_tokenizer, "DirectRunner", **options) == expected


@pytest.mark.slow
def test_worker_processes_give_the_builders_files(
    dask_arguments, build_with, random_documents, write_corpus, tiny_tokenizer, tmp_path, monkeypatch
):
    options = {"num_shards": 3, "deduplicate": True, "dupe_factor": 2}
    paths = [write_corpus(tmp_path / f"{seed}.txt", random_documents(40, seed=seed)) for seed in (1, 2)]
    paths.append(paths[0])
    expected = build_with("local", paths, tiny_tokenizer, **options)
    for owner, name in ((ExampleMaker, "make"), (ShardWriter, "write")):
        monkeypatch.setattr(owner, name, None)  # so that nothing can be done in this process
    assert build_with("beam", paths, tiny_tokenizer, "DaskRunner", dask_arguments, **options) == expected


@pytest.mark.slow
def test_bad_line_is_named_and_nothing_is_left(needs_beam, build_with, small_chunks, tiny_tokenizer, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes("가나\n다라\n".encode() + b"\xff\n")
    with pytest.raises(InputError, match=f"{bad}, line 3: not valid UTF-8") as local_error:
        build_with("local", [*small_chunks, str(bad)], tiny_tokenizer)
    with pytest.raises(InputError) as error:
        build_with("beam", [*small_chunks, str(bad)], tiny_tokenizer, "DirectRunner")
    assert str(error.value) == str(local_error.value)
    assert not (tmp_path / "beam").exists()


@pytest.mark.slow
def test_file_that_cannot_be_read_for_a_while_ends_no_build_for_good(
    needs_beam, build_with, small_chunks, tiny_tokenizer, unreadable, tmp_path
):
    with unreadable(small_chunks[2]), pytest.raises(InputError) as failure:
        build_with("beam", small_chunks, tiny_tokenizer, "DirectRunner")
    told = f"can't read {small_chunks[2]}: 503: try again later; once that is corrected, `resume` continues"
    assert str(failure.value) == told
    assert (tmp_path / "beam" / WORK_FOLDER / "plan.json").exists()
    expected = build_with("expected", small_chunks, tiny_tokenizer)
    assert build_with("beam", small_chunks, tiny_tokenizer, "DirectRunner", resume=True) == expected


@pytest.mark.slow
def test_corpus_that_makes_no_shards_is_refused(needs_beam, build_with, tiny_tokenizer, tmp_path, write_corpus):
    path = write_corpus(tmp_path / "corpus.txt", [["가 나", "다 라"]] * 3)
    with pytest.raises(InputError, match="8 shards"):
        build_with("beam", [path], tiny_tokenizer, "DirectRunner", num_shards=8, held_out_fraction=0.0)
    assert not (tmp_path / "beam").exists()


@pytest.fixture
def changed_text(small_chunks):
    """Puts other text of the same size into a file of the corpus, as long as the context lasts."""

    @contextlib.contextmanager
    def change():
        path = pathlib.Path(small_chunks[1])
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("가", "머"), encoding="utf-8")
        with pytest.raises(InputError, match=f"{path} is not the text that the unfinished build in .* began with"):
            yield
        path.write_text(text, encoding="utf-8")

    return change


@pytest.mark.slow
def test_failed_pipeline_leaves_old_shards_and_goes_on_with_its_own_text_alone(
    needs_beam, build_with, small_chunks, tiny_tokenizer, contents_of, changed_text, tmp_path, monkeypatch
):
    arguments = {"paths": small_chunks, "tokenizer": tiny_tokenizer, "num_shards": 3}
    before = build_with("beam", **arguments, random_seed=1)
    expected = build_with("expected", **arguments, random_seed=2)
    arguments |= {"runner": "DirectRunner", "random_seed": 2}
    write, calls = ShardWriter.write, itertools.count()

    def write_two_shards(*arguments):
        if next(calls) == 2:
            raise OSError(28, "No space left on device")
        return write(*arguments)

    message = r"^`runner=DirectRunner` failed \(.*No space left on device.*`resume` continues$"
    with monkeypatch.context() as patch, pytest.raises(InputError, match=message):
        patch.setattr(ShardWriter, "write", write_two_shards)
        build_with("beam", **arguments)
    left = contents_of(tmp_path / "beam")
    assert {name: content for name, content in left.items() if not name.startswith(WORK_FOLDER)} == before

    with pytest.raises(InputError, match='with another engine \\("Beam", now null\\)'):
        build_with("beam", **{**arguments, "runner": None}, resume=True)
    with changed_text():
        build_with("beam", **arguments, resume=True)
    finished = {path.stat().st_ino for path in (tmp_path / "beam" / WORK_FOLDER).glob("*.tfrecord")}
    assert len(finished) == 2
    assert build_with("beam", **arguments, resume=True) == expected
    assert finished < {path.stat().st_ino for path in (tmp_path / "beam").glob("*.tfrecord")}


@pytest.mark.slow
def test_pipeline_that_was_done_is_not_run_again(
    needs_beam, build_with, small_chunks, tiny_tokenizer, changed_text, monkeypatch
):
    arguments = {"paths": small_chunks, "tokenizer": tiny_tokenizer}
    expected = build_with("expected", **arguments)
    arguments["runner"] = "DirectRunner"
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at(patch, beam_pipeline, "publish", 0)
        build_with("beam", **arguments)
    kill_at(monkeypatch, ExampleMaker, "make", 0)
    with changed_text():
        build_with("beam", **arguments, resume=True)
    assert build_with("beam", **arguments, resume=True) == expected


def test_folder_that_workers_do_not_share_is_told(
    needs_beam, build_with, small_chunks, tiny_tokenizer, tmp_path, monkeypatch
):
    monkeypatch.setattr(PipelineSteps, "write", lambda *_: None)  # what is written elsewhere isn't seen here
    with pytest.raises(InputError, match=r"no worker wrote to .*/beam/.*; name an `output_file` in a folder that all"):
        build_with("beam", small_chunks, tiny_tokenizer, "DirectRunner")
    assert not (tmp_path / "beam").exists()


@pytest.mark.parametrize(
    ("runner", "arguments", "message"),
    [
        ("NoSuchRunner", [], "`runner=NoSuchRunner` can't be used .*; docs/beam.md"),
        ("no.such.Runner", [], "`runner=no.such.Runner` can't be used .*; docs/beam.md"),
        ("albert_tf.NoSuchRunner", [], "`runner=albert_tf.NoSuchRunner` can't be used .*; docs/beam.md"),
        (
            "DirectRunner",
            ["--direct_num_workers=two"],
            r"`runner=DirectRunner` can't be used \(.*direct_num_workers.*'two'\)",
        ),
    ],
)
def test_what_beam_does_not_know_is_named(
    needs_beam, build_with, small_chunks, tiny_tokenizer, tmp_path, runner, arguments, message
):
    with pytest.raises(InputError, match=message):
        build_with("beam", small_chunks, tiny_tokenizer, runner, arguments)
    assert not (tmp_path / "beam").exists()


def test_missing_beam_is_told(build_with, small_chunks, tiny_tokenizer, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(InputError, match=r"`runner=DirectRunner` needs apache_beam.*pip install .*\[beam\]"):
        build_with("beam", small_chunks, tiny_tokenizer, "DirectRunner")
    assert not (tmp_path / "beam").exists()


def test_steps_that_end_after_a_failed_build_leave_nothing(tiny_tokenizer, write_corpus, tmp_path):
    # An engine that gives up lets what other workers are at go on.
    reader = CorpusReader([write_corpus(tmp_path / "corpus.txt", [["가 나", "다 라"]])])
    work = WorkFolder(str(tmp_path / "out"), {}, resume=False)
    steps = PipelineSteps(work, tiny_tokenizer.identity, BuilderOptions(16, MaskingOptions(2)), {"train": 1})
    reading = steps.read(0, reader)
    next(reading)
    work.remove()
    with pytest.raises((OSError, tf.errors.OpError)):
        list(reading)
    with pytest.raises((OSError, tf.errors.OpError)):
        work.write_shard_counts("train", 0, {"examples": 1})
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"\xff\n")
    with pytest.raises((OSError, tf.errors.OpError)):
        list(steps.read(0, CorpusReader([str(bad)])))
    assert not (tmp_path / "out" / WORK_FOLDER).exists()


def test_what_is_written_while_a_work_folder_is_removed_goes_too(tmp_path, monkeypatch):
    work = WorkFolder(str(tmp_path), {}, resume=False)
    rmtree = tf.io.gfile.rmtree

    def rmtree_beside_a_worker(path):
        monkeypatch.setattr(tf.io.gfile, "rmtree", rmtree)
        (tmp_path / WORK_FOLDER / "input-00000.json").write_text("{}")
        raise tf.errors.FailedPreconditionError(None, None, "Directory not empty")

    monkeypatch.setattr(tf.io.gfile, "rmtree", rmtree_beside_a_worker)
    work.remove()
    assert not (tmp_path / WORK_FOLDER).exists()


def test_shard_does_not_depend_on_the_order_in_which_examples_arrive(tiny_tokenizer, tmp_path):
    options = BuilderOptions(16, MaskingOptions(2))

    def value(chunk, key):
        pieces = tiny_tokenizer.vocabulary.real_piece_ids[:6] + chunk
        columns = zip(([key], [4], [2], [chunk % 2], [0], [0], pieces), COLUMN_DTYPES, strict=True)
        return (0, chunk), tuple(np.array(column, dtype).tobytes() for column, dtype in columns)

    last, *alike = value(1, 3), value(0, 7), value(2, 7), value(3, 7)  # three have the same key
    contents = set()
    for number, order in enumerate([*order, last] for order in itertools.permutations(alike)):
        work = WorkFolder(str(tmp_path / str(number)), {}, resume=False)
        tiny_tokenizer.save(work.path)
        PipelineSteps(work, tiny_tokenizer.identity, options, {"train": 1}).write((("train", 0), order))
        assert work.shard_counts("train", 0)["examples"] == 4
        contents.add(pathlib.Path(work.shard_path("train", 0)).read_bytes())
    assert len(contents) == 1
