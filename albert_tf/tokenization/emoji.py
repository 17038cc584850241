"""Patterns of emoji sequences, in syntax that RE2 and Python's `re` share.

👩‍🚀 is 👩, a zero-width joiner and 🚀; 👍🏽 is 👍 and a skin tone; ❤️ is ❤ and a variation selector; 1️⃣ is 1, a selector
and a key cap; the flag of Scotland is 🏴 and invisible tag characters. Cutting such a sequence shows another picture.
"""

JOINER = "\u200d"
SELECTOR = "\ufe0f"
KEY_CAP = "\u20e3"
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"

# Unicode's Extended_Pictographic in whole ranges, without the characters that are punctuation or have a lower case.
_PICTURES = (
    "\xa9\xae\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u2388\u23cf\u23e9-\u23fa\u25aa\u25ab\u25b6\u25c0"
    "\u25fb-\u25fe\u2600-\u2767\u2795-\u2797\u27a1\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\u3297\u3299\U0001f000-\U0001f12f\U0001f16c-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
# ‼ ⁉ 〰 〽 Ⓜ: shown as emoji before a selector, but never joined to others.
_SHOWN_AS_EMOJI = "\u203c\u2049\u3030\u303d\u24c2"

_PICTURE = f"[{_PICTURES}][{_SKIN_TONES}]?{SELECTOR}?"

# What is one picture: a flag of two letters, or a picture as it is changed and tied to others.
_FLAG_LETTERS = "\U0001f1e6-\U0001f1ff"
# Characters that begin one.
PICTURES = _PICTURES + _FLAG_LETTERS

# Sequences with format characters: pictures tied together by joiners, and flags spelled in tags.
JOINED_PICTURES = f"{_PICTURE}(?:{JOINER}{_PICTURE})+|\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f"
# Any of them, the longest first.
WHOLE_PICTURE = f"{JOINED_PICTURES}|{_PICTURE}|[{_FLAG_LETTERS}]{{2}}|[0-9#*]{SELECTOR}?{KEY_CAP}"
# Sequences with a variation selector, which is also a combining mark.
SELECTED_PICTURE = f"[{_PICTURES}{_SHOWN_AS_EMOJI}][{_SKIN_TONES}]?{SELECTOR}|[0-9#*]{SELECTOR}{KEY_CAP}"


def may_join(character: str) -> bool:
    """Whether a format character belongs to an emoji sequence in the right place."""
    return character == JOINER or "\U000e0020" <= character <= "\U000e007f"
