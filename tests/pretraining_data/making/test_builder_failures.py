"""A build that fails leaves nothing half-written, and one that was stopped goes on to the same bytes."""

import itertools
import json
import pathlib
import shutil
import sqlite3
import subprocess

import pytest
import tensorflow as tf
from killed_builds import Killed, content_of, kill_at

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data.making import builder
from albert_tf.pretraining_data.making.builder import build, shard_paths
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions, ExampleMaker
from albert_tf.pretraining_data.making.shard_writer import ShardWriter
from albert_tf.pretraining_data.manifest import MANIFEST_FILE, WORK_FOLDER
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.reading.documents import CorpusReader


def build_from_small_chunks(folder, tokenizer, seed=1, num_shards=2, resume=False, **options):
    """Builds from folder/corpus.txt into folder/data; with chunks of a hundred characters there are some twenty."""
    defaults = {"masking": "static", "held_out_fraction": 0.3, "random_seed": seed}
    train_paths = shard_paths(str(folder / "data" / "train.tfrecord"), num_shards)
    held_out_paths = [str(folder / "data" / "held_out.tfrecord")]
    options = BuilderOptions(32, MaskingOptions(5), **(defaults | options))
    reader = CorpusReader([str(folder / "corpus.txt")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("albert_tf.reading.documents.CHARACTERS_PER_CHUNK", 100)
        build(reader, tokenizer, options, train_paths, held_out_paths, resume=resume)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, write_corpus, random_documents, tiny_tokenizer):
    """Folders of what `rebuild` gives without a failure, by its seed; look, don't touch."""
    folders = {}
    for seed in (1, 2):
        folder = tmp_path_factory.mktemp("finished")
        write_corpus(folder / "corpus.txt", random_documents(40))
        build_from_small_chunks(folder, tiny_tokenizer, seed)
        folders[seed] = folder / "data"
    return folders


@pytest.fixture
def rebuild(contents_of, tmp_path, write_corpus, random_documents, tiny_tokenizer):
    """Builds into tmp_path/data; returns what the folder holds, also after a failure."""
    write_corpus(tmp_path / "corpus.txt", random_documents(40))

    def build_again(seed=1, expected_error=None, **options):
        if expected_error is None:
            build_from_small_chunks(tmp_path, tiny_tokenizer, seed, **options)
        else:
            with pytest.raises(expected_error[0], match=expected_error[1]):
                build_from_small_chunks(tmp_path, tiny_tokenizer, seed, **options)
        return contents_of(tmp_path / "data")

    return build_again


def shards_in(contents):
    return {name: content for name, content in contents.items() if not name.startswith(WORK_FOLDER)}


@pytest.mark.slow
def test_corpus_that_cannot_be_read_leaves_old_shards_as_they_were(rebuild, finished, contents_of, tmp_path):
    before = contents_of(shutil.copytree(finished[1], tmp_path / "data"))
    with open(tmp_path / "corpus.txt", "ab") as file:
        file.write(b"\n\xff\n")
    assert rebuild(2, expected_error=(InputError, "not valid UTF-8")) == before


@pytest.mark.slow
def test_no_room_to_remember_documents_costs_a_sentence(
    tmp_path, tiny_tokenizer, write_corpus, random_documents, monkeypatch
):
    def connect_with_little_room(path, connect=sqlite3.connect):
        database = connect(path)
        database.execute("PRAGMA max_page_count=2")
        return database

    write_corpus(tmp_path / "corpus.txt", random_documents(150))
    with monkeypatch.context() as patch, pytest.raises(InputError, match=r"disk is full\).* `resume` continues$"):
        patch.setattr(sqlite3, "connect", connect_with_little_room)
        build_from_small_chunks(tmp_path, tiny_tokenizer, deduplicate=True)
    build_from_small_chunks(tmp_path, tiny_tokenizer, deduplicate=True, resume=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["third.jsonl.gz", "third.parquet"])
def test_file_that_cannot_be_read_for_a_while_costs_nothing(
    tmp_path, tiny_tokenizer, write_corpus, random_documents, contents_of, unreadable, monkeypatch, name
):
    monkeypatch.setattr("albert_tf.reading.documents.CHARACTERS_PER_CHUNK", 100)
    paths = [write_corpus(tmp_path / f"{number}.txt", random_documents(9, seed=number)) for number in range(2)]
    (tmp_path / name).write_bytes(content_of(random_documents(9), name, tmp_path))

    def build_in(folder, resume=False):
        options = BuilderOptions(32, MaskingOptions(5), held_out_fraction=0.0)
        reader = CorpusReader([*paths, str(tmp_path / name)])
        build(reader, tiny_tokenizer, options, [str(tmp_path / folder / "train.tfrecord")], [], resume=resume)
        return contents_of(tmp_path / folder)

    with unreadable(tmp_path / name), pytest.raises(InputError) as failure:
        build_in("data")
    assert str(failure.value) == (
        f"can't read {tmp_path}/{name}: 503: try again later; once that is corrected, `resume` continues"
    )
    assert len(list((tmp_path / "data" / WORK_FOLDER).glob("chunk-*.json"))) > 2
    assert build_in("data", resume=True) == build_in("expected")


# Where a build may end: (owner, function, at which call).
STOPS = {
    "reading the last chunk": (ExampleMaker, "make", 9),
    "a spill file": (builder, "write_spill", 5),
    "the last shard": (ShardWriter, "write", 2),
    "moving the first file": (tf.io.gfile, "rename", 0),
    "removing files": (tf.io.gfile, "rmtree", 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("stop", STOPS)
def test_stopped_build_leaves_old_shards_and_goes_on_to_the_same_bytes(
    rebuild, finished, contents_of, tmp_path, monkeypatch, stop
):
    before, expected = contents_of(finished[1]), contents_of(finished[2])
    shutil.copytree(finished[1], tmp_path / "data")
    with monkeypatch.context() as patch:
        kill_at(patch, *STOPS[stop])
        left = rebuild(2, expected_error=(Killed, None))
    left_shards = shards_in(left)
    if MANIFEST_FILE in left_shards:
        assert left_shards in (before, expected)
    assert {name for name in left_shards if not name.endswith(".temporary")} <= set(before)
    assert rebuild(2, resume=True) == expected


@pytest.mark.slow
def test_every_ninth_rename_may_be_the_last(rebuild, finished, contents_of, tmp_path, monkeypatch):
    expected = contents_of(finished[2])
    for number in itertools.count(step=9):
        with monkeypatch.context() as patch:
            kill_at(patch, tf.io.gfile, "rename", number)
            try:
                rebuild(2)
                break
            except Killed:
                pass
        assert rebuild(2, resume=True) == expected
        shutil.rmtree(tmp_path / "data")
    assert number > 20


def test_finished_shard_is_never_written_again(rebuild, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        kill_at(patch, ShardWriter, "write", 1)
        rebuild(expected_error=(Killed, None))
    [finished] = (tmp_path / "data" / WORK_FOLDER).glob("*.tfrecord")
    identity = (finished.stat().st_ino, finished.stat().st_mtime_ns)
    rebuild(resume=True)
    moved = tmp_path / "data" / "train-00000-of-00002.tfrecord"
    assert (moved.stat().st_ino, moved.stat().st_mtime_ns) == identity


def test_chunks_that_were_done_are_not_done_again(rebuild, monkeypatch):
    real_make, calls = ExampleMaker.make, []

    def make(maker, documents):
        calls.append(documents.chunk_id)
        return real_make(maker, documents)

    monkeypatch.setattr(ExampleMaker, "make", make)
    with monkeypatch.context() as patch:
        kill_at(patch, ExampleMaker, "make", 7)
        rebuild(expected_error=(Killed, None))
    assert len(calls) == 7
    rebuild(resume=True)
    assert len(calls) > 10
    assert len(set(calls)) == len(calls)


def test_unfinished_build_is_neither_taken_up_nor_lost_unasked(rebuild, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        kill_at(patch, ShardWriter, "write", 1)
        left = rebuild(expected_error=(Killed, None))
    assert rebuild(expected_error=(InputError, "holds an unfinished build; continue with `resume`")) == left
    for changed, name in (({"seed": 2}, "random_seed"), ({"num_shards": 3}, "output")):
        assert rebuild(**changed, resume=True, expected_error=(InputError, f"with another {name}")) == left
    with open(tmp_path / "corpus.txt", "a", encoding="utf-8") as file:
        file.write("\n가 나\n다 라\n")
    sizes = r"with another input \(\[.*/corpus.txt\", [0-9]+\], now \[.*/corpus.txt\", [0-9]+\]\)"
    assert rebuild(resume=True, expected_error=(InputError, sizes)) == left


def test_manifest_is_away_while_shards_are_replaced_and_comes_last(rebuild, finished, tmp_path, monkeypatch):
    shutil.copytree(finished[1], tmp_path / "data")
    real_rename, renamed = tf.io.gfile.rename, []

    def rename(source, target, overwrite=False):
        target = pathlib.Path(target)
        if target.parent.name != WORK_FOLDER:
            assert not (target.parent / MANIFEST_FILE).exists()
            renamed.append(target.name)
        real_rename(source, str(target), overwrite)

    monkeypatch.setattr(tf.io.gfile, "rename", rename)
    rebuild(2)
    assert renamed[:3] == ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord", "held_out.tfrecord"]
    assert renamed[-1] == MANIFEST_FILE


@pytest.mark.slow
def test_shards_of_a_larger_build_do_not_stay_behind(rebuild, monkeypatch):
    before = rebuild(num_shards=4)
    with monkeypatch.context() as patch:
        kill_at(patch, tf.io.gfile, "remove", 1)
        rebuild(num_shards=2, expected_error=(Killed, None))
    after = rebuild(num_shards=2, resume=True)
    assert len(before) - len(after) == 2
    assert shards_in(after) == after


@pytest.mark.slow
def test_only_shards_of_the_old_build_are_deleted(rebuild, tmp_path):
    rebuild(num_shards=3)
    for name, change in (
        ("train-00001-of-00003.tfrecord", lambda shard: shard[1:]),
        ("train-00002-of-00003.tfrecord", lambda shard: shard[:-1] + b"!"),
    ):
        path = tmp_path / "data" / name
        path.write_bytes(change(path.read_bytes()))
    after = rebuild(num_shards=2)
    assert sorted(name[:11] for name in after if "-of-00003" in name) == ["train-00001", "train-00002"]


def test_manifest_never_leads_out_of_its_folder(rebuild, finished, tmp_path):
    shutil.copytree(finished[1], tmp_path / "data")
    outside = tmp_path / "outside.txt"
    outside.write_text("precious", encoding="utf-8")
    path = tmp_path / "data" / MANIFEST_FILE
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["splits"]["train"].update(files=["../outside.txt"], bytes_per_shard=[outside.stat().st_size])
    path.write_text(json.dumps(manifest), encoding="utf-8")
    rebuild(expected_error=(InputError, "manifest.json names .* which is not a file in .*/data; correct the name"))
    assert outside.read_text(encoding="utf-8") == "precious"


def test_full_disk_is_named_and_the_build_goes_on_once_there_is_room(rebuild, finished, contents_of, tmp_path):
    expected = contents_of(finished[1])
    (tmp_path / "data").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path / "data")]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        left = rebuild(1, expected_error=(InputError, "can't write .*/data: .*[Nn]o space left.* `resume` continues"))
        assert MANIFEST_FILE not in left
        subprocess.run(["mount", "-o", "remount,size=16m", str(tmp_path / "data")], check=True)
        assert rebuild(1, resume=True) == expected
    finally:
        subprocess.run(["umount", "-l", str(tmp_path / "data")], check=True)


@pytest.mark.parametrize(
    ("documents", "options", "message"),
    [
        ([], {}, "no text in .*corpus.txt; write one sentence a line"),
        ([["가"], ["나"]], {}, "corpus.txt: no document has two sentences"),
        ([["가 나 다 라 마 바 사"]], {"packing": "halves"}, "corpus.txt: no sentence can be cut in two"),
        ([["가 나", "다 라"]], {"held_out_fraction": 1e-9}, "no document fell to the held_out split"),
        ([["가 나", "다 라"]], {"held_out_fraction": 1 - 1e-9}, "no document fell to the train split"),
        ([["가 나", "다 라"]] * 3, {"num_shards": 8, "held_out_fraction": 0.0}, "8 shards"),
    ],
)
def test_corpus_that_makes_no_shards_is_refused(contents_of, build_shards, tmp_path, documents, options, message):
    with pytest.raises(InputError, match=message):
        build_shards(tmp_path, documents, **options)
    assert contents_of(tmp_path / "data") == {}
