"""Borders between stems and what follows them, found by kiwipiepy while a vocabulary is built; never at run time.

영화는 is 영화 and the josa 는; 먹었다 is 먹 and the ending 었다. No syllable is cut (갔다: 가 and 았다).
"""

import functools
import importlib.util
import itertools
import unicodedata

from albert_tf.errors import InputError

MORPHEME_CHOICES = ("none", "kiwi", "noun_josa")

# Marks a border inside a word. Unicode bars this code point from text, and normalisation leaves it where it is.
BORDER = "\ufdd0"

_COPULA = "VCP"
# Suffixes of nouns, numbers, Latin letters and Han characters: what carries josa like a noun.
_LIKE_NOUNS = {"XSN", "SN", "SL", "SH"}


def has_kiwi() -> bool:
    return importlib.util.find_spec("kiwipiepy") is not None


def require_kiwi(morphemes: str) -> None:
    if morphemes != "none" and not has_kiwi():
        raise InputError(
            f"`morphemes={morphemes}` needs kiwipiepy, which is not installed; pip install kiwipiepy, or leave out the "
            "flag"
        )


class MorphemeBorders:
    """Finds borders on the text as it is written, not on kiwi's normalised forms; raises InputError without kiwipiepy.

    "kiwi" marks them before josa, endings and the copula 이다; "noun_josa" only between a noun and a josa.
    """

    def __init__(self, morphemes: str):
        require_kiwi(morphemes)
        self._is_border = _is_border if morphemes == "kiwi" else _is_noun_josa_border
        self._kiwi = _load_kiwi()

    def mark(self, lines: list[str]) -> list[str]:
        """Returns the lines, composed (NFC), with `BORDER` at every border."""
        lines = [unicodedata.normalize("NFC", line.replace(BORDER, "")) for line in lines]
        # Kiwi is by far the slowest part: it gets each line that holds Hangul once.
        korean = [line for line in dict.fromkeys(lines) if any("가" <= character <= "힣" for character in line)]
        marked = {line: self._mark(line, tokens) for line, tokens in zip(korean, self._kiwi.tokenize(korean))}
        return [marked.get(line, line) for line in lines]

    def _mark(self, line, tokens):
        parts, begin = [], 0
        for left, right in itertools.pairwise(tokens):
            position = right.start
            meets = left.start + left.len == position and begin < position < len(line)
            if meets and "가" <= line[position] <= "힣" and self._is_border(left.tag, right.tag):
                parts.append(line[begin:position])
                begin = position
        return BORDER.join([*parts, line[begin:]])


@functools.cache
def _load_kiwi():
    from kiwipiepy import Kiwi

    return Kiwi()


def _is_border(left, right):
    if right.startswith("J"):
        return not left.startswith("J")
    return (right.startswith("E") or right == _COPULA) and not (left.startswith(("J", "E")) or left == _COPULA)


def _is_noun_josa_border(left, right):
    return right.startswith("J") and (left.startswith("N") or left in _LIKE_NOUNS)
