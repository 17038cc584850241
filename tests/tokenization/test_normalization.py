"""Clean-up of text: TensorFlow ops, characters one by one and the reference agree, and Hangul stays composed."""

import itertools
import os
import subprocess
import sys
import unicodedata

import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st
from text_strategies import (
    ANY_TEXT,
    EMOJI,
    EVERY_CHARACTER,
    assert_characters_of,
    characters_and_spans,
    normalized_alike,
)

from albert_tf.tokenization.normalization import NormalizationOptions, normalize

OPTIONS = [NormalizationOptions(*switches) for switches in [(True, True), (True, False), (False, True), (False, False)]]
BOTH_SWITCHES_OFF = OPTIONS[-1]
ALL_OPTIONS = [NormalizationOptions(*switches) for switches in itertools.product([True, False], repeat=5)]
with_and_without_switches = pytest.mark.parametrize("options", [OPTIONS[0], BOTH_SWITCHES_OFF], ids=str)


def decomposed(text):
    return unicodedata.normalize("NFD", text)


def normalized(text, options=BOTH_SWITCHES_OFF):
    return normalized_alike(text, options)


@pytest.mark.slow
@given(ANY_TEXT, st.sampled_from(ALL_OPTIONS))
@example("ᄒ\u0301ᅡᆫ", OPTIONS[0])  # what an accent kept apart is composed once it is gone
@example(" \u0301 a", OPTIONS[0])
def test_implementations_agree_on_any_text_and_leave_normalised_text_as_it_is(text, options):
    once = normalized(text, options)
    assert normalized(once, options) == once


@pytest.mark.slow
@pytest.mark.parametrize("options", [ALL_OPTIONS[0], ALL_OPTIONS[-1]], ids=str)
def test_implementations_agree_on_every_character(options):
    for begin in range(0, len(EVERY_CHARACTER), 5_000):
        normalized("".join(f"{character * 3}a." for character in EVERY_CHARACTER[begin : begin + 5_000]), options)


@pytest.mark.slow
def test_implementations_agree_on_the_sample(sample_lines):
    lines, options = sample_lines[::4], OPTIONS[0]
    for line, expected in zip(lines, normalize(tf.constant(lines), options).numpy()):
        assert_characters_of(line, expected.decode(), options)


@with_and_without_switches
def test_every_syllable_survives_in_both_forms(options):
    syllables = "".join(map(chr, range(0xAC00, 0xD7A4)))
    assert normalized(syllables, options) == normalized(decomposed(syllables), options) == syllables


@with_and_without_switches
def test_compatibility_jamo_stay_as_they_are(options):
    for text in ("ㅋㅋㅋ", "ㅠㅠ", "ㄱㅏ", "ㅇㅈ"):
        assert normalized(text, options) == text


def test_compatibility_forms_are_kept():
    """NFKC would rewrite them."""
    for text in ("ｶﾞ", "Ａ１", "ﬁ", "①", "㈜", "ㅏ"):
        assert normalized(text) == text


@pytest.mark.parametrize(
    ("lower_case", "strip_accents", "expected"),
    [(False, False, "É한Ñ각 Ü"), (True, False, "é한ñ각 ü"), (False, True, "E한N각 U"), (True, True, "e한n각 u")],
)
@pytest.mark.parametrize("change", [str, decomposed], ids=["composed", "decomposed"])
def test_case_and_accents_are_independent(lower_case, strip_accents, expected, change):
    assert normalized(change("É한Ñ각 Ü"), NormalizationOptions(lower_case, strip_accents)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ΑΣ ΟΔΟΣ.", "ας οδος."), ("Σ", "σ"), ("ΑΣΑ", "ασα"), ("İI", "i\u0307i"), ("STRAẞE", "straße"), ("ЖЩ", "жщ")],
)
def test_lower_case_of_other_scripts(text, expected):
    assert normalized(text, NormalizationOptions(lower_case=True)) == expected


@with_and_without_switches
@pytest.mark.parametrize(
    "removed", list("\0\x01\x1f\x7f\x80\u00ad\u200b\u200c\u200d\u200e\u202e\u2060\ufeff\ufffd\U000e0041"), ids=ascii
)
def test_control_and_zero_width_characters_are_removed(removed, options):
    assert normalized(f"{removed}가{removed}나{removed}", options) == "가나"
    assert normalized(removed, options) == ""


@with_and_without_switches
@pytest.mark.parametrize(
    "space",
    [*"\t\n\v\f\r\x85\u00a0\u1680\u2000\u2007\u200a\u2028\u2029\u202f\u205f\u3000", "\r\n", " \u3000 "],
    ids=ascii,
)
def test_runs_of_spaces_become_one_space(space, options):
    assert normalized(f"{space}가{space}나{space}", options) == "가 나"
    assert normalized(space, options) == ""


def test_removed_character_does_not_part_spaces_or_jamo():
    assert normalized("가 \u200b 나") == "가 나"
    assert normalized("ᄒ\u200bᅡ\u200bᆫ") == "한"


