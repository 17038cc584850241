"""A chunk of text becomes the examples that the options ask for; nothing of it is lost unseen."""

import collections
import hashlib

import numpy as np
import pytest

from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions, ExampleMaker
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.reading.documents import Documents, digest_fraction
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary


def documents_of(texts, chunk_id=(0, 0)):
    digests = [hashlib.sha256("\n".join(lines).encode()).digest() for lines in texts]
    return Documents(chunk_id, texts, digests, digests)


@pytest.fixture(scope="module")
def make(tiny_tokenizer):
    """Makes examples: split name to a list of (first, second, label) as pieces, and the counts."""

    def run(texts, chunk_id=(0, 0), tokenizer=None, **options):
        defaults = {"max_seq_length": 32, "held_out_fraction": 0.0, "short_seq_prob": 0.0}
        tokenizer = tokenizer or tiny_tokenizer
        options = BuilderOptions(masking_options=MaskingOptions(5), **(defaults | options))
        examples, counts = ExampleMaker(tokenizer, options).make(documents_of(texts, chunk_id))
        return {split: as_lists(columns, tokenizer) for split, columns in examples.items()}, counts

    return run


def as_lists(examples, tokenizer):
    pieces = np.array(tokenizer.vocabulary.pieces)[examples.ids].tolist()
    rows = []
    for first, second, label in zip(examples.first_lengths, examples.second_lengths, examples.labels):
        rows.append((pieces[:first], pieces[first : first + second], int(label)))
        pieces = pieces[first + second :]
    assert not pieces
    return rows


def test_sentences_without_a_piece_and_unknown_words_are_counted(make):
    examples, counts = make([["가나 다", "\u200b", "뷁 라."], ["\u200b"], ["마"]])
    [(first, second, label)] = examples["train"]
    earlier, later = (second, first) if label else (first, second)
    assert earlier in (["가"], ["가", "##나"]) and later in (["[UNK]"], ["[UNK]", "라"])
    expected = {
        "documents": 3,
        "one_sentence_documents": 1,
        "sentences": 3,
        "words": 6,
        "tokens": 7,
        "unknown_words": 2,
    }
    assert {name: counts[name] for name in expected} == expected
    # The document of one sentence is in no example, and of the other two the end is cut off.
    assert counts["train_tokens"] == 7
    assert counts["train_unused_tokens"] == 7 - len(first) - len(second)


@pytest.mark.parametrize("packing", ["document_sentences", "full_sentences"])
def test_huge_sentence_is_split_between_words_and_kept(make, packing):
    words = ["가나다"] * 500
    examples, counts = make([[" ".join(words)]], packing=packing)
    assert counts["split_sentences"] == 1
    assert counts["train_unused_tokens"] == 0
    assert [(len(first), len(second)) for first, second, _ in examples["train"]] == [(30, 0)] * 50
    assert all("".join(first).replace("##", "") == "가나다" * 10 for first, _, _ in examples["train"])


@pytest.mark.parametrize("packing", ["order", "next"])
def test_parts_of_a_huge_sentence_make_pairs(make, packing):
    examples, counts = make([[" ".join(["가나다"] * 500)]], packing=packing)
    assert counts["split_sentences"] == 1
    assert counts["train_unused_tokens"] < 0.35 * 1500
    for first, second, _ in examples["train"]:
        # Parts begin with a word.
        assert first[0] == second[0] == "가"
        assert len(first) + len(second) <= 29


def test_only_what_does_not_fit_is_split_a_long_word_inside(make):
    examples, counts = make([["가" + "나" * 99, "다 " * 30, "라"]], packing="document_sentences")
    assert [len(first) for first, _, _ in examples["train"]] == [30, 30, 30, 10, 30, 1]
    assert counts["train_unused_tokens"] == 0
    assert counts["split_sentences"] == 1


def test_full_sentences_run_on_across_documents_with_a_separator(make):
    texts = [["가 나 다", "라 마"], ["바 사", "아"], ["자 차 카"]]
    examples, counts = make(texts, packing="full_sentences")
    [(first, second, label)] = examples["train"]
    assert first == ["가", "나", "다", "라", "마", "[SEP]", "바", "사", "아", "[SEP]", "자", "차", "카"]
    assert (second, label) == ([], 0)
    assert counts["train_unused_tokens"] == 0


