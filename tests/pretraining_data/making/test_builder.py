"""Shards hold the whole corpus, split by document, and are the same each time."""

import collections
import itertools
import json
import pathlib

import numpy as np
import pytest

from albert_tf.pretraining_data.making import builder, chunk_examples, shard_writer
from albert_tf.pretraining_data.making.builder import shard_paths
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.manifest import MANIFEST_FILE
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.pretraining_data.show import ShardReader

# Long enough that each is one example.
WHOLE_DOCUMENTS = {"packing": "document_sentences", "max_seq_length": 160, "short_seq_prob": 0.0}


def document_ids(documents, tokenizer):
    """The pieces of each document, as tuples."""
    return [tuple(tokenizer.encode_ids(sentences).flat_values.numpy().tolist()) for sentences in documents]


def whole_ids(records):
    return [(*record.earlier, *record.later) for record in records]


@pytest.mark.slow
def test_same_seed_gives_same_bytes(contents_of, build_shards, random_documents, tmp_path):
    def build_once(name, seed):
        options = {"num_shards": 2, "masking": "static", "dupe_factor": 2, "random_seed": seed}
        return contents_of(build_shards(tmp_path / name, random_documents(20), **options).folder)

    first, again, other = build_once("first", 1), build_once("again", 1), build_once("other", 2)
    assert first == again
    assert first.keys() == other.keys()
    for name in [name for name in first if name.endswith(".tfrecord")]:
        assert first[name] != other[name]