def test_shape_of_a_tensor_is_kept():
    texts = tf.constant([["A  B"], ["\u3000"]])
    assert normalize(texts, OPTIONS[0]).numpy().tolist() == [[b"a b"], [b""]]


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("각", BOTH_SWITCHES_OFF, [("각", (0, 3))]),
        ("e\u0301e", BOTH_SWITCHES_OFF, [("é", (0, 2)), ("e", (2, 3))]),
        ("e\u0301e", OPTIONS[0], [("e", (0, 2)), ("e", (2, 3))]),
        ("ﾊé", OPTIONS[0], [("ﾊ", (0, 1)), ("e", (1, 2))]),
        ("İx", OPTIONS[1], [("i", (0, 1)), ("\u0307", (0, 1)), ("x", (1, 2))]),
        ("İx", OPTIONS[0], [("i", (0, 1)), ("x", (1, 2))]),
        ("\u200b 가 \t\u3000나 \0", BOTH_SWITCHES_OFF, [("가", (2, 3)), ("나", (6, 7))]),
        ("ᄒ\u200bᅡ", BOTH_SWITCHES_OFF, [("하", (0, 3))]),
        ("ᄒ\u0301ᅡ", OPTIONS[0], [("하", (0, 3))]),
        ("ㅋㅋㅋㅋa", NormalizationOptions(squeeze_repeats=True), [("ㅋ", (0, 1)), ("ㅋ", (1, 4)), ("a", (4, 5))]),
        ("!\u200b!!", NormalizationOptions(squeeze_repeats=True), [("!", (0, 1)), ("!", (2, 4))]),
        ("ＡＢ", NormalizationOptions(full_width_to_ascii=True), [("a", (0, 1)), ("b", (1, 2))]),
        ("👩\u200d🚀", OPTIONS[1], [("👩", (0, 1)), ("\u200d", (1, 2)), ("🚀", (2, 3))]),
        ("👩\u200d🚀", NormalizationOptions(keep_emoji=False), [("👩", (0, 1)), ("🚀", (2, 3))]),
        ("👩\ud800\u200d🚀", OPTIONS[1], [("👩", (0, 1)), ("\u200d", (2, 3)), ("🚀", (3, 4))]),
    ],
    ids=ascii,
)
def test_spans_count_characters_of_the_text_as_given(text, options, expected):
    assert characters_and_spans(text.replace("각", decomposed("각")), options) == expected


FAMILY = "👨\u200d👩\u200d👧"
RUNNER = "🏃🏽\u200d♀\ufe0f"
BURNING_HEART = "❤\ufe0f\u200d🔥"
SCOTLAND = "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"


def switched(text, **switches):
    return normalized(text, NormalizationOptions(**switches))


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
    assert switched(text, squeeze_repeats=True) == expected


def test_repeats_of_different_texts_do_not_meet():
    texts = tf.constant([["ㅋ", "ㅋㅋ"], ["ㅋㅋㅋ", ""]])
    expected = [["ㅋ", "ㅋㅋ"], ["ㅋㅋ", ""]]
    squeezed = normalize(texts, NormalizationOptions(squeeze_repeats=True)).numpy().tolist()
    assert [[text.decode() for text in row] for row in squeezed] == expected


def test_full_width_characters_become_ascii():
    wide = "".join(map(chr, range(0xFF01, 0xFF5F)))
    narrow = "".join(map(chr, range(0x21, 0x7F)))
    assert switched(wide, full_width_to_ascii=True, lower_case=False) == narrow
    assert switched(wide, lower_case=False) == wide
    # Half-width kana, the won sign and what NFKC would rewrite besides stay.
    assert switched("Ａ１！　한글 ｶﾞ￦①ﬁ", full_width_to_ascii=True) == "a1! 한글 ｶﾞ￦①ﬁ"


def test_full_width_characters_take_part_in_all_that_follows():
    text = "Ｅ\u0301 ！！！"
    assert switched(text, full_width_to_ascii=True, squeeze_repeats=True) == "é !!"
    assert switched(text, full_width_to_ascii=True, strip_accents=True) == "e !!!"


@pytest.mark.parametrize("strip_accents", [True, False])
def test_emoji_sequences_are_kept_whole(strip_accents):
    for text in (FAMILY, RUNNER, BURNING_HEART, SCOTLAND, *EMOJI, "‼\ufe0f", "1\ufe0f\u20e3"):
        around = f"가{text}나 {text}{text}"
        assert switched(around, strip_accents=strip_accents) == around


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
    assert switched(text) == expected


def test_emoji_sequences_fall_apart_on_request():
    assert switched(f"{FAMILY} {SCOTLAND} {RUNNER}", keep_emoji=False) == "👨👩👧 🏴 🏃🏽♀\ufe0f"
    assert switched(RUNNER, keep_emoji=False, strip_accents=True) == "🏃🏽♀"


@pytest.mark.slow
def test_lower_case_does_not_depend_on_the_locale_of_the_machine():
    program = (
        "import tensorflow as tf\n"
        "from albert_tf.tokenization.normalization import NormalizationOptions, normalize\n"
        "print(ascii(normalize(tf.constant(['TITLE İI']), NormalizationOptions())[0].numpy().decode()))\n"
    )
    turkish = {**os.environ, "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "PYTHONPATH": os.pathsep.join(sys.path)}
    output = subprocess.run([sys.executable, "-c", program], env=turkish, capture_output=True, text=True, check=True)
    assert output.stdout.strip() == ascii("title i\u0307i")