def test_full_sentences_neither_begin_nor_end_with_the_separator(make):
    texts = [["가 나 다 라", "마 바 사"]] * 30
    examples, _ = make(texts, packing="full_sentences", max_seq_length=16)
    for first, second, _ in examples["train"]:
        assert "[SEP]" not in (first[0], first[-1])
        assert len(first) <= 14 and not second
    pieces = collections.Counter(piece for first, _, _ in examples["train"] for piece in first if piece != "[SEP]")
    assert pieces == dict.fromkeys("가나다라마바사", 30)


@pytest.mark.parametrize("packing", ["next", "full_sentences"])
def test_no_split_borrows_from_the_other(make, packing):
    texts = [
        [f"{name} {name} {name}", f"{name} {name}", f"{name} {name} {name} {name}"]
        for name in "가나다라마바사아자차카타파하"
    ]
    examples, _ = make(texts, packing=packing, held_out_fraction=0.5, dupe_factor=10)
    pieces = {
        split: {piece for first, second, _ in rows for piece in (*first, *second)} - {"[SEP]"}
        for split, rows in examples.items()
    }
    assert pieces["train"] and pieces["held_out"]
    assert pieces["train"].isdisjoint(pieces["held_out"])


def test_same_document_falls_to_the_same_side_wherever_it_stands_with_any_seed(make, random_documents):
    texts = random_documents(60, num_sentences=(2, 4), seed=3)

    def held_out_texts(order, chunk_id, random_seed):
        options = {"max_seq_length": 200, "held_out_fraction": 0.3, "packing": "document_sentences"}
        examples, _ = make([texts[i] for i in order], chunk_id, random_seed=random_seed, **options)
        return sorted("".join(sorted([*first, *second])) for first, second, _ in examples["held_out"])

    forwards = held_out_texts(range(60), (0, 0), 1)
    assert 8 < len(forwards) < 30
    assert held_out_texts(range(59, -1, -1), (3, 7), 2) == forwards


def test_held_out_share_is_that_of_a_uniform_hash():
    fractions = np.array([digest_fraction(hashlib.sha256(str(number).encode()).digest()) for number in range(20_000)])
    for share in (0.01, 0.05, 0.5):
        standard_error = np.sqrt(share * (1 - share) / len(fractions))
        assert abs((fractions < share).mean() - share) < 3 * standard_error


def test_order_labels_tell_order_and_nothing_else(make):
    # Sentence i of each document holds only syllable i: the earlier segment has the smaller ones.
    syllables = "가나다라마바사아"
    texts = [[f"{syllable} {syllable}" for syllable in syllables]] * 500
    examples, _ = make(texts, max_seq_length=12)
    for first, second, label in examples["train"]:
        in_order = syllables.index(first[-1]) < syllables.index(second[0])
        assert in_order == (label == 0)


def test_examples_follow_from_seed_and_place_alone(make, random_documents):
    texts = random_documents(20)
    options = {"random_seed": 1, "dupe_factor": 2, "short_seq_prob": 0.5}
    first = make(texts, **options)
    make(texts[:5], (5, 5))
    assert make(texts, **options) == first
    assert make(texts, (0, 1), **options) != first
    assert make(texts, **options | {"random_seed": 2}) != first


def test_keys_are_random_over_all_bits(tiny_tokenizer, random_documents):
    maker = ExampleMaker(tiny_tokenizer, BuilderOptions(16, MaskingOptions(2), dupe_factor=20))
    examples, _ = maker.make(documents_of(random_documents(200)))
    keys = examples["train"].keys
    assert len(keys) > 5000
    assert len(np.unique(keys)) == len(keys)
    for bit in (0, 1, 31, 32, 62, 63):
        share = ((keys >> np.uint64(bit)) & np.uint64(1)).mean()
        assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(len(keys))


def test_end_of_word_scheme_knows_where_words_start():
    pieces = [*SPECIAL_TOKENS, "가", "나", "가_", "나_"]
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(pieces), wordpiece_scheme="end_of_word")
    options = BuilderOptions(32, MaskingOptions(5), held_out_fraction=0.0, packing="document_sentences")
    examples, _ = ExampleMaker(tokenizer, options).make(documents_of([["가나 나가가 나", "나나"]]))
    columns = examples["train"]
    assert [pieces[i] for i in columns.ids] == ["가", "나_", "나", "가", "가_", "나", "나", "나"]
    assert (columns.pieces >> 31).tolist() == [1, 0, 1, 0, 0, 1, 1, 0]
