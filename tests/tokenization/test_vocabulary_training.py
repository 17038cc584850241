"""Learning a vocabulary: words counted and cut before josa, exact size, merges from the most frequent on."""

import collections
import random
import sys

import numpy as np
import pytest
from reference import ReferenceTokenizer
from text_strategies import SCHEMES

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.tokenization.vocabulary_training import (
    BORDER,
    MorphemeBorders,
    count_words,
    join_counts,
    required_characters,
    sample_numbers,
    standalone_characters,
    take_numbers,
    train_vocabulary,
)
from albert_tf.tokenization.wordpiece import WordPiece

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LINES = ["영화는 재미있다.", "영화를 보았다!", "재미있는 영화였다ㅋㅋ", "나는 ABC_를 #태그로 적었다", "漢字 영화"] * 3


def train(lines, vocab_size=300, wordpiece_scheme="continuation", num_unused=2, min_frequency=2, **settings):
    counts = count_words(lines, wordpiece_scheme=wordpiece_scheme, **settings)
    standalone = standalone_characters(set().union(*counts), wordpiece_scheme=wordpiece_scheme, **settings)
    return train_vocabulary(
        counts,
        vocab_size,
        wordpiece_scheme,
        num_unused=num_unused,
        min_frequency=min_frequency,
        standalone=standalone,
    )


def real_pieces(vocabulary):
    return [vocabulary.pieces[i] for i in vocabulary.real_piece_ids]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("vocab_size", [80, 100, 1_000])
