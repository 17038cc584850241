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
from text_strategies import ANY_TEXT, EVERY_CHARACTER, assert_characters_of, characters_and_spans, normalized_alike

from albert_tf.tokenization.normalization import NormalizationOptions, normalize

OPTIONS = [NormalizationOptions(*switches) for switches in [(True, True), (True, False), (False, True), (False, False)]]
BOTH_SWITCHES_OFF = OPTIONS[-1]
ALL_OPTIONS = [NormalizationOptions(*switches) for switches in itertools.product([True, False], repeat=5)]
every_option = pytest.mark.parametrize("options", OPTIONS, ids=str)


def decomposed(text):
    return unicodedata.normalize("NFD", text)


def normalized(text, options=BOTH_SWITCHES_OFF):
    return normalized_alike(text, options)


@pytest.mark.slow
@given(ANY_TEXT, st.sampled_from(ALL_OPTIONS))
@example("ᄒ\u0301ᅡᆫ", OPTIONS[0])  # what an accent kept apart is composed once it is gone
@example(" \u0301 a", OPTIONS[0])
def test_implementations_agree_on_any_text(text, options):
    normalized(text, options)


@pytest.mark.slow
@given(ANY_TEXT, st.sampled_from(ALL_OPTIONS))
def test_normalised_text_stays_as_it_is(text, options):
    once = normalized(text, options)
    assert normalized(once, options) == once


@pytest.mark.slow
@pytest.mark.parametrize("options", [OPTIONS[0], OPTIONS[-1]], ids=str)
def test_implementations_agree_on_every_character(options):
    for begin in range(0, len(EVERY_CHARACTER), 5_000):
        normalized("".join(f"{character}a." for character in EVERY_CHARACTER[begin : begin + 5_000]), options)


@pytest.mark.slow
@pytest.mark.parametrize("options", ALL_OPTIONS[:1] + ALL_OPTIONS[-1:], ids=str)
def test_implementations_agree_on_the_sample(sample_lines, options):
    assert_implementations_agree(sample_lines, options)


@pytest.mark.slow
def test_implementations_agree_on_real_text(real_lines):
    assert_implementations_agree(real_lines, OPTIONS[0])


def assert_implementations_agree(lines, options):
    for line, expected in zip(lines, normalize(tf.constant(lines), options).numpy()):
        assert_characters_of(line, expected.decode(), options)


@pytest.mark.slow
@every_option
def test_every_syllable_survives_in_both_forms(options):
    syllables = "".join(map(chr, range(0xAC00, 0xD7A4)))
    assert normalized(syllables, options) == normalized(decomposed(syllables), options) == syllables


@every_option
@pytest.mark.parametrize("text", ["ㅋㅋㅋ", "ㅠㅠ", "ㄱㅏ", "ㅇㅈ"])
def test_compatibility_jamo_stay_as_they_are(text, options):
    assert normalized(text, options) == text


@pytest.mark.parametrize("text", ["ｶﾞ", "Ａ１", "ﬁ", "①", "㈜", "ㅏ"])
def test_compatibility_forms_are_kept(text):
    """NFKC would rewrite them."""
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


@every_option
@pytest.mark.parametrize(
    "removed", list("\0\x01\x1f\x7f\x80\u00ad\u200b\u200c\u200d\u200e\u202e\u2060\ufeff\ufffd\U000e0041"), ids=ascii
)
def test_control_and_zero_width_characters_are_removed(removed, options):
    assert normalized(f"{removed}가{removed}나{removed}", options) == "가나"
    assert normalized(removed, options) == ""


@every_option
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
    ],
    ids=ascii,
)
def test_spans_count_characters_of_the_text_as_given(text, options, expected):
    assert characters_and_spans(text.replace("각", decomposed("각")), options) == expected


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
