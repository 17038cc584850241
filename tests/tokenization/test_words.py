"""Where normalised text splits into words: punctuation, ideographs, numbers, emoji."""

import re

import pytest
import reference
import tensorflow as tf
from text_strategies import EMOJI, EVERY_CHARACTER

from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.tokenization.wordpiece import SPLIT_DIFFERENTLY, join_words, split_words


def words_of(
    text, scheme="continuation", split_punctuation=True, split_digits=False, keep_emoji=True, split_emoji=False
):
    """Returns the words after checking that the reference gives the same."""
    settings = scheme, split_punctuation, split_digits, keep_emoji, split_emoji
    words = [word.decode() for word in split_words(tf.constant([text]), *settings)[0].numpy()]
    assert words == reference.split_words(text, *settings)
    return words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2020년에", ["2020", "년에"]),
        ("제3회 a4용지 h2o", ["제", "3", "회", "a", "4", "용지", "h", "2", "o"]),
        ("٣일 １０시", ["٣", "일", "１０", "시"]),
        ("②번 Ⅲ장 ½컵", ["②번", "Ⅲ장", "½컵"]),  # no decimal digits
    ],
)
def test_numbers_are_words_of_their_own_on_request(text, expected):
    assert words_of(text, split_digits=True) == expected
    assert words_of(text) == text.split()


@pytest.mark.parametrize(
    ("text", "split", "kept"),
    [
        ("1,000원", ["1", ",", "000", "원"], ["1,000", "원"]),
        ("3.5점", ["3", ".", "5", "점"], ["3.5", "점"]),
        ("12:30:05에", ["12", ":", "30", ":", "05", "에"], ["12:30:05", "에"]),
        ("끝1.", ["끝", "1", "."], ["끝", "1", "."]),
        (".5개", [".", "5", "개"], [".", "5", "개"]),
        ("1..2", ["1", ".", ".", "2"], ["1", "..", "2"]),
        ("3-4월", ["3", "-", "4", "월"], ["3", "-", "4", "월"]),
    ],
)
def test_punctuation_inside_numbers_is_split_as_all_other_or_not_at_all(text, split, kept):
    assert words_of(text, split_digits=True) == split
    assert words_of(text, split_digits=True, split_punctuation=False) == kept


@pytest.mark.parametrize("split_digits", [True, False])
@pytest.mark.parametrize("split_punctuation", [True, False])
def test_no_word_ends_inside_an_emoji(split_punctuation, split_digits):
    for picture in (*EMOJI, "#\ufe0f\u20e3", "*\u20e3", "‼\ufe0f"):
        words = words_of(f"가{picture}나 {picture}", "continuation", split_punctuation, split_digits)
        assert sum(picture in word for word in words) == 2


def test_emoji_are_split_as_other_characters_on_request():
    assert words_of("#\ufe0f\u20e3", keep_emoji=False) == ["#", "\ufe0f\u20e3"]
    assert words_of("1\ufe0f\u20e3", keep_emoji=False, split_digits=True) == ["1", "\ufe0f\u20e3"]


@pytest.mark.parametrize("split_digits", [True, False])
def test_every_emoji_is_a_word_of_its_own_on_request(split_digits):
    for picture in (*EMOJI, "😀", "#\ufe0f\u20e3", "*\u20e3"):
        words = words_of(f"최고{picture}{picture}요 {picture}", split_digits=split_digits, split_emoji=True)
        assert words == ["최고", picture, picture, "요", picture]


@pytest.mark.parametrize("split_punctuation", [True, False])
def test_words_before_a_space_are_marked_after_numbers_too(split_punctuation):
    words = words_of("제1 2_3 3.5 끝", "end_of_word", split_punctuation, split_digits=True)
    assert words[:3] == ["제", "1_", "2"] and words[-1] == "끝"
    assert join_words([[word] for word in words], "end_of_word") == "제1 2_3 3.5 끝"


@pytest.mark.slow
def test_ids_are_those_of_the_words_around_every_character():
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(["[UNK]", "가", "나", "##나", "-"]))
    texts = [f"가{character}나 가-나" for character in EVERY_CHARACTER]
    # One text of the others would send all the texts that are encoded with it the slower way.
    plain = [text for text in texts if not re.search(SPLIT_DIFFERENTLY, text)]
    assert 0 < len(texts) - len(plain) < 20
    for part in (plain, texts):
        ids = tokenizer.encode_ids(part).to_list()
        expected = tokenizer.encode_words(part).merge_dims(1, 2).to_list()
        assert [text for text, actual, wanted in zip(part, ids, expected) if actual != wanted] == []
