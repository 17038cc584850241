"""Blocks of documents: nothing is lost, all are full, and what they stand for adds up to the text."""

import collections
import random
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.pretraining_data import records
from albert_tf.pretraining_data.full_sentences import DocumentBlocks
from albert_tf.pretraining_data.making import chunk_examples
from albert_tf.pretraining_data.making.examples import Examples
from albert_tf.pretraining_data.packing import Text
from albert_tf.pretraining_data.show import show_shard

PAD, CLS, SEP = 0, 2, 3
OPTIONS = {"packing": "document_blocks", "short_seq_prob": 0.0}


def blocks_of(lengths, max_seq_length, short_seq_prob=0.0):
    """Cuts documents of so many pieces, which are 100, 101, 102, ... and stand for 1, 2, 3, 1, ... characters."""
    ends = np.cumsum(lengths)
    documents = [np.array([end - length, end]) for end, length in zip(ends, lengths)]
    num_pieces = ends[-1]
    ids, starts = np.arange(100, 100 + num_pieces, dtype=np.int32), np.ones(num_pieces, bool)
    characters = np.resize(np.array([1, 2, 3], np.int32), num_pieces)
    packing, draws = DocumentBlocks(), random.Random(0)
    room = packing.max_num_pieces(max_seq_length)
    text = packing.arrange(Text(documents, ids, starts, characters), CLS, SEP, room, draws)
    segments = np.array(list(packing.make_segments(text, room, short_seq_prob, draws)))
    keys = np.zeros(len(segments), np.uint64)
    examples = Examples.from_segments(segments[:, :4], segments[:, 4], keys, *text[1:])
    options = packing.segments_alternate, packing.adds_separators
    return examples.padded(max_seq_length, PAD, CLS, SEP, *options), examples.num_characters


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    max_seq_length=st.integers(8, 24),
    short_seq_prob=st.sampled_from([0.0, 0.5]),
)
def test_blocks_are_full_and_put_together_again_they_are_the_documents(lengths, max_seq_length, short_seq_prob):
    rows, characters = blocks_of(lengths, max_seq_length, short_seq_prob)
    sizes = rows["input_mask"].sum(axis=1)
    documents, is_ended = [], True
    for row, size, segment_ids in zip(rows["input_ids"], sizes, rows["segment_ids"]):
        assert row[0] == CLS and not row[size:].any() and not segment_ids[size:].any()
        pieces = row[:size].tolist()
        assert segment_ids[:size].tolist() == [pieces[1 : place + 1].count(CLS) % 2 for place in range(size)]
        for place, piece in enumerate(pieces):
            if piece == CLS and (place or is_ended):
                documents.append([])
            elif piece != CLS:
                documents[-1].append(piece)
            is_ended = piece == SEP if piece != CLS else is_ended
    starts = np.cumsum([100, *lengths])
    assert documents == [[*range(start, start + size), SEP] for start, size in zip(starts, lengths)]
    if not short_seq_prob:
        # Where a [CLS] of the text would come last, it is the next block's.
        assert all(sizes[:-1] >= max_seq_length - 1)
    assert characters.sum() == np.resize([1, 2, 3], sum(lengths)).sum()


def test_a_block_stands_for_the_characters_of_its_pieces():
    rows, characters = blocks_of([5, 4], 8)
    assert rows["input_ids"].tolist() == [
        [CLS, 100, 101, 102, 103, 104, SEP, PAD],
        [CLS, 105, 106, 107, 108, SEP, PAD, PAD],
    ]
    assert characters.tolist() == [1 + 2 + 3 + 1 + 2, 3 + 1 + 2 + 3]


@pytest.fixture(scope="module")
def shards(build_shards, random_documents, tmp_path_factory):
    """Shards of random documents with a title each, and of one with an unknown word."""
    documents = [[f"뷁 {number}", *sentences] for number, sentences in enumerate(random_documents(40))]
    return build_shards(tmp_path_factory.mktemp("blocks"), documents, **OPTIONS)


def read(shards, split):
    """Returns all records of a split, feature by feature."""
    spec = records.feature_spec(32, None, DocumentBlocks.features)
    paths = {"train": shards.train_paths, "held_out": shards.held_out_paths}[split]
    return {
        name: values.numpy() for name, values in tf.io.parse_example(list(tf.data.TFRecordDataset(paths)), spec).items()
    }


def test_syllables_are_counted_however_they_are_spelled():
    texts = ["한글 둘", unicodedata.normalize("NFD", "한글 둘"), "ㅋㅋ"]
    assert len(texts[1]) == 10
    assert chunk_examples._characters_of_pieces(texts, np.array([0, 2, 4, 5])).tolist() == [2, 2, 2, 2, 2]


def test_manifest_knows_how_many_characters_there_are_and_what_knows_pieces_alone_would_lose(shards):
    text = (shards.folder.parent / "corpus.txt").read_text()
    splits = shards.manifest["splits"]
    lines = text.replace("\n", "")
    assert sum(split["characters"] for split in splits.values()) == len(lines)
    assert shards.manifest["features"] == {"num_characters": 1}
    assert shards.manifest["max_seq_length"] == 32
    for name, split in splits.items():
        assert split["masking"] == "none" and split["share_unused_tokens"] == 0 and "share_masked" not in split
        found = read(shards, name)
        assert found["num_characters"].sum() == split["characters"]
        pieces = found["input_ids"][found["input_mask"] == 1]
        num_documents = (pieces == CLS).sum()
        assert split["mean_documents_per_example"] == pytest.approx(num_documents / split["examples"], abs=0.005)
        assert "unigram_entropy" in split or name == "train"
        if name == "held_out":
            counts = np.array(list(collections.Counter(pieces[pieces != CLS].tolist()).values()))
            shares = counts / counts.sum()
            assert split["unigram_entropy"] == pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-4)


def test_shards_are_shown_without_masks(shards, capsys):
    show_shard(shards.held_out_paths[0], 2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(": without masks, for each piece can be predicted from those before it")
    text = "\n".join(lines)
    found = read(shards, "held_out")
    row = found["segment_ids"][0, : found["input_mask"][0].sum()]
    first_example = lines[lines.index("") + 2 : lines.index("", lines.index("") + 1)]
    shown = [line[0] for line in first_example if line[0] != " "]
    assert shown == ["AB"[each] for each in row[np.append(True, np.diff(row) != 0)]]
    assert "to predict" not in text and "[MASK]" not in text and "label" not in text
