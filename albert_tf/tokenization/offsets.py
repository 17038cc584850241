"""Where the pieces of texts stand in the texts as given."""

import numpy as np
import tensorflow as tf

from albert_tf.tokenization.arrays import (
    Array,
    cast,
    concat,
    cumsum,
    expanded,
    gather,
    indices,
    searchsorted,
    where,
)
from albert_tf.tokenization.normalization import NormalizationOptions, depends_on_neighbours, normalized_characters
from albert_tf.tokenization.unicode_tables import characters_of
from albert_tf.tokenization.wordpiece import END_OF_WORD

_NOT_LOOKED_UP, _LEAVES_NOTHING, _STAYS, _DEPENDS_ON_CONTEXT = range(4)
_NUM_CODE_POINTS = 0x110000


class Offsets:
    """Maps pieces, and the characters of normalised texts, to spans of the texts as given.

    Texts are a tensor, as part of a graph, or strings, for which all comes as arrays. Most characters are normalised
    one by one: each stays, changes into one other, or goes. Where strings hold such characters alone, positions follow
    from what was found for each character before.
    """

    def __init__(self, options: NormalizationOptions, wordpiece_scheme: str):
        self._options = options
        self._has_marks = wordpiece_scheme == "end_of_word"
        self._kinds = np.full(_NUM_CODE_POINTS, _NOT_LOOKED_UP, np.uint8)

    def of_pieces(
        self,
        texts: list[str] | tf.Tensor,
        words: Array,
        text_splits: Array,
        piece_splits: Array,
        byte_begins: Array,
        byte_ends: Array,
    ) -> tuple[Array, Array]:
        """Returns begin and end of all pieces in their texts, text after text, int32 [pieces] each.

        Texts [N] hold words, bytes [W], from one of `text_splits`, int [N + 1], to the next, and these hold pieces in
        the same way; pieces begin and end at bytes of their words, int [pieces] each.
        """
        content, lengths = _bytes_of(words)
        # The number of characters before each byte of all words side by side; marks stand for no character.
        is_character = (content < 0x80) | (content >= 0xC0)
        if self._has_marks:
            is_character &= content != ord(END_OF_WORD)
        num_before = concat([[0], cumsum(cast(is_character))])
        word_begins = concat([[0], cumsum(lengths)])
        text_begins = gather(num_before, gather(word_begins, text_splits))
        begins, ends = self.spans(texts, text_begins[1:] - text_begins[:-1])

        _, words_of_pieces = expanded(piece_splits[1:] - piece_splits[:-1])
        bytes_before = gather(word_begins, words_of_pieces)
        first, behind = (gather(num_before, bytes_before + cast(place)) for place in (byte_begins, byte_ends))
        # One more, so that there is something to look up also where nothing is left of a text.
        begins, ends = concat([begins, [0]]), concat([ends, [0]])
        piece_ends = gather(ends, where(behind > 0, behind - 1, 0))
        # A mark that is a piece of its own lies behind the word that it marks.
        return where(first < behind, gather(begins, first), piece_ends), piece_ends

    def spans(self, texts: list[str] | tf.Tensor, num_characters: Array) -> tuple[Array, Array]:
        """Returns begin and end of so many normalised characters of each text, without spaces, int32 [M] each."""
        if tf.is_tensor(texts):
            return self._spans_of_any(texts, num_characters)
        given = characters_of(texts)
        kinds = self._kinds_of(given.codes)
        stays = kinds == _STAYS
        depends = np.bincount(given.rows[kinds == _DEPENDS_ON_CONTEXT], minlength=len(texts)) > 0
        # Where repeats were squeezed, fewer characters are left than stay one by one.
        depends |= np.bincount(given.rows[stays], minlength=len(texts)) != num_characters
        if not depends.any():
            begins = given.begins[stays]
            return begins, begins + 1
        is_of_any = np.repeat(depends, num_characters)
        begins = np.empty(len(is_of_any), np.int32)
        begins[~is_of_any] = given.begins[stays & ~depends[given.rows]]
        ends = begins + 1
        others = [texts[row] for row in np.flatnonzero(depends)]
        begins[is_of_any], ends[is_of_any] = self._spans_of_any(others, num_characters[depends])
        return begins, ends

    def _spans_of_any(self, texts, num_characters):
        found = normalized_characters(texts, self._options)
        # Python and TensorFlow may know different versions of Unicode, and count characters differently: rows are cut,
        # or filled up with their last character.
        rows = indices(num_characters)
        begins, ends = searchsorted(found.rows, rows), searchsorted(found.rows, rows, side="right")
        numbers, sources = expanded(num_characters)
        last = gather(ends - begins - 1, sources)
        places = gather(begins, sources) + where(numbers < last, numbers, last)
        places = where(places > 0, places, 0)
        return tuple(gather(concat([values, [0]]), places) for values in (found.begins, found.ends))

    def _kinds_of(self, codes):
        kinds = self._kinds[codes]
        if not kinds.all():
            new = np.unique(codes[kinds == _NOT_LOOKED_UP])
            self._kinds[new] = self._look_up(list(map(chr, new)))
            kinds = self._kinds[codes]
        return kinds

    def _look_up(self, characters):
        """Returns `_STAYS` for a character that makes one whatever stands beside it, or another of the constants."""
        alone = normalized_characters(characters, self._options)
        counts = np.bincount(alone.rows, minlength=len(characters))
        kinds = np.where(counts == 1, _STAYS, np.where(counts, _DEPENDS_ON_CONTEXT, _LEAVES_NOTHING))
        depends = np.array([depends_on_neighbours(character, self._options) for character in characters])
        # A character may also become one that does.
        becomes = np.array([depends_on_neighbours(chr(code), self._options) for code in alone.codes], bool)
        depends[alone.rows[becomes]] = True
        return np.where(depends, _DEPENDS_ON_CONTEXT, kinds)


def _bytes_of(words):
    """Returns the bytes of all words side by side, uint8, and how many each has, int32 [W]."""
    if tf.is_tensor(words):
        return tf.io.decode_raw(tf.strings.reduce_join(words), tf.uint8), tf.strings.length(words)
    return np.frombuffer(b"".join(words), np.uint8), np.array(list(map(len, words)), np.int32)
