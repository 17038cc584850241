"""Splitting normalised text into words, the units that WordPiece then cuts up and that whole-word masking covers.

A word ends at a space, around each CJK ideograph, when punctuation is split around each punctuation mark, and when
digits are split around each number. A variation selector and a key cap stay with what they belong to (‼️, 1️⃣).
In the end-of-word scheme a word that is followed by a space carries the mark `_` (영화는_ 재미있다), so that pieces put
side by side give back the text; a `_` of the text itself is kept apart from the mark by writing it as U+FFFD,
which normalised text never holds.
"""

import tensorflow as tf

from albert_tf.tokenization import emoji

WORDPIECE_SCHEMES = ("continuation", "end_of_word")
END_OF_WORD = "_"
ESCAPED_UNDERSCORE = "\ufffd"

# Stands for END_OF_WORD while punctuation, which "_" is, gets isolated; normalised text holds no control character.
_MARK = "\x1f"

# ASCII symbols count as punctuation, as in the original's tokenization.py.
_PUNCTUATION = r"!-/:-@\[-`{-~\p{P}\x{FFFD}"
# The blocks that the original isolates; Hangul and Kana are not among them.
_IDEOGRAPHS = (
    r"\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}"
    r"\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{2F800}-\x{2FA1F}"
)
# Where punctuation isn't split, it doesn't split a number either: 1,000 and 3.5 and 12:30 are one word.
_DIGITS = r"\p{Nd}+"
_NUMBER = r"\p{Nd}+(?:[.,:]\p{Nd}+)*"


def split_words(
    texts: tf.Tensor,
    wordpiece_scheme: str,
    split_punctuation: bool,
    split_digits: bool = False,
    keep_emoji: bool = True,
    split_emoji: bool = False,
) -> tf.RaggedTensor:
    """Splits normalised strings [N] into words, [N, (words)]; `keep_emoji` keeps selectors with their characters."""
    isolated = isolated_pattern(split_punctuation, split_digits, keep_emoji, split_emoji)
    if wordpiece_scheme == "continuation":
        return tf.strings.split(tf.strings.regex_replace(texts, f"({isolated})", r" \1 "))
    texts = tf.strings.regex_replace(texts, END_OF_WORD, ESCAPED_UNDERSCORE)
    texts = tf.strings.regex_replace(texts, " ", f"{_MARK} ")
    texts = tf.strings.regex_replace(texts, f"({isolated}{_MARK}?)", r" \1 ")
    return tf.strings.split(tf.strings.regex_replace(texts, _MARK, END_OF_WORD))


def isolated_pattern(split_punctuation: bool, split_digits: bool, keep_emoji: bool, split_emoji: bool = False) -> str:
    """Returns a pattern of words that stand by themselves everywhere; the switches are those of `split_words`."""
    isolated = f"[{_IDEOGRAPHS}{_PUNCTUATION if split_punctuation else ''}]"
    if split_digits:
        isolated = f"(?:{_DIGITS if split_punctuation else _NUMBER}|{isolated})"
    if split_emoji:
        isolated = f"(?:{emoji.WHOLE_PICTURE}|{isolated})"
    if keep_emoji:
        isolated += f"[{emoji.SELECTOR}{emoji.KEY_CAP}]*"
    return isolated


def join_words(words: list[list[str]], wordpiece_scheme: str) -> str:
    """Puts words together from pieces without prefixes, with spaces between words in the continuation scheme."""
    texts = ["".join(pieces) for pieces in words]
    if wordpiece_scheme == "continuation":
        return " ".join(texts)
    return "".join(texts).replace(END_OF_WORD, " ").replace(ESCAPED_UNDERSCORE, "_").rstrip(" ")