@pytest.mark.slow
def test_splits_share_no_document_and_lose_none(build_shards, random_documents, read_records, tmp_path, tiny_tokenizer):
    documents = random_documents(100)
    documents += documents[:20]  # a document that stands twice must fall to one split twice
    shards = build_shards(tmp_path, documents, num_shards=3, dupe_factor=2, **WHOLE_DOCUMENTS)
    train = collections.Counter(whole_ids(read_records(shards.train_paths)))
    held_out = collections.Counter(whole_ids(read_records(shards.held_out_paths)))
    assert train.keys().isdisjoint(held_out)
    assert collections.Counter({ids: count // 2 for ids, count in train.items()}) + held_out == collections.Counter(
        document_ids(documents, tiny_tokenizer)
    )
    assert all(count % 2 == 0 for count in train.values())
    assert held_out.total() == pytest.approx(0.3 * 120, abs=15)


def test_duplicates_are_cut_and_masked_anew(build_shards, random_documents, read_records, tmp_path):
    documents = random_documents(2, num_sentences=(7, 8))

    def build_and_read(packing):
        options = WHOLE_DOCUMENTS | {"masking": "static", "dupe_factor": 10, "packing": packing}
        shards = build_shards(tmp_path / packing, documents, held_out_fraction=0.0, **options)
        return read_records(shards.train_paths)

    by_document = collections.defaultdict(list)
    for record in build_and_read("document_sentences"):
        by_document[(*record.earlier, *record.later)].append(record)
    for records in by_document.values():
        assert len(records) == 10
        assert len({tuple(record.features["masked_lm_positions"]) for record in records}) > 5
    assert len({len(record.earlier) for record in build_and_read("order")}) > 5


def test_manifest_agrees_with_corpus_and_shards(build_shards, random_documents, read_records, tmp_path, tiny_tokenizer):
    documents = random_documents(80, num_sentences=(1, 6))
    documents[3] = ["\u200b", "가나 뷁다 라.", "마바"]  # nothing, an unknown word and an unknown mark
    documents[4] = ["\u200b"]
    shards = build_shards(tmp_path, documents, num_shards=3, dupe_factor=2)
    manifest = shards.manifest
    assert json.loads((shards.folder / MANIFEST_FILE).read_text(encoding="utf-8")) == json.loads(json.dumps(manifest))

    sentences = [sentence for sentence in itertools.chain(*documents) if sentence != "\u200b"]
    all_words = " ".join(sentences).replace(".", " .").split()
    unknown = [word for word in all_words if "뷁" in word or word == "."]
    assert manifest["documents"] == 80
    assert manifest["one_sentence_documents"] == sum(
        len(document) == 1 and document != ["\u200b"] for document in documents
    )
    assert manifest["sentences"] == len(sentences)
    assert manifest["words"] == len(all_words)
    assert manifest["tokens"] == sum(len(word) for word in all_words) - len("뷁다") + 1
    assert manifest["unknown_word_rate"] == round(len(unknown) / len(all_words), 6)
    assert manifest["bad_lines"] == 0
    assert manifest["input_files"] == ["corpus.txt"]
    assert manifest["vocab_size"] == len(tiny_tokenizer.vocabulary)
    assert manifest["tokenizer"]["identity"] == tiny_tokenizer.identity
    assert (manifest["max_seq_length"], manifest["max_predictions_per_seq"]) == (32, 5)
    expected_options = BuilderOptions(32, MaskingOptions(5), dupe_factor=2, held_out_fraction=0.3)
    # Of text whose language nobody told, nothing is said of it, nor of names of which there are none.
    unsaid = {"sources": (), "names_sha256": "", "num_names": 0}
    assert {**manifest["options"], **unsaid} == expected_options.to_dict()
    assert not unsaid.keys() & manifest["options"].keys()
    assert "source_per_input_file" not in manifest

    splits = manifest["splits"]
    assert splits["train"]["documents"] + splits["held_out"]["documents"] == 80
    for name, paths in (("train", shards.train_paths), ("held_out", shards.held_out_paths)):
        records = read_records(paths)
        lengths = [record.features["input_mask"].sum() for record in records]
        assert splits[name]["files"] == [pathlib.Path(path).name for path in paths]
        assert splits[name]["examples"] == len(records)
        assert splits[name]["examples_per_shard"] == [len(read_records([path])) for path in paths]
        assert splits[name]["mean_tokens_per_example"] == pytest.approx(np.mean(lengths), abs=0.01)
        labels = [record.features["next_sentence_labels"][0] for record in records]
        assert splits[name]["share_swapped"] == pytest.approx(np.mean(labels), abs=1e-4)
    assert splits["train"]["masking"] == "dynamic"
    assert splits["held_out"]["masking"] == "static"
    assert splits["train"].keys() & {"share_masked", "unigram_entropy"} == set()


def entropy_of(ids):
    _, counts = np.unique(ids, return_counts=True)
    shares = counts / counts.sum()
    return -np.sum(shares * np.log(shares))


@pytest.mark.parametrize("split", ["train", "held_out"])
def test_masked_split_reports_its_masks_and_entropy(static_shards, read_records, split):
    summary = static_shards.manifest["splits"][split]
    records = read_records(static_shards.train_paths if split == "train" else static_shards.held_out_paths)
    masked = sum(record.features["masked_lm_weights"].sum() for record in records)
    tokens = sum(record.features["input_mask"].sum() for record in records)
    assert summary["share_masked"] == pytest.approx(masked / tokens, abs=1e-4)
    assert summary["unigram_entropy"] == pytest.approx(entropy_of(np.concatenate(whole_ids(records))), abs=1e-4)


def test_separators_inside_examples_are_not_in_the_entropy(build_shards, random_documents, tmp_path):
    documents = random_documents(20, num_words=(8, 12))
    shards = build_shards(tmp_path, documents, masking="static", packing="halves", max_seq_length=64)
    reader = ShardReader(shards.train_paths[0])
    ids = np.concatenate([batch.original_ids[batch.is_used & ~batch.is_special] for batch in reader.read()])
    entropy = shards.manifest["splits"]["train"]["unigram_entropy"]
    assert entropy == pytest.approx(entropy_of(ids), abs=1e-4)


@pytest.mark.slow
def test_examples_are_shuffled_over_and_inside_shards(
    build_shards, random_documents, read_records, tmp_path, tiny_tokenizer
):
    documents = random_documents(90)
    shards = build_shards(tmp_path, documents, num_shards=3, held_out_fraction=0.0, **WHOLE_DOCUMENTS)
    numbers = {ids: number for number, ids in enumerate(document_ids(documents, tiny_tokenizer))}
    for path in shards.train_paths:
        order = [numbers[ids] for ids in whole_ids(read_records([path]))]
        assert 15 < len(order) < 45
        assert order != sorted(order)
        assert min(order) < 30 and max(order) >= 60


@pytest.mark.slow
def test_large_corpus_is_encoded_in_batches_without_mixing_documents(
    build_shards, random_documents, read_records, tmp_path, tiny_tokenizer, monkeypatch
):
    monkeypatch.setattr(chunk_examples, "_SENTENCES_PER_BATCH", 7)
    monkeypatch.setattr("albert_tf.reading.documents.CHARACTERS_PER_CHUNK", 100)
    monkeypatch.setattr(builder, "_PIECES_IN_MEMORY", 50)
    monkeypatch.setattr(shard_writer, "_EXAMPLES_PER_BATCH", 4)
    documents = random_documents(25, num_sentences=(2, 12))
    options = WHOLE_DOCUMENTS | {"max_seq_length": 256, "masking": "static", "held_out_fraction": 0.0}
    shards = build_shards(tmp_path, documents, **options)
    assert sorted(whole_ids(read_records(shards.train_paths))) == sorted(document_ids(documents, tiny_tokenizer))


def test_every_masked_batch_draws_masks_of_its_own(build_shards, read_records, tmp_path, monkeypatch):
    monkeypatch.setattr(shard_writer, "_EXAMPLES_PER_BATCH", 1)
    same_documents = [["가 나 다 라 마 바", "사 아 자 차 카 타"]] * 20
    shards = build_shards(tmp_path, same_documents, masking="static", held_out_fraction=0.0, short_seq_prob=0.0)
    positions = {tuple(record.features["masked_lm_positions"]) for record in read_records(shards.train_paths)}
    assert len(positions) > 10


def test_shard_paths_number_shards_before_the_extension():
    assert shard_paths("data/train.tfrecord", 1) == ["data/train.tfrecord"]
    assert shard_paths("data/train.tfrecord", 2) == [
        "data/train-00000-of-00002.tfrecord",
        "data/train-00001-of-00002.tfrecord",
    ]
