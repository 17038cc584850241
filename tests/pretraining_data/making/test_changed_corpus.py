"""A build goes on only with the text that it began with, whatever its files are called and however large they are."""

import dataclasses
import hashlib
import json

import pytest
from killed_builds import Killed, content_of, kill_at

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data.making.builder import build, shard_paths
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions, ExampleMaker
from albert_tf.pretraining_data.making.shard_writer import ShardWriter, describe_finished
from albert_tf.pretraining_data.making.state import WorkFolder
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.reading import blocks, formats
from albert_tf.reading.documents import CorpusReader


@pytest.fixture
def corpora(tmp_path, random_documents):
    """Returns two corpora of one size, by the name of their file; one syllable is another from a third on."""

    def make(name):
        documents = random_documents(80)
        others = [*documents[:24], *([sentence.replace("가", "머") for sentence in each] for each in documents[24:])]
        first, second = (content_of(each, name, tmp_path) for each in (documents, others))
        assert len(first) == len(second) and first != second
        return first, second

    return make


@pytest.fixture
def build_in(tmp_path, tiny_tokenizer, contents_of, monkeypatch):
    """Builds from tmp_path/NAME into a folder of it, in small blocks and chunks; returns what the folder holds."""
    monkeypatch.setattr("albert_tf.reading.documents.CHARACTERS_PER_CHUNK", 100)
    for module in (blocks, formats):
        monkeypatch.setattr(module, "BYTES_PER_BLOCK", 256)

    def run(name, folder="data", resume=False, **options):
        options = BuilderOptions(32, MaskingOptions(5), held_out_fraction=0.0, **options)
        paths = shard_paths(str(tmp_path / folder / "train.tfrecord"), 2)
        build(CorpusReader([str(tmp_path / name)]), tiny_tokenizer, options, paths, [], resume=resume)
        return contents_of(tmp_path / folder)

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kill"),
    [
        ("corpus.txt", (ExampleMaker, "make", 20)),  # in the first pass
        ("corpus.txt.gz", (ExampleMaker, "make", 20)),
        ("corpus.jsonl", (WorkFolder, "write_corpus_counts", 0)),  # at its end
        ("corpus.parquet", (ShardWriter, "write", 1)),  # in the second pass
    ],
)
def test_killed_build_goes_on_with_its_own_text_alone(
    build_in, corpora, contents_of, tmp_path, monkeypatch, name, kill
):
    first, second = corpora(name)
    (tmp_path / name).write_bytes(first)
    expected = build_in(name, "expected")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at(patch, *kill)
        build_in(name)
    left = contents_of(tmp_path / "data")
    (tmp_path / name).write_bytes(second)
    with pytest.raises(
        InputError, match=f"{tmp_path}/{name} is not the text that the unfinished build in .* began with; put that back"
    ):
        build_in(name, resume=True)
    assert contents_of(tmp_path / "data") == left
    (tmp_path / name).write_bytes(first)
    assert build_in(name, resume=True) == expected


@pytest.mark.slow
def test_text_that_was_not_read_yet_may_change(build_in, corpora, tmp_path, monkeypatch):
    first, second = corpora("corpus.txt")
    (tmp_path / "corpus.txt").write_bytes(first)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at(patch, ExampleMaker, "make", 3)
        build_in("corpus.txt")
    (tmp_path / "corpus.txt").write_bytes(second)
    assert build_in("corpus.txt", resume=True) == build_in("corpus.txt", "expected")


def test_file_that_changes_while_a_build_is_resumed_ends_it(build_in, corpora, tmp_path, monkeypatch):
    first, second = corpora("corpus.txt")
    (tmp_path / "corpus.txt").write_bytes(first)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at(patch, WorkFolder, "write_corpus_counts", 0)
        build_in("corpus.txt")
    real_read = formats.CorpusFile.batches

    def change_and_read(file):
        (tmp_path / "corpus.txt").write_bytes(second)
        return real_read(file)

    monkeypatch.setattr(formats.CorpusFile, "batches", change_and_read)
    with pytest.raises(InputError, match=r"corpus.txt is not the text that the unfinished build in .* began with"):
        build_in("corpus.txt", resume=True)


@pytest.mark.parametrize("name", ["corpus.txt.gz", "corpus.parquet"])
def test_manifest_holds_the_hash_of_each_file(build_in, corpora, tmp_path, name):
    (tmp_path / name).write_bytes(corpora(name)[0])
    manifest = json.loads(build_in(name)["manifest.json"])
    assert manifest["input_files"] == [name]
    assert manifest["sha256_per_input_file"] == [hashlib.sha256(corpora(name)[0]).hexdigest()]


@pytest.fixture
def finished(build_shards, random_documents, tiny_tokenizer, tmp_path):
    """The sentence on a finished build of tmp_path/corpus.txt; called with `is_anew`."""
    built = build_shards(tmp_path, random_documents(20), num_shards=2)
    options = BuilderOptions(32, MaskingOptions(5), held_out_fraction=0.3)
    reader = CorpusReader([str(tmp_path / "corpus.txt")])
    arguments = tiny_tokenizer, options, built.train_paths, built.held_out_paths

    def describe(is_anew=False, **changes):
        changed = dataclasses.replace(reader, **changes)
        return describe_finished(str(built.folder / "manifest.json"), changed, *arguments, is_anew)

    return describe


@pytest.mark.parametrize("change", ["grown", "cut", "of another letter"])
def test_finished_build_of_other_text_is_not_what_is_wanted(finished, tmp_path, change):
    assert finished().endswith("data/manifest.json says that this data is finished")
    corpus = tmp_path / "corpus.txt"
    content = corpus.read_bytes()
    changed = {"grown": content + b"\n", "cut": content[: len(content) // 3], "of another letter": b"a" + content[1:]}
    corpus.write_bytes(changed[change])
    with pytest.raises(
        InputError, match=f"{corpus} is not the text that .*manifest.json was made from; put it back, or"
    ):
        finished()
    assert finished(is_anew=True) is None


@pytest.mark.parametrize("change", ["gone", "cut"])
def test_build_whose_shards_are_gone_is_not_finished(finished, tmp_path, change):
    shard = tmp_path / "data" / "train-00001-of-00002.tfrecord"
    content = shard.read_bytes()
    shard.unlink()
    if change == "cut":
        shard.write_bytes(content[:-1])
    with pytest.raises(InputError, match=f"{shard} is not the shard that .*manifest.json lists; put it back, or"):
        finished()
    assert finished(is_anew=True) is None


def test_build_that_read_other_text_of_the_same_files_is_not_what_is_wanted(finished, tmp_path):
    assert finished(text_field="body") is None
    assert finished(on_bad_text="skip").endswith("finished"), "no line was bad"
    path = tmp_path / "data" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"bad_lines": 1}), encoding="utf-8")
    assert finished(on_bad_text="skip") is None
