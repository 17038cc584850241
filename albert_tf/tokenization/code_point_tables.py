"""Properties of characters in Unicode, as tables that are small enough to be constants of a graph."""

import collections.abc
import sys
import unicodedata

import numpy as np
import tensorflow as tf

# Planes in which no character has a case, a decomposition or a combining class.
_PLAIN = range(0x40000, 0xE0000)
_CODE_POINTS = [*range(_PLAIN.start), *range(_PLAIN.stop, 0xE1000)]
_HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)


class KindOfCharacter:
    """A number for each character, as a function gives it, kept as ranges of characters with the same."""

    def __init__(self, kind_of: collections.abc.Callable[[str], int]):
        begins, kinds = [], []
        for code_point in _CODE_POINTS:
            kind = kind_of(chr(code_point))
            if not kinds or kind != kinds[-1]:
                begins.append(code_point)
                kinds.append(kind)
        self._begins, self._kinds = np.array(begins, np.int32), np.array(kinds, np.int32)

    def __call__(self, characters: tf.Tensor) -> tf.Tensor:
        """Returns the numbers of int32 [M] characters, int32 [M]."""
        return tf.gather(self._kinds, tf.searchsorted(self._begins, characters, side="right") - 1)


class Replacement:
    """The one or more characters that a function puts in the place of each."""

    def __init__(self, replace: collections.abc.Callable[[str], str]):
        found = {
            code_point: replace(chr(code_point)) for code_point in _CODE_POINTS if not 0xD800 <= code_point < 0xE000
        }
        changed = {code_point: text for code_point, text in found.items() if text != chr(code_point)}
        # One more, which no character is, so that there is always something to look up.
        self._keys = np.array([*changed, sys.maxunicode + 1], np.int32)
        self._splits = np.cumsum([0, *map(len, changed.values()), 1]).astype(np.int32)
        self._values = np.array([*map(ord, "".join(changed.values())), 0], np.int32)

    def __call__(self, characters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the replacements of int32 [M] characters, and which of the M each comes from, int32 [K] both."""
        places = tf.searchsorted(self._keys, characters)
        is_changed = tf.equal(tf.gather(self._keys, places), characters)
        counts = tf.where(is_changed, tf.gather(np.diff(self._splits), places), 1)
        parts = tf.ragged.range(counts)
        sources = tf.cast(parts.value_rowids(), tf.int32)
        values = tf.minimum(
            tf.gather(self._splits[:-1], tf.gather(places, sources)) + parts.values, len(self._values) - 1
        )
        replaced = tf.where(
            tf.gather(is_changed, sources), tf.gather(self._values, values), tf.gather(characters, sources)
        )
        return replaced, sources


class StarterPairs:
    """The characters that two starters, such as a leading and a vowel jamo, are composed to."""

    def __init__(self):
        pairs = {}
        for code_point in _CODE_POINTS:
            parts = (
                unicodedata.normalize("NFD", chr(code_point)) if code_point in _HANGUL_SYLLABLES else _pair(code_point)
            )
            if len(parts) == 3:  # a syllable of three letters is made of one of two and the last
                parts = (unicodedata.normalize("NFC", parts[:2]), parts[2])
            if len(parts) == 2 and not unicodedata.combining(parts[1]):
                pairs[(ord(parts[0]) << 21) + ord(parts[1])] = code_point
        self._keys = np.array([*sorted(pairs), np.iinfo(np.int64).max])
        self._composed = np.array([*(pairs[key] for key in sorted(pairs)), -1], np.int32)

    def __call__(self, first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
        """Returns the characters that each two of int32 [M] are composed to, -1 if to nothing: int32 [M]."""
        keys = tf.bitwise.left_shift(tf.cast(first, tf.int64), 21) + tf.cast(second, tf.int64)
        places = tf.searchsorted(self._keys, keys)
        return tf.where(tf.equal(tf.gather(self._keys, places), keys), tf.gather(self._composed, places), -1)


def _pair(code_point):
    """Returns the two characters that are composed to this one, nothing if there are no such."""
    character = chr(code_point)
    parts = [part for part in unicodedata.decomposition(character).split() if not part.startswith("<")]
    if len(parts) != 2 or unicodedata.normalize("NFC", character) != character:
        return ""
    return "".join(chr(int(part, 16)) for part in parts)