def test_size_is_exact_and_reserved_pieces_come_first(scheme, vocab_size):
    pieces = train(LINES, vocab_size, scheme).pieces
    assert len(pieces) == len(set(pieces)) == vocab_size
    assert pieces[:7] == [*SPECIAL_TOKENS, "[unused0]", "[unused1]"]
    num_unused = sum(piece.startswith("[unused") for piece in pieces)
    assert pieces[5 : 5 + num_unused] == [f"[unused{i}]" for i in range(num_unused)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_character_is_known_wherever_it_stands(scheme):
    tokenizer = KoreanWordPieceTokenizer(train(LINES, wordpiece_scheme=scheme), wordpiece_scheme=scheme)
    characters = {character for line in LINES for character in line.lower()}
    for character in characters - {" "}:
        text = f"{character} {character}가 가{character}".replace("가", "영")
        assert "[UNK]" not in tokenizer.tokenize(text), text


def test_merges_come_from_the_most_frequent_on():
    """가-나 stands 15 times, 가나-다 5, 라-마 3 times and 바-사 once, which is not enough."""
    counts = collections.Counter({"가나": 10, "가나다": 5, "라마": 3, "바사": 1})
    pieces = real_pieces(train_vocabulary(counts, 50, num_unused=0))
    assert pieces == [
        *"가나다라마바사",
        *(f"##{character}" for character in "가나다라마바사"),
        "가나",
        "가나다",
        "라마",
    ]


def test_pieces_inside_words_are_merged_apart_from_those_that_begin_words():
    counts = collections.Counter({"나다": 9, "가나다": 5})
    pieces = real_pieces(train_vocabulary(counts, 50, num_unused=0, prune=False))
    assert pieces[6:] == ["나다", "##나다", "가나다"]


def test_end_of_word_pieces_carry_their_mark():
    counts = collections.Counter({"영화는_": 9, "나는_": 4, "는": 1})
    assert real_pieces(train_vocabulary(counts, 50, "end_of_word", num_unused=0, prune=False)) == [
        *"_나는영화",
        "는_",
        "영화",
        "영화는_",
        "나는_",
    ]


def test_only_the_most_frequent_characters_are_kept():
    counts = collections.Counter({"가": 9, "나": 8, "다": 1, "가다": 1})
    pieces = real_pieces(train_vocabulary(counts, 20, limit_alphabet=2, num_unused=0, min_frequency=1))
    assert pieces == ["가", "나", "##가", "##나"]


def test_least_frequency_of_merges():
    counts = collections.Counter({"가나": 3, "다라": 2})
    assert real_pieces(train_vocabulary(counts, 20, num_unused=0, min_frequency=3))[8:] == ["가나"]


def test_words_of_one_character_need_no_merges():
    assert real_pieces(train(["가", "나"])) == ["가", "나", "##가", "##나"]


@pytest.mark.parametrize(
    ("word", "scheme"), [("[MASK]", "continuation"), ("[unused1]", "end_of_word"), ("##b", "continuation")]
)
def test_merges_never_spell_special_tokens_or_pieces_inside_words(word, scheme):
    """Merging whole words, which are frequent here, would spell them."""
    settings = {"wordpiece_scheme": scheme, "lower_case": False, "split_punctuation": False}
    tokenizer = KoreanWordPieceTokenizer(train([word] * 9 + ["b##b"] * 9, **settings), **settings)
    pieces = tokenizer.tokenize(word)
    assert len(pieces) > 1 and "[UNK]" not in pieces
    assert tokenizer.decode([tokenizer.vocabulary.id_of(piece) for piece in pieces]) == word


def test_characters_for_private_use_are_characters_like_others():
    counts = collections.Counter({"가\U000f0000나": 5, "다\U000f0000나": 4})
    pieces = real_pieces(train_vocabulary(counts, 40, num_unused=0, prune=False))
    assert pieces[8:] == ["##\U000f0000나", "가\U000f0000나", "다\U000f0000나"]


@pytest.mark.parametrize(("scheme", "least"), [("continuation", 5 + 2 + 6), ("end_of_word", 5 + 2 + 3)])
def test_size_too_small_for_the_alphabet_is_refused(scheme, least):
    assert len(train(["가나다"], least, scheme)) == least
    with pytest.raises(InputError, match=rf"`vocab_size={least - 1}` can't hold .* raise it to at least {least},"):
        train(["가나다"], least - 1, scheme)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_pieces_that_the_text_does_not_use_make_room_for_the_next_merges(scheme, sample_corpus):
    with open(sample_corpus[0], encoding="utf-8") as file:
        lines = file.read().split("\n")
    counts = count_words(lines, wordpiece_scheme=scheme)
    trained = {
        prune: train_vocabulary(counts, 2_000, scheme, num_unused=1, prune=prune).pieces for prune in (True, False)
    }
    unused = {}
    for prune, pieces in trained.items():
        tokenizer = ReferenceTokenizer(pieces, scheme)
        used = {piece for line in lines for piece in tokenizer.tokenize(line)}
        unused[prune] = [piece for piece in pieces[6:] if len(piece.removeprefix("##")) > 1 and piece not in used]
    assert len(trained[True]) == len(trained[False]) == 2_000
    assert unused[False] and not unused[True]
    # What is kept comes in the same order, and what was used before is kept, or made useless by what came in.
    kept = [piece for piece in trained[False] if piece in trained[True]]
    assert trained[True][: len(kept)] == kept
    assert trained[True][5:7] == ["[unused0]", trained[False][6]]


def test_pruned_vocabulary_of_a_small_text_is_filled_up():
    """Two merges make 가나다 of its characters; nothing is left to replace the first of them."""
    pieces = train_vocabulary(collections.Counter({"가나다": 9}), 20, num_unused=0).pieces
    assert pieces[5:] == [*(f"[unused{i}]" for i in range(8)), *"가나다", "##가", "##나", "##다", "가나다"]


def test_required_characters_are_pieces():
    counts = count_words(["가나 漢字"])
    assert required_characters("frequent") == set()
    basic, everything = required_characters("basic"), required_characters("all")
    common = required_characters("ks_x_1001")
    assert basic < common < everything and len(common - basic) == 2350
    assert set("가힝") <= common and not set("힣뷁꺆곷") & common
    assert basic == {chr(code) for code in range(0x21, 0x7F) if not chr(code).isupper()} | {
        chr(code) for code in range(0x3131, 0x318F) if code != 0x3164
    }
    assert everything - basic == {chr(code) for code in range(0xAC00, 0xD7A4)}
    assert set("ABZ") < required_characters("basic", lower_case=False)
    assert "\ufffd" in required_characters("basic", wordpiece_scheme="end_of_word"), "a literal _ as words hold it"
    pieces = train_vocabulary(counts, 400, num_unused=0, required=basic).pieces
    assert basic | {f"##{character}" for character in basic} | {"가", "##나", "漢", "##字"} <= set(pieces)


def test_characters_that_always_stand_alone_have_no_piece_inside_a_word():
    characters = "漢!ㅋa가1👩❤\ufe0f\u200d▲ᆯ\u0301"
    assert standalone_characters(characters) == set("漢!")
    assert standalone_characters(characters, split_punctuation=False) == set("漢")
    counts = count_words(["漢字! 좋아요❤\ufe0f 👨\u200d👩"])
    standalone = standalone_characters(set().union(*counts))
    pieces = train_vocabulary(counts, 40, num_unused=0, standalone=standalone).pieces
    assert {"漢", "字", "!", "##\ufe0f", "##👩"} <= set(pieces)
    assert not {"##漢", "##字", "##!"} & set(pieces)
    assert "[UNK]" not in KoreanWordPieceTokenizer(Vocabulary(pieces)).tokenize("좋아漢字!字요❤\ufe0f 👨\u200d👩")


def test_complete_alphabet_leaves_no_word_unknown():
    vocabulary = train_vocabulary(count_words(["가나"]), 23_000, required=required_characters("all"))
    tokenizer = KoreanWordPieceTokenizer(vocabulary)
    assert "[UNK]" not in tokenizer.tokenize("똠방각하 펲시콜라 ㅋㅋㅠㅠ ㄳ! Hello~ 뷁쀍")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("length", [85, 86, 201])
def test_long_runs_give_no_piece_that_the_tokenizer_cannot_hold(scheme, prune, length):
    run, word = "ㅋ" * length, "".join(random.Random(1).choices("ABCDEFGHabcdefgh0123456789+/", k=3 * length))
    end = "_" if scheme == "end_of_word" else ""
    counts = collections.Counter({run + end: 9, word + end: 9, "영화" + end: 50})
    vocabulary = train_vocabulary(counts, 2000, scheme, prune=prune)
    assert len(vocabulary) == 2000
    WordPiece(vocabulary, scheme)
    longest = max(len(piece.removeprefix("##").encode()) for piece in vocabulary.pieces)
    assert longest <= 256
    if length == 85:
        assert longest == 255 + len(end)


def test_vocabulary_with_a_piece_that_is_too_long_is_refused():
    pieces = ["[UNK]", "a", "##" + "b" * 256]
    WordPiece(Vocabulary(pieces, "vocab.txt"), "continuation")
    with pytest.raises(InputError, match=r"vocab\.txt, line 4: the piece has more than 256 bytes"):
        WordPiece(Vocabulary([*pieces, "##" + "b" * 257], "vocab.txt"), "continuation")


def test_words_are_counted_as_the_tokenizer_splits_them():
    lines = ["가나 다.", "가나", "\u3000ABC  가나\0 "]
    assert count_words(lines) == {"가나": 3, "다": 1, ".": 1, "abc": 1}
    assert count_words(lines, lower_case=False, split_punctuation=False) == {"가나": 3, "다.": 1, "ABC": 1}
    assert count_words(lines, wordpiece_scheme="end_of_word") == {"가나": 2, "가나_": 1, "다": 1, ".": 1, "abc_": 1}


def test_words_are_counted_over_many_lines():
    assert count_words(str(i % 3) for i in range(20_000)) == {"0": 6667, "1": 6667, "2": 6666}


@pytest.mark.parametrize(("total", "size"), [(0, 5), (4, 5), (5, 5)])
def test_short_text_is_taken_whole(total, size):
    numbers, num_lines = sample_numbers(map(str, range(total)), size)
    assert numbers.tolist() == list(range(total)) and num_lines == total


@pytest.mark.parametrize(("total", "size"), [(6, 5), (20_000, 1), (20_000, 9_000)])
def test_sample_has_its_size_and_no_line_twice(total, size):
    numbers, num_lines = sample_numbers(map(str, range(total)), size)
    assert len(set(numbers.tolist())) == len(numbers) == size and num_lines == total
    assert (np.diff(numbers) > 0).all() and numbers[0] >= 0 and numbers[-1] < total


def test_every_line_is_as_likely():
    """3 of 10 lines, 4,000 times: each is drawn 1,200 times on average, with a standard deviation of 29."""
    drawn = collections.Counter(n for seed in range(4_000) for n in sample_numbers("0123456789", 3, seed)[0].tolist())
    assert all(1_200 - 5 * 29 < drawn[number] < 1_200 + 5 * 29 for number in range(10))


def test_lines_of_the_sample_are_taken():
    assert list(take_numbers(iter("가나다라마"), np.array([0, 2, 3]))) == ["가", "다", "라"]
    assert list(take_numbers("가나", np.array([], int))) == []


def test_rarest_words_are_forgotten_where_there_are_too_many():
    """Batches have 8,192 lines, each with a word of its own: after the second there are 16,384 such words."""
    reports = []
    counts = count_words((f"자주 {i}" for i in range(20_000)), max_different_words=10_000, report=reports.append)
    assert counts == {"자주": 20_000, **{str(i): 1 for i in range(16_384, 20_000)}}
    assert reports == ["forgot 16,384 of 16,385 different words, those seen less than 2 times so far"]


def test_texts_are_joined_as_the_shares_that_they_are_to_be():
    large, small = collections.Counter(a=600, b=300), collections.Counter(b=40, c=60)
    joined = join_counts([large, small], [0.5, 0.5])
    assert joined == {"a": 600, "b": 300 + 360, "c": 540}
    assert join_counts([large, small], [0.9, 0.1]) == large + small


@pytest.fixture(scope="module")
def borders():
    pytest.importorskip("kiwipiepy")
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
    pytest.importorskip("kiwipiepy")
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
