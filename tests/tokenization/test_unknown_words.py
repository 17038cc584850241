"""Words that a vocabulary can't spell are counted and named."""

import numpy as np

from albert_tf.base.texts import advice
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.unknown_words import describe_unknown_words, find_unknown_words, holds_unknown

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "최고", "##예요", "좋다", "."]


def tokenizer():
    return KoreanWordPieceTokenizer(Vocabulary(PIECES))


def test_inputs_are_counted_once_and_their_words_named_as_they_were_written():
    inputs = [("최고예요😀.",), ("좋다",), ("쓰레기다 NO😀", "좋다 쓰레기다"), ("좋다", "최고예요")]
    assert find_unknown_words(tokenizer(), inputs) == (
        2,
        ["최고예요😀", "쓰레기다", "NO😀"],
        list("😀쓰레기다최고예요NO"),
    )
    assert describe_unknown_words(tokenizer(), inputs, "in train.tsv") == (
        "warning: 2 of 4 examples in train.tsv hold a word that the vocabulary can't spell, which the model "
        "reads only as [UNK], such as 최고예요😀, 쓰레기다, NO😀; it lacks 😀 쓰 레 기 다 and others: such words are "
        "read with a vocabulary that holds these characters, as build_vocab.py makes one of your text"
    )


def test_advice_depends_on_what_is_lacking_and_shows_what_cannot_be_seen():
    assert advice(["👍", "\ufe0f", "\u200d", "★"]) == (
        "; it lacks 👍 U+FE0F U+200D ★: put a space on each side of such a character, and the rest of the word is read"
    )
    for characters, may_add_spaces in ((["뷁"], True), (["👍", "뷁"], True), (["👍"], False)):
        text = advice(characters, may_add_spaces)
        assert "space" not in text and "build_vocab.py" in text
    assert advice([]) == ""


def test_spaces_around_what_the_vocabulary_lacks_keep_the_rest_of_the_word():
    vocabulary = Vocabulary(
        [*PIECES, *(each for character in "최고예요좋다" for each in (character, f"##{character}"))]
    )
    inputs = [("최고예요😀",), ("좋다★★",), ("좋다★",)]
    assert find_unknown_words(KoreanWordPieceTokenizer(vocabulary), inputs)[2] == ["★", "😀"]
    assert tokenizer().tokenize("최고예요😀") == ["[UNK]"]
    assert tokenizer().tokenize("최고예요 😀") == ["최고", "##예요", "[UNK]"]


def test_a_word_that_is_too_long_is_not_put_down_to_its_characters():
    spells_all = KoreanWordPieceTokenizer(Vocabulary([*PIECES, "가", "##가"]))
    assert find_unknown_words(spells_all, [("가" * 400,)]) == (1, ["가" * 30 + "..."], [])
    assert describe_unknown_words(spells_all, [("가" * 400,)], "in dev.tsv").endswith("가...")


def test_equal_texts_count_each_time_and_few_are_no_warning():
    inputs = [("좋다",)] * 299 + [("😀",)]
    assert describe_unknown_words(tokenizer(), inputs, "in dev.tsv").startswith("1 of 300 examples in dev.tsv holds a")
    assert find_unknown_words(tokenizer(), [("😀",)] * 3) == (3, ["😀"], ["😀"])


def test_long_words_are_shown_shortened_and_only_candidates_are_counted():
    assert find_unknown_words(tokenizer(), [("x" * 1000,)]) == (1, ["x" * 30 + "..."], ["x"])
    inputs = [("좋다 😀",), ("😀 " * 9,), ("좋다",)]
    features = np.array([[5, 7], [1, 1], [7, 0]])  # of the first text the end is cut off
    candidates = holds_unknown(tokenizer(), features)
    assert find_unknown_words(tokenizer(), inputs, candidates) == (1, ["😀"], ["😀"])
    assert find_unknown_words(tokenizer(), inputs, np.zeros(5, bool)) == (0, [], [])  # of windows
    assert find_unknown_words(tokenizer(), inputs, np.ones(5, bool)) == (2, ["😀"], ["😀"])


def test_what_is_spelled_or_no_character_is_not_unknown():
    assert find_unknown_words(tokenizer(), [("좋다\ud800", "최고예요"), ("",), ()]) == (0, [], [])
    assert find_unknown_words(tokenizer(), []) == (0, [], [])
    assert describe_unknown_words(tokenizer(), [("좋다",)], "in dev.tsv") is None
