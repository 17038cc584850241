"""What the optional steps of normalisation do: squeezing repeats, full-width forms, emoji sequences."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from text_strategies import ANY_TEXT, EMOJI, EVERY_CHARACTER, characters_and_spans, normalized_alike

from albert_tf.tokenization.normalization import NormalizationOptions, normalize
from albert_tf.tokenization.offsets import Offsets

ALL_OPTIONS = [NormalizationOptions(*switches) for switches in itertools.product([True, False], repeat=5)]
FAMILY = "👨\u200d👩\u200d👧"
RUNNER = "🏃🏽\u200d♀\ufe0f"
BURNING_HEART = "❤\ufe0f\u200d🔥"
SCOTLAND = "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"


def normalized(text, **switches):
    return normalized_alike(text, NormalizationOptions(**switches))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ㅋㅋㅋㅋㅋ", "ㅋㅋ"),
        ("ㅋㅋ ㅠ", "ㅋㅋ ㅠ"),
        ("대박!!!!", "대박!!"),
        ("음......?!?!?!", "음..?!?!?!"),
        ("하하하하하", "하하"),
        ("♥♥♥👍👍👍👍", "♥♥👍👍"),
        ("10000원", "10000원"),
        ("１０００ ②②② ⅢⅢⅢ", "１０００ ②②② ⅲⅲⅲ"),
        ("www.aaa.com III", "www.aaa.com iii"),
        ("ㅋㅋㅋㅎㅎㅎㅋㅋㅋ", "ㅋㅋㅎㅎㅋㅋ"),
        ("!! ! !!!", "!! ! !!"),
        ("ㅋ\u200bㅋ\u200bㅋ", "ㅋㅋ"),
        ("ᄒ\u1161ᄒ\u1161ᄒ\u1161", "하하"),
        ("哈哈哈 かかか", "哈哈哈 かかか"),
    ],
)
def test_repeats_are_squeezed_to_two_where_they_mean_nothing(text, expected):
    assert normalized(text, squeeze_repeats=True) == expected


def test_repeats_of_different_texts_do_not_meet():
    texts = tf.constant([["ㅋ", "ㅋㅋ"], ["ㅋㅋㅋ", ""]])
    expected = [["ㅋ", "ㅋㅋ"], ["ㅋㅋ", ""]]
    squeezed = normalize(texts, NormalizationOptions(squeeze_repeats=True)).numpy().tolist()
    assert [[text.decode() for text in row] for row in squeezed] == expected


@pytest.mark.slow
def test_implementations_agree_on_every_character():
    for begin in range(0, len(EVERY_CHARACTER), 5_000):
        text = "".join(f"{character * 3}a." for character in EVERY_CHARACTER[begin : begin + 5_000])
        normalized(text, squeeze_repeats=True, full_width_to_ascii=True)


def test_full_width_characters_become_ascii():
    wide = "".join(map(chr, range(0xFF01, 0xFF5F)))
    narrow = "".join(map(chr, range(0x21, 0x7F)))
    assert normalized(wide, full_width_to_ascii=True, lower_case=False) == narrow
    assert normalized(wide, lower_case=False) == wide
    # Half-width kana, the won sign and what NFKC would rewrite besides stay.
    assert normalized("Ａ１！　한글 ｶﾞ￦①ﬁ", full_width_to_ascii=True) == "a1! 한글 ｶﾞ￦①ﬁ"


def test_full_width_characters_take_part_in_all_that_follows():
    text = "Ｅ\u0301 ！！！"
    assert normalized(text, full_width_to_ascii=True, squeeze_repeats=True) == "é !!"
    assert normalized(text, full_width_to_ascii=True, strip_accents=True) == "e !!!"


@pytest.mark.parametrize(
    "text", [FAMILY, RUNNER, BURNING_HEART, SCOTLAND, *EMOJI, "‼\ufe0f", "1\ufe0f\u20e3"], ids=ascii
)
@pytest.mark.parametrize("strip_accents", [True, False])
def test_emoji_sequences_are_kept_whole(text, strip_accents):
    assert normalized(f"가{text}나 {text}{text}", strip_accents=strip_accents) == f"가{text}나 {text}{text}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("가\u200d나", "가나"),
        ("👨\u200d", "👨"),
        ("\u200d👨", "👨"),
        ("👨\u200d\u200d👩", "👨👩"),
        ("👨\u200d가", "👨가"),
        ("👨 \u200d👩", "👨 👩"),
        ("क्\u200dष", "क्ष"),
        ("가\U000e0067\U000e007f", "가"),
        ("🏴\U000e0067", "🏴"),
        (f"{FAMILY}\u200d!", f"{FAMILY}!"),
    ],
    ids=ascii,
)
def test_joiners_and_tags_elsewhere_are_removed(text, expected):
    assert normalized(text) == expected


def test_emoji_sequences_fall_apart_on_request():
    assert normalized(f"{FAMILY} {SCOTLAND} {RUNNER}", keep_emoji=False) == "👨👩👧 🏴 🏃🏽♀\ufe0f"
    assert normalized(RUNNER, keep_emoji=False, strip_accents=True) == "🏃🏽♀"


@pytest.mark.parametrize(
    ("text", "switches", "expected"),
    [
        ("ㅋㅋㅋㅋa", {"squeeze_repeats": True}, [("ㅋ", (0, 1)), ("ㅋ", (1, 4)), ("a", (4, 5))]),
        ("!\u200b!!", {"squeeze_repeats": True}, [("!", (0, 1)), ("!", (2, 4))]),
        ("ＡＢ", {"full_width_to_ascii": True}, [("a", (0, 1)), ("b", (1, 2))]),
        ("👩\u200d🚀", {}, [("👩", (0, 1)), ("\u200d", (1, 2)), ("🚀", (2, 3))]),
        ("👩\u200d🚀", {"keep_emoji": False}, [("👩", (0, 1)), ("🚀", (2, 3))]),
        ("👩\ud800\u200d🚀", {}, [("👩", (0, 1)), ("\u200d", (2, 3)), ("🚀", (3, 4))]),
    ],
    ids=ascii,
)
def test_spans_count_characters_of_the_text_as_given(text, switches, expected):
    assert characters_and_spans(text, NormalizationOptions(**switches)) == expected


@settings(max_examples=50)
@given(st.lists(ANY_TEXT, max_size=4), st.sampled_from(ALL_OPTIONS))
def test_positions_of_many_texts_equal_those_of_each(texts, options):
    expected = [[span for _, span in characters_and_spans(text, options)] for text in texts]
    counts = np.array([len(spans) for spans in expected], np.int64)
    begins, ends = Offsets(options, "continuation").spans(texts, counts)
    assert list(zip(begins.tolist(), ends.tolist())) == [span for spans in expected for span in spans]
