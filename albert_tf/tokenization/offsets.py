"""Where the characters of normalised texts stand in the texts as given, for many texts at once.

Most characters are normalised one by one: each stays, changes into one other, or goes. For texts of such characters
alone the positions follow from a table and array operations. The others (decomposed Hangul, combining accents, joined
emoji, squeezed repeats) go through `normalize_with_offsets`, one at a time.
"""

import unicodedata

import numpy as np
import tensorflow as tf

from albert_tf.tokenization import bert_normalization, unicode_tables
from albert_tf.tokenization.normalization import NormalizationOptions, clean_character, normalize_with_offsets
from albert_tf.tokenization.wordpiece import END_OF_WORD

_NOT_LOOKED_UP, _LEAVES_NOTHING, _STAYS, _DEPENDS_ON_CONTEXT = range(4)
_NUM_CODE_POINTS = 0x110000


class OriginalPositions:
    """Maps pieces, and the characters of normalised texts, to spans of the texts as given."""

    def __init__(self, options: NormalizationOptions, wordpiece_scheme: str = "continuation"):
        self._options = options
        self._has_marks = wordpiece_scheme == "end_of_word"
        self._kinds = np.full(_NUM_CODE_POINTS, _NOT_LOOKED_UP, np.uint8)

    def of_pieces(
        self, texts: list[str], text_words: tf.RaggedTensor, byte_begins: tf.RaggedTensor, byte_ends: tf.RaggedTensor
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns begin and end of all pieces in their texts, text after text, int64 [pieces] each.

        The words are string [N, (words)]; pieces begin and end at bytes of their words, int [words, (pieces)].
        """
        all_words = text_words.flat_values.numpy().tolist()
        # The number of characters before each byte of all words side by side; marks stand for no character.
        content = np.frombuffer(b"".join(all_words), np.uint8)
        is_character = content & 0xC0 != 0x80
        if self._has_marks:
            is_character &= content != ord(END_OF_WORD)
        num_before = np.concatenate([[0], np.cumsum(is_character)])
        word_begins = np.cumsum([0, *map(len, all_words)])
        begins, ends = self.spans(texts, np.diff(num_before[word_begins[text_words.row_splits.numpy()]]))

        bytes_before = np.repeat(word_begins[:-1], np.diff(byte_begins.row_splits.numpy()))
        first = num_before[bytes_before + byte_begins.flat_values.numpy()]
        behind = num_before[bytes_before + byte_ends.flat_values.numpy()]
        piece_ends = ends[behind - 1]
        # A mark that is a piece of its own lies behind the word that it marks.
        return np.where(first < behind, begins[np.minimum(first, len(begins) - 1)], piece_ends), piece_ends

    def spans(self, texts: list[str], num_characters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns begin and end in its text of each normalised character but spaces, int64 [sum of counts] each."""
        code_points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        lengths = np.array([len(text) for text in texts], np.int64)
        rows = np.repeat(np.arange(len(texts)), lengths)
        kinds = self._kinds_of(code_points)
        stays = kinds == _STAYS
        depends = np.bincount(rows, kinds == _DEPENDS_ON_CONTEXT, minlength=len(texts)) > 0
        # Where repeats were squeezed, fewer characters are left than stay one by one.
        depends |= np.bincount(rows, stays, minlength=len(texts)) != num_characters

        begins = np.empty(num_characters.sum(), np.int64)
        is_by_table = np.repeat(~depends, num_characters)
        found = np.flatnonzero(stays & ~depends[rows])
        begins[is_by_table] = found - (np.cumsum(lengths) - lengths)[rows[found]]
        ends = begins + 1
        first = np.cumsum(num_characters) - num_characters
        for row in np.flatnonzero(depends):
            characters, spans = normalize_with_offsets(texts[row], self._options)
            spans = np.array([span for character, span in zip(characters, spans) if character != " "], np.int64)
            there = np.arange(num_characters[row])
            # Python and TensorFlow may know different versions of Unicode, and count characters differently.
            own_spans = spans.reshape(-1, 2)[np.minimum(there, len(spans) - 1)]
            begins[first[row] + there], ends[first[row] + there] = own_spans.T
        return begins, ends

    def _kinds_of(self, code_points):
        kinds = self._kinds[code_points]
        if not kinds.all():
            for code_point in np.unique(code_points[kinds == _NOT_LOOKED_UP]):
                self._kinds[code_point] = self._kind_of(chr(code_point))
            kinds = self._kinds[code_points]
        return kinds

    def _kind_of(self, character):
        """Returns `_STAYS` if a character makes one whatever stands beside it, or another of the constants."""
        if self._options.form != "korean":
            stays = bert_normalization.stays_one(character, self._options.of_bert)
            return {True: _STAYS, False: _DEPENDS_ON_CONTEXT, None: _LEAVES_NOTHING}[stays]
        if _is_plain(character):
            return _STAYS
        if self._options.keep_emoji and unicode_tables.may_join(character):
            return _DEPENDS_ON_CONTEXT
        if clean_character(character) in ("", " "):
            return _LEAVES_NOTHING
        alone, _ = normalize_with_offsets(character, self._options)
        is_alone = len(alone) == 1 and not any(map(_may_combine, (character, alone)))
        return _STAYS if is_alone else _DEPENDS_ON_CONTEXT


def _is_plain(character):
    """Whether a character is one of the many that no step changes: Hangul syllables and Chinese characters."""
    return "가" <= character <= "힣" or "\u4e00" <= character <= "\u9fff"


def _may_combine(character):
    """Whether a character may compose with the one before it: marks and conjoining jamo do."""
    return unicodedata.category(character).startswith("M") or "\u1100" <= character <= "\u11ff"
