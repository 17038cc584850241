"""Packings cut texts between words, but not inside of a mention where there is another place."""

import dataclasses
import hashlib
import itertools
import random

import numpy as np
import pytest

from albert_tf.pretraining_data import PACKINGS
from albert_tf.pretraining_data.entities import NameList
from albert_tf.pretraining_data.making.builder import build
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions, ExampleMaker
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.pretraining_data.show import ShardReader, show_shard
from albert_tf.reading.documents import CorpusReader, Documents

OPTIONS = BuilderOptions(32, MaskingOptions(5), short_seq_prob=0.0, held_out_fraction=0.0)
NAME = "가 나 다 라 마 바"
OF_PAIRS = ("next", "order")  # a segment ends wherever the drawn length says
OF_WHOLE_SENTENCES = ("document_sentences", "full_sentences", "halves")


def named(tokenizer, name, options):
    """Returns a list of one name, and options that go with it; None and the same options for no name."""
    if not name:
        return None, options
    names = NameList.from_rows([(name, "")], tokenizer)
    return names, dataclasses.replace(options, names_sha256=names.sha256, num_names=1)


@pytest.fixture
def segments_of(tiny_tokenizer):
    """Makes examples of documents; returns each segment as its units: pieces, and whether they lie in a mention."""

    def segments(documents, name=NAME, **options):
        names, options = named(tiny_tokenizer, name, dataclasses.replace(OPTIONS, **options))
        digests = [hashlib.sha256("\n".join(lines).encode()).digest() for lines in documents]
        maker = ExampleMaker(tiny_tokenizer, options, names)
        examples, _ = maker.make(Documents((0, 0), documents, digests, digests))
        examples = examples["train"]
        pieces = np.array(tiny_tokenizer.vocabulary.pieces)[examples.ids]
        starts, in_mention = examples.pieces >> 31 == 1, examples.pieces >> 30 & 1 == 1
        lengths = np.stack([examples.first_lengths, examples.second_lengths], axis=1).ravel()
        ends = np.cumsum(lengths)
        for begin, end in zip(ends - lengths, ends):
            borders = [*np.flatnonzero(starts[begin:end]) + begin, end]
            if begin == end:  # there is no second segment
                continue
            yield [(pieces[a:b].tolist(), set(in_mention[a:b].tolist())) for a, b in itertools.pairwise(borders)]

    return segments


def documents_of(num_documents, seed):
    """Documents of sentences of 14 to 60 words, of which six in the middle are a name."""
    draw = random.Random(seed)

    def sentence():
        sides = [" ".join(["하"] * draw.randint(4, 27)) for _ in range(2)]
        return f"{sides[0]} {NAME}하 {sides[1]}"

    return [[sentence() for _ in range(draw.randint(3, 6))] for _ in range(num_documents)]


@pytest.mark.parametrize("packing", OF_WHOLE_SENTENCES)
def test_mentions_stay_whole(segments_of, packing):
    documents = documents_of(40, seed=3)
    units = [unit for segment in segments_of(documents, packing=packing) for unit in segment]
    mentions = [" ".join(pieces) for pieces, in_mention in units if in_mention == {True}]
    assert mentions == [NAME] * sum(map(len, documents))
    assert all(len(in_mention) == 1 for _, in_mention in units)
    assert [pieces for pieces, _ in units if "##하" in pieces] == [["##하"]] * len(mentions)


@pytest.mark.parametrize("packing", OF_PAIRS)
def test_mentions_of_pairs_are_whole_but_for_where_a_segment_ends(segments_of, packing):
    segments = list(segments_of(documents_of(40, seed=3), packing=packing))
    assert len(segments) > 100
    for segment in segments:
        mentions = [" ".join(pieces) for pieces, in_mention in segment if in_mention == {True}]
        if segment[-1][1] == {True}:
            assert NAME.startswith(mentions.pop())
        assert set(mentions) <= {NAME}


@pytest.mark.parametrize("packing", [*OF_WHOLE_SENTENCES, *OF_PAIRS])
def test_mention_that_has_to_be_cut_is_cut_between_its_words(segments_of, packing):
    name = " ".join(["가나다라"] * 8)
    documents = [["하 " * number + name for number in range(6)]] * 3
    segments = list(segments_of(documents, name, packing=packing))
    assert len(segments) > 5
    parts = [pieces for segment in segments for pieces, in_mention in segment if in_mention == {True}]
    assert len(parts) > 5 and {pieces[0] for pieces in parts} == {"가"}


@pytest.mark.parametrize("packing", [*OF_WHOLE_SENTENCES, *OF_PAIRS])
def test_names_that_are_nowhere_change_nothing(segments_of, random_documents, packing):
    documents = random_documents(30, num_words=(1, 40))
    plain, with_name = (list(segments_of(documents, name, packing=packing)) for name in ("", "가나다라마바사아"))
    assert plain == with_name


@pytest.mark.parametrize("num_words", [1, 7, 16])
@pytest.mark.parametrize("packing", sorted(name for name, packing in PACKINGS.items() if packing.masks_pieces))
def test_manifest_counts_mentions_as_a_reader_does(tmp_path, write_corpus, tiny_tokenizer, packing, num_words):
    name = " ".join(["가나"] * num_words)
    documents = [[text.replace(NAME, name) for text in document] for document in documents_of(20, seed=5)]
    path = write_corpus(tmp_path / "corpus.txt", [*documents, [f"{name}하", f"{name}하"]])
    names, options = named(tiny_tokenizer, name, dataclasses.replace(OPTIONS, packing=packing, masking="static"))
    shard = str(tmp_path / "data" / "train.tfrecord")
    train = build(CorpusReader([path]), tiny_tokenizer, options, [shard], [], names=names)["splits"]["train"]
    batches = list(ShardReader(shard).read())
    assert train["mentions"] == sum((batch.in_mention & batch.word_starts).sum() for batch in batches) > 0
    num_pieces = sum(batch.is_used.sum() for batch in batches)
    assert train["share_in_mentions"] == round(sum(batch.in_mention.sum() for batch in batches) / num_pieces, 4)


def test_mentions_too_long_to_be_masked_have_no_share_of_what_is_masked(capsys, tmp_path, write_corpus, tiny_tokenizer):
    path = write_corpus(tmp_path / "corpus.txt", [[NAME]] * 20)
    options = dataclasses.replace(OPTIONS, packing="document_sentences", masking="static")
    names, options = named(tiny_tokenizer, NAME, options)
    shard = str(tmp_path / "data" / "train.tfrecord")
    train = build(CorpusReader([path]), tiny_tokenizer, options, [shard], [], names=names)["splits"]["train"]
    assert train["share_masked"] == 0.0 and train["mentions"] == 20
    assert "share_of_masked_in_mentions" not in train
    show_shard(shard, 1)
    assert "0.00% of the pieces to predict" in capsys.readouterr().out
