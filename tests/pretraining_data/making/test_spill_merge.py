"""Merged files hold the same examples in the same order, and are opened as often as the corpus is large."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf
from killed_builds import Killed, kill_at

from albert_tf.pretraining_data.making import builder
from albert_tf.pretraining_data.making.builder import MAX_OPEN_FILES, build, group_runs, merge_spills, shard_paths
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.making.examples import Examples
from albert_tf.pretraining_data.making.shard_writer import ShardWriter
from albert_tf.pretraining_data.manifest import WORK_FOLDER
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.reading.documents import CorpusReader

pytestmark = pytest.mark.slow


def random_examples(number, seed, keys):
    """Examples with keys out of a few, so that many are equal; labels and pieces tell them apart."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 9, [2, number]).astype(np.int32)
    pieces = random.integers(0, 1 << 31, lengths.sum()).astype(np.uint32)
    labels, num_characters = random.integers(0, 2, number).astype(np.int8), random.integers(0, 99, number, np.int32)
    sources = random.integers(0, 3, number).astype(np.int16)
    return Examples(random.choice(keys, number), *lengths, labels, num_characters, sources, pieces)


@pytest.mark.parametrize(
    ("folder", "pieces_in_memory", "num_shards"),
    [("{tmp_path}", 1, 7), ("ram://merge", 50, 1), ("{tmp_path}", 1 << 22, 7)],
)
def test_merged_file_is_the_stable_sort_of_its_sources(tmp_path, monkeypatch, folder, pieces_in_memory, num_shards):
    monkeypatch.setattr(builder, "_PIECES_IN_MEMORY", pieces_in_memory)
    keys = np.random.default_rng(1).integers(0, 1 << 64, 20, np.uint64)
    parts = [random_examples(number, seed, keys) for seed, number in enumerate((30, 0, 40, 1))]
    folder, buckets = folder.format(tmp_path=tmp_path), builder.num_buckets(num_shards)
    tf.io.gfile.makedirs(folder)
    paths = [f"{folder}/{number}" for number in range(len(parts))]
    for path, examples in zip(paths, parts):
        builder.write_spill(path, examples, buckets)
    merge_spills(paths, f"{folder}/merged", buckets)
    builder.write_spill(f"{folder}/expected", Examples.concatenate(parts), buckets)
    merged, expected = (tf.io.gfile.GFile(f"{folder}/{name}", "rb").read() for name in ("merged", "expected"))
    assert merged == expected
    with builder.SpillReader(f"{folder}/merged", buckets) as reader:
        read = reader.read(0, buckets)
    for column, expected in zip(read.columns(), Examples.concatenate(parts).sorted_by_key().columns()):
        np.testing.assert_array_equal(column, expected)


@pytest.mark.parametrize(
    ("num_chunks", "num_shards"), [(0, 1), (8, 9), (257, 1), (257, 256), (41_000, 5000), (200_000, 8)]
)
def test_opens_grow_with_the_corpus_and_not_with_chunks_times_shards(num_chunks, num_shards):
    runs, num_opens, num_passes = [[number] for number in range(num_chunks)], 0, 0
    while len(groups := group_runs(runs, num_chunks, num_shards)) < len(runs):
        assert max(map(len, groups)) <= MAX_OPEN_FILES
        num_opens += len(runs)
        num_passes += 1
        runs = [list(itertools.chain.from_iterable(group)) for group in groups]
    assert list(itertools.chain.from_iterable(runs)) == list(range(num_chunks))
    num_opens += len(runs) * num_shards
    assert len(runs) <= MAX_OPEN_FILES
    assert num_passes <= 2
    assert num_opens <= 11 * num_chunks + num_shards


@pytest.fixture
def build_from_chunks(tmp_path, tiny_tokenizer, write_corpus, random_documents, monkeypatch, contents_of):
    """Builds from many chunks of a few examples; returns the files."""

    def build_in(name, num_documents, num_shards, resume=False, **options):
        with monkeypatch.context() as patch:
            patch.setattr("albert_tf.reading.documents.CHARACTERS_PER_CHUNK", 30)
            reader = CorpusReader([write_corpus(tmp_path / f"{num_documents}.txt", random_documents(num_documents))])
            options = BuilderOptions(32, MaskingOptions(5), **({"held_out_fraction": 0.0, "dupe_factor": 9} | options))
            held_out_paths = [str(tmp_path / name / "held_out.tfrecord")] if options.held_out_fraction else []
            train_paths = shard_paths(str(tmp_path / name / "train.tfrecord"), num_shards)
            build(reader, tiny_tokenizer, options, train_paths, held_out_paths, resume=resume)
        return contents_of(tmp_path / name)

    return build_in


@pytest.mark.parametrize(("num_documents", "num_shards"), [(20, 40), (60, 4)])
def test_build_opens_files_as_often_as_the_corpus_is_large(build_from_chunks, monkeypatch, num_documents, num_shards):
    opened, real_init = collections.Counter(), builder.SpillReader.__init__

    def init(reader, path, buckets):
        opened[path] += 1
        real_init(reader, path, buckets)

    monkeypatch.setattr(builder.SpillReader, "__init__", init)
    monkeypatch.setattr(builder, "_PIECES_IN_MEMORY", 1)  # many parts a shard
    build_from_chunks("data", num_documents, num_shards)
    num_chunks = sum("chunk-" in path for path in opened)
    assert num_chunks > num_documents / 2
    assert opened.total() <= 11 * num_chunks + num_shards


def test_merging_changes_no_byte_of_the_shards(build_from_chunks, monkeypatch):
    options = {"held_out_fraction": 0.3, "masking": "static"}
    expected = build_from_chunks("expected", 30, 3, **options)
    monkeypatch.setattr(builder, "MAX_OPEN_FILES", 3)
    merged = []
    monkeypatch.setattr(
        "albert_tf.pretraining_data.making.builder.merge_spills", lambda *a: merged.append(merge_spills(*a))
    )
    assert build_from_chunks("merged", 30, 3, **options) == expected
    assert len(merged) > 10


@pytest.mark.parametrize(
    ("owner", "name"), [(tf.io.gfile, "rename"), (tf.io.gfile, "remove"), (builder.SpillReader, "__init__")]
)
def test_build_that_is_killed_while_it_merges_goes_on_to_the_same_bytes(build_from_chunks, monkeypatch, owner, name):
    monkeypatch.setattr(builder, "MAX_OPEN_FILES", 3)
    expected = build_from_chunks("expected", 12, 2)
    for number in itertools.count(step=11):
        folder = f"{name}{number}"
        with monkeypatch.context() as patch:
            kill_at(patch, owner, name, number)
            try:
                build_from_chunks(folder, 12, 2)
                break
            except Killed:
                pass
        assert build_from_chunks(folder, 12, 2, resume=True) == expected
    assert number > 11


def test_what_has_been_merged_takes_no_room_twice(build_from_chunks, monkeypatch, tmp_path):
    monkeypatch.setattr(builder, "MAX_OPEN_FILES", 3)
    kill_at(monkeypatch, ShardWriter, "write", 0)
    with pytest.raises(Killed):
        build_from_chunks("data", 30, 2)
    left = [path.name for path in (tmp_path / "data" / WORK_FOLDER).glob("*.examples")]
    assert 1 <= len(left) <= 3
    assert all(name.startswith("merged-") for name in left)
