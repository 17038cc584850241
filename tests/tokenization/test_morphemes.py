"""Words are cut before josa and endings while a vocabulary is built, and nothing afterwards knows of it."""

import sys

import pytest

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary_training import BORDER, MorphemeBorders, count_words, train_vocabulary

pytest.importorskip("kiwipiepy")


@pytest.fixture(scope="module")
def borders():
    return {choice: MorphemeBorders(choice) for choice in ("kiwi", "noun_josa")}


@pytest.mark.parametrize(
    ("text", "kiwi", "noun_josa"),
    [
        ("나는 밥을 먹었다.", "나|는 밥|을 먹|었다.", "나|는 밥|을 먹었다."),
        ("집에서는 먹기도 했다", "집|에서는 먹|기|도 했다", "집|에서는 먹기도 했다"),
        ("나는 학생이었다", "나|는 학생|이었다", "나|는 학생이었다"),
        ("그는 어제 집에 갔다", "그|는 어제 집|에 갔다", "그|는 어제 집|에 갔다"),
        ("꽃이 예뻐서 샀다", "꽃|이 예뻐서 샀다", "꽃|이 예뻐서 샀다"),
        ("AI는 2020년에 3을", "AI|는 2020년|에 3|을", "AI|는 2020년|에 3|을"),
        ("  영화는\t😀👨‍👩‍👧 영화가", "  영화|는\t😀👨‍👩‍👧 영화|가", "  영화|는\t😀👨‍👩‍👧 영화|가"),
        ("No Hangul at all", "No Hangul at all", "No Hangul at all"),
        ("", "", ""),
    ],
)
def test_borders_are_where_josa_and_endings_begin(borders, text, kiwi, noun_josa):
    for choice, expected in (("kiwi", kiwi), ("noun_josa", noun_josa)):
        assert borders[choice].mark([text]) == [expected.replace("|", BORDER)]


def test_decomposed_text_is_cut_as_composed_text(borders):
    decomposed = "\u1112\u1161\u11ab\u1100\u1173\u11af\u110b\u1173\u11ab"  # 한글은
    assert borders["kiwi"].mark([decomposed]) == [f"한글{BORDER}은"]


def test_marks_add_nothing_but_themselves(borders, sample_corpus):
    with open(sample_corpus[0], encoding="utf-8") as file:
        lines = file.read().split("\n")[:20]
    lines += [lines[0], "\ud800는", "가" * 3000, "나는 " * 500, BORDER]
    marked = borders["kiwi"].mark(lines)
    assert [line.replace(BORDER, "") for line in marked] == [line.replace(BORDER, "") for line in lines]
    assert marked[0] == marked[20] != lines[0]


def test_words_are_counted_with_their_borders():
    lines = ["영화는 재미있다.", '"영화"는 영화는']
    assert count_words(lines, "kiwi") == {
        f"영화{BORDER}는": 2,
        f"재미있{BORDER}다": 1,
        ".": 1,
        '"': 2,
        "영화": 1,
        "는": 1,
    }
    assert count_words(lines, "kiwi", wordpiece_scheme="end_of_word", split_punctuation=False) == {
        f"영화{BORDER}는_": 1,
        f"재미있{BORDER}다.": 1,
        f'"영화"{BORDER}는_': 1,
        f"영화{BORDER}는": 1,
    }


@pytest.mark.parametrize(("scheme", "josa"), [("continuation", "##에서"), ("end_of_word", "에서_")])
def test_merges_never_cross_a_border(scheme, josa):
    words = ["집", "학교", "서울", "교실"]
    mark = "_" if scheme == "end_of_word" else ""
    counts = dict.fromkeys([f"{word}{BORDER}에서{mark}" for word in words], 9)
    pieces = train_vocabulary(counts, 60, scheme, num_unused=0).pieces
    merges = {piece for piece in pieces if not piece.startswith("[") and len(piece.removeprefix("##").rstrip("_")) > 1}
    assert merges == {josa, *words} - {"집"}


def test_nothing_else_needs_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    vocabulary = train_vocabulary(count_words(["영화는"] * 3), 30, num_unused=0)
    assert KoreanWordPieceTokenizer(vocabulary).tokenize("영화는") == ["영화는"]
    with pytest.raises(InputError, match=r"`morphemes=noun_josa` needs kiwipiepy, .* pip install kiwipiepy"):
        MorphemeBorders("noun_josa")
