"""Texts that are hard on a tokenizer, and tokenizers that know every character of a text."""

import dataclasses
import re
import sys
import unicodedata

import reference
import tensorflow as tf
from hypothesis import strategies as st

from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.normalization import NormalizationOptions, normalize, normalized_characters

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]"]

TROUBLE = "".join(
    [
        "ᄀ하ᅢᆨᆫ가각한ㄱㅋㅠㅎ",  # conjoining jamo, syllables, compatibility jamo
        "\u302e\u0301\u0323\u0307\u0345e\u00e9",  # a Hangul tone mark and combining accents
        "か\u3099\u0b47\u0b3e\u09c7\u09be\u0f71\u0f72",  # vowel signs, some of which compose though they don't combine
        "\u200b\u200d\u2060\ufeff\u00ad\0\x1e\x1f\x7f\ufffd",  # removed
        " \t\n\v\x85\u00a0\u2003\u2028\u3000",  # spaces
        "אب\u200f\u202e",  # from right to left
        "_\u2581#[]@.、·",
        "AaİIıßﬁＡ",
        "漢\uf900\U00020000👨🏽\ufe0f\ue000\U000f0000",
        "0１２٣.,:！～ｚ",  # numbers and full-width forms
        "🇰🇷❤🏴‼Ⓜ⃣\U000e0067\U000e007f",  # what emoji sequences are made of
    ]
)
EMOJI = [
    *["👩\u200d🚀", "👨🏽\u200d❤\ufe0f\u200d👨", "❤\ufe0f", "👍🏽"],
    *["1\ufe0f⃣", "#⃣", "🇰🇷", "🏴\U000e0067\U000e0062\U000e007f"],
]
FRAGMENTS = [
    *EMOJI,
    *["ㅋㅋㅋㅋ", "!!!", "000", "iii", "1,000.5"],
    *["[MASK]", "[unused0]", "##", "##가", " _ ", "_ ", "각", "한" * 200, "한" * 201, "a" * 10_000],
]

# Python and TensorFlow know different versions of Unicode: letters without a lower case in one of them are left out,
# and so is the capital sigma, whose lower case depends on properties of the characters around it.
_LEFT_OUT = "Σ\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8" + "".join(map(chr, range(0x10570, 0x10596)))
CHARACTERS = st.characters(exclude_categories=("Cs", "Cn"), exclude_characters=_LEFT_OUT)
# Ideographs without a normal form of their own, two thirds of all characters, are each like the next: a few of them.
_IDEOGRAPHS = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00017000-\U00018cff\U00020000-\U0002f7ff\U00030000-\U000323af]")
EVERY_CHARACTER = [
    character
    for code, character in enumerate(map(chr, range(sys.maxunicode + 1)))
    if unicodedata.category(character) not in ("Cs", "Cn", "Co")
    and character not in _LEFT_OUT
    and (code % 61 == 0 or not _IDEOGRAPHS.match(character))
]

ANY_TEXT = st.lists(
    st.one_of(st.sampled_from(TROUBLE), CHARACTERS, st.sampled_from(FRAGMENTS), st.text(CHARACTERS, max_size=5)),
    max_size=12,
).map("".join)

SCHEMES = ["continuation", "end_of_word"]
SETTINGS = st.fixed_dictionaries(
    {
        "wordpiece_scheme": st.sampled_from(SCHEMES),
        "lower_case": st.booleans(),
        "strip_accents": st.booleans(),
        "split_punctuation": st.booleans(),
        "squeeze_repeats": st.booleans(),
        "full_width_to_ascii": st.booleans(),
        "keep_emoji": st.booleans(),
        "split_digits": st.booleans(),
        "split_emoji": st.booleans(),
    }
)


def spell(texts: list[str], **settings) -> list[str]:
    """Returns pieces for every character of texts and for the first two of each word, so that nothing is unknown."""
    words = [word for text in texts for word in reference.ReferenceTokenizer([], **settings).words(text)]
    beginnings = [*{character for word in words for character in word}, *{word[:2] for word in words}]
    prefix = "##" if settings.get("wordpiece_scheme", "continuation") == "continuation" else ""
    pieces = [spelled for beginning in sorted(beginnings) for spelled in (beginning, prefix + beginning)]
    return list(dict.fromkeys([*SPECIAL_TOKENS, *pieces]))


def tokenizer_that_knows(texts: list[str], **settings) -> KoreanWordPieceTokenizer:
    """Returns a tokenizer to which no word of texts is unknown, unless it is too long."""
    return KoreanWordPieceTokenizer(Vocabulary(spell(texts, **settings)), **settings)


def characters_and_spans(text: str, options: NormalizationOptions) -> list[tuple[str, tuple[int, int]]]:
    """Returns each character of the normalised text but spaces, and the span of the text that it stands for."""
    codes, begins, ends, _ = (values.tolist() for values in normalized_characters([text], options))
    return list(zip(map(chr, codes), zip(begins, ends)))


def assert_characters_of(text: str, normalized: str, options: NormalizationOptions) -> None:
    """Checks that normalising characters one by one gives the same, but for a sigma that ends a word, and no spaces."""
    one_by_one = "".join(character for character, _ in characters_and_spans(text, options))
    assert one_by_one.replace("ς", "σ") == normalized.replace(" ", "").replace("ς", "σ"), text


def normalized_alike(text: str, options: NormalizationOptions) -> str:
    """Returns the normalised text after checking that both implementations and the reference agree on it."""
    by_ops = normalize(tf.constant([text.encode("utf-8", "ignore")]), options)[0].numpy().decode()
    of_imports = ("form", "special_tokens_in_text")
    switches = {name: value for name, value in dataclasses.asdict(options).items() if name not in of_imports}
    assert by_ops == reference.normalize(text, **switches)
    assert_characters_of(text, by_ops, options)
    return by_ops
