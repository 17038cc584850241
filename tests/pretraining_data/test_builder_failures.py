"""A build that fails leaves nothing half-written, and no manifest that vouches for what isn't there."""

import itertools
import pathlib

import pytest
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.pretraining_data import builder
from albert_tf.pretraining_data.builder import MANIFEST_FILE, BuilderOptions, build, shard_paths
from albert_tf.pretraining_data.corpus import CorpusReader
from albert_tf.pretraining_data.masking import MaskingOptions


def _bad_line_at_the_end(corpus, monkeypatch):
    with open(corpus, "ab") as file:
        file.write(b"\n\xff\n")
    return InputError


def _failure_while_the_last_split_is_masked(corpus, monkeypatch):
    real_mask_batch, calls = builder.mask_batch, itertools.count()

    def mask_batch(*arguments):
        if next(calls) == 1:
            raise MemoryError
        return real_mask_batch(*arguments)

    monkeypatch.setattr(builder, "mask_batch", mask_batch)
    return MemoryError


@pytest.fixture
def rebuild(contents_of, tmp_path, write_corpus, random_documents, tiny_tokenizer):
    """Builds into tmp_path/data; `prepare` may break something first, and says which error is to come."""
    corpus, data = tmp_path / "corpus.txt", tmp_path / "data"
    write_corpus(corpus, random_documents(20))

    def build_again(seed=1, prepare=None, monkeypatch=None):
        options = BuilderOptions(32, MaskingOptions(5), masking="static", held_out_fraction=0.3, random_seed=seed)
        reader = CorpusReader([str(corpus)])
        train_paths = shard_paths(str(data / "train.tfrecord"), 2)
        expected_error = prepare(corpus, monkeypatch) if prepare else None
        arguments = (reader, tiny_tokenizer, options, train_paths, [str(data / "held_out.tfrecord")])
        if expected_error is None:
            build(*arguments)
        else:
            with pytest.raises(expected_error):
                build(*arguments)
        return contents_of(data)

    return build_again


failures = pytest.mark.parametrize("prepare", [_bad_line_at_the_end, _failure_while_the_last_split_is_masked])


@failures
def test_failure_leaves_nothing(rebuild, prepare, monkeypatch):
    assert rebuild(1, prepare, monkeypatch) == {}


@failures
def test_failure_leaves_old_shards_as_they_were(rebuild, prepare, monkeypatch):
    before = rebuild(1)
    assert rebuild(2, prepare, monkeypatch) == before


def test_manifest_is_away_while_shards_are_replaced_and_comes_last(rebuild, monkeypatch):
    rebuild(1)
    real_rename, renamed = tf.io.gfile.rename, []

    def rename(source, target, overwrite=False):
        target = pathlib.Path(target)
        assert not (target.parent / MANIFEST_FILE).exists()
        real_rename(source, str(target), overwrite)
        renamed.append(target.name)

    monkeypatch.setattr(tf.io.gfile, "rename", rename)
    rebuild(2)
    assert sorted(renamed[:3]) == [
        "held_out.tfrecord",
        "train-00000-of-00002.tfrecord",
        "train-00001-of-00002.tfrecord",
    ]
    assert renamed[-1] == MANIFEST_FILE


def test_failure_while_shards_are_replaced_leaves_no_manifest(rebuild, monkeypatch):
    rebuild(1)
    real_rename = tf.io.gfile.rename

    def rename(source, target, overwrite=False):
        if target.endswith("00001-of-00002.tfrecord"):
            raise OSError("disk went away")
        real_rename(source, target, overwrite)

    monkeypatch.setattr(tf.io.gfile, "rename", rename)
    left = rebuild(2, lambda corpus, monkeypatch: OSError)
    assert MANIFEST_FILE not in left
    assert not [name for name in left if name.endswith((".temporary", ".unshuffled"))]


@pytest.mark.parametrize(
    ("documents", "options", "message"),
    [
        ([], {}, "no text in .*corpus.txt; write one sentence a line"),
        ([["\u200b", "\u200b"]], {}, "no text in"),
        ([["가"], ["나"]], {}, "every document in .*corpus.txt has only one sentence"),
        ([["가", "나"]], {"held_out_fraction": 1e-9}, "no document fell to the held_out split"),
        ([["가", "나"]], {"held_out_fraction": 1 - 1e-9}, "no document fell to the train split"),
        ([["가", "나"]] * 3, {"num_shards": 8, "held_out_fraction": 0.0}, "8 shards"),
    ],
)
def test_corpus_that_makes_no_shards_is_refused(contents_of, build_shards, tmp_path, documents, options, message):
    with pytest.raises(InputError, match=message):
        build_shards(tmp_path, documents, **options)
    assert contents_of(tmp_path / "data") == {}


def test_folder_that_cannot_be_written_is_named(build_shards, random_documents, tmp_path):
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(InputError, match=f"can't write {tmp_path}/data"):
        build_shards(tmp_path, random_documents(3))
