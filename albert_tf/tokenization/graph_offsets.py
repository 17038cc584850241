"""Where the characters of normalised texts stand in the texts as given, with TensorFlow ops alone.

The same as `OriginalPositions`, for graphs that are exported. Its tables come from Python's Unicode database when the
graph is made.
"""

import functools
import unicodedata

import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.tokenization import bert_normalization, unicode_tables
from albert_tf.tokenization.normalization import (
    FULL_WIDTH,
    FULL_WIDTH_TO_ASCII,
    MOST_REPEATS,
    NormalizationOptions,
    clean_character,
    is_squeezed,
)
from albert_tf.tokenization.unicode_tables import (
    Characters,
    KindOfCharacter,
    Replacement,
    StarterPairs,
    differs,
    dropped,
    lower_case,
    replaced,
)
from albert_tf.tokenization.wordpiece import END_OF_WORD

_SPACE = ord(" ")
_KEPT, _SPACES, _REMOVED = range(3)


class GraphOffsets:
    """Maps pieces, and the characters of normalised texts, to spans of the texts as given."""

    def __init__(self, options: NormalizationOptions, wordpiece_scheme: str):
        self._options = options
        self._has_marks = wordpiece_scheme == "end_of_word"
        self._cleaned = _cleaned_kinds()
        self._is_mark, self._combines = _mark_kinds(), _combining_kinds()
        self._is_squeezed = _squeezed_kinds() if options.squeeze_repeats else None
        self._lower = lower_case() if options.lower_case else None
        self._decompose = _decomposition() if options.strip_accents else None
        self._compose_pair = _starter_pairs()

    def of_pieces(
        self, texts: tf.Tensor, text_words: tf.RaggedTensor, byte_begins: tf.RaggedTensor, byte_ends: tf.RaggedTensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns begin and end of all pieces in texts, int32 [pieces] each; arguments as of `OriginalPositions`."""
        words = text_words.flat_values
        characters, offsets = tf.strings.unicode_decode_with_offsets(words, "UTF-8")
        word_ends = tf.cumsum(tf.cast(tf.strings.length(words), tf.int32))
        word_begins = word_ends - tf.cast(tf.strings.length(words), tf.int32)
        # Where characters begin in all words side by side; marks stand for no character.
        places = tf.cast(offsets.values, tf.int32) + tf.gather(word_begins, characters.value_rowids())
        if self._has_marks:
            places = tf.boolean_mask(places, characters.values != ord(END_OF_WORD))
        borders = tf.gather(tf.concat([[0], word_ends], axis=0), text_words.row_splits)
        num_characters = tf.searchsorted(places, borders)
        begins, ends = self.spans(texts, num_characters[1:] - num_characters[:-1])

        before = tf.gather(word_begins, byte_begins.value_rowids())
        first, behind = (
            tf.searchsorted(places, before + tf.cast(values.values, tf.int32)) for values in (byte_begins, byte_ends)
        )
        # One more, so that there is something to look up also where nothing is left of a text.
        begins, ends = (tf.concat([values, [0]], axis=0) for values in (begins, ends))
        piece_ends = tf.gather(ends, tf.maximum(behind - 1, 0))
        # A mark that is a piece of its own lies behind the word that it marks.
        return tf.where(first < behind, tf.gather(begins, first), piece_ends), piece_ends

    def spans(self, texts: tf.Tensor, num_characters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns begin and end of so many normalised characters of each text, without spaces, int32 [M] each."""
        given = bert_normalization.marked_characters(texts, self._options.of_bert)
        found, num_texts = self.normalize(given), tf.size(texts, tf.int64)
        begins, ends = (
            tf.RaggedTensor.from_value_rowids(values, tf.cast(found.rows, tf.int64), num_texts)
            for values in (found.begins, found.ends)
        )
        return _with_lengths(begins, num_characters), _with_lengths(ends, num_characters)

    def normalize(self, characters: Characters) -> Characters:
        """Returns the characters of normalised texts but for spaces, by the steps of `normalize_with_offsets`."""
        options = self._options
        if options.form != "korean":
            characters = bert_normalization.normalize_characters(characters, options.of_bert)
        else:
            characters = self._normalize_korean(characters)
        return Characters(*(tf.boolean_mask(values, characters.codes != _SPACE) for values in characters))

    def _normalize_korean(self, characters):
        options = self._options
        cleaned = self._cleaned(characters.codes)
        if options.keep_emoji:
            cleaned = tf.where(_matches(characters, unicode_tables.JOINED_PICTURES), _KEPT, cleaned)
        characters = characters._replace(codes=tf.where(tf.equal(cleaned, _SPACES), _SPACE, characters.codes))
        characters = Characters(*(tf.boolean_mask(values, cleaned < _REMOVED) for values in characters))
        if options.full_width_to_ascii:
            codes = characters.codes
            is_wide = (codes >= FULL_WIDTH.start) & (codes < FULL_WIDTH.stop)
            characters = characters._replace(codes=tf.where(is_wide, codes - FULL_WIDTH_TO_ASCII, codes))
        if options.lower_case:
            characters = replaced(characters, self._lower)
        if options.strip_accents:
            characters = self._strip_accents(replaced(characters, self._decompose))
        characters = self._compose(characters)
        if options.squeeze_repeats:
            characters = self._squeeze(characters)
        return characters

    def _strip_accents(self, characters):
        is_kept = self._is_mark(characters.codes) < 1
        if self._options.keep_emoji:
            is_kept |= _matches(characters, unicode_tables.SELECTED_PICTURE)
        return dropped(characters, is_kept)

    def _compose(self, characters):
        """Composes each shortest run of characters that can't combine with what follows; all of it has its span."""
        codes, rows = characters.codes, characters.rows
        is_first = differs(rows)
        before = tf.concat([[0], codes[:-1]], axis=0)[: tf.size(codes)]
        pair = tf.where(is_first, -1, self._compose_pair(before, codes))
        # What the character before was composed to, in its turn, may compose with this one.
        pair_before = tf.concat([[-1], pair[:-1]], axis=0)[: tf.size(codes)]
        joined = self._compose_pair(tf.where(pair_before >= 0, pair_before, before), codes) >= 0
        is_starter = self._combines(codes) < 1
        begins_run = is_first | (codes < 128) | (is_starter & ~joined)
        runs = tf.cumsum(tf.cast(begins_run, tf.int32)) - 1
        begins, ends = tf.boolean_mask(characters.begins, begins_run), tf.math.segment_max(characters.ends, runs)
        num_runs = tf.cast(tf.size(begins), tf.int64)
        texts = tf.strings.unicode_encode(
            tf.RaggedTensor.from_value_rowids(codes, tf.cast(runs, tf.int64), num_runs), "UTF-8"
        )
        composed = tf.strings.unicode_decode(tf_text.normalize_utf8(texts, "NFC"), "UTF-8")
        of_runs = (begins, ends, tf.boolean_mask(rows, begins_run))
        return Characters(composed.values, *(tf.gather(values, composed.value_rowids()) for values in of_runs))

    def _squeeze(self, characters):
        codes, rows = characters.codes, characters.rows
        begins_repeat = differs(rows) | differs(codes)
        repeats = tf.cumsum(tf.cast(begins_repeat, tf.int32)) - 1
        places = tf.range(tf.size(codes))
        count = places - tf.gather(tf.boolean_mask(places, begins_repeat), repeats)
        return dropped(characters, (count < MOST_REPEATS) | (self._is_squeezed(codes) < 1))


def _matches(characters, pattern):
    """Returns which characters are part of a match of a pattern, bool [M]."""
    num_texts = 1 + tf.reduce_max(tf.concat([[-1], characters.rows], axis=0))
    # Splitting ends at NUL; another character of one byte, of no pattern, stands in for it.
    codes = tf.RaggedTensor.from_value_rowids(
        tf.maximum(characters.codes, 1), tf.cast(characters.rows, tf.int64), tf.cast(num_texts, tf.int64)
    )
    parts, begins, _ = tf_text.regex_split_with_offsets(tf.strings.unicode_encode(codes, "UTF-8"), pattern, pattern)
    sizes = 1 + sum(tf.cast(codes.values >= least, tf.int64) for least in (0x80, 0x800, 0x10000))
    places = tf.cumsum(sizes, exclusive=True)
    starts = tf.gather(tf.concat([places, [0]], axis=0), codes.row_starts())
    part_places = begins.values + tf.gather(starts, begins.value_rowids())
    of_part = tf.searchsorted(part_places, places, side="right") - 1
    is_match = tf.strings.regex_full_match(parts.values, pattern)
    return tf.gather(tf.concat([is_match, [False]], axis=0), tf.maximum(of_part, 0))


def _with_lengths(values, lengths):
    """Returns [N, (values)] cut, or filled up with the last one, to so many in each row, flat."""
    # Python and TensorFlow may know different versions of Unicode, and count characters differently.
    wanted = tf.ragged.range(lengths)
    rows = wanted.value_rowids()
    last = tf.cast(values.row_lengths(), tf.int32) - 1
    places = tf.cast(tf.gather(values.row_starts(), rows), tf.int32) + tf.minimum(wanted.values, tf.gather(last, rows))
    return tf.gather(tf.concat([values.values, [0]], axis=0), tf.maximum(places, 0))


@functools.cache
def _cleaned_kinds():
    return KindOfCharacter(lambda character: {"": _REMOVED, " ": _SPACES}.get(clean_character(character), _KEPT))


@functools.cache
def _mark_kinds():
    return KindOfCharacter(lambda character: int(unicodedata.category(character) == "Mn"))


@functools.cache
def _combining_kinds():
    return KindOfCharacter(lambda character: int(unicodedata.combining(character) != 0))


@functools.cache
def _squeezed_kinds():
    return KindOfCharacter(lambda character: int(is_squeezed(character)))


@functools.cache
def _decomposition():
    # Syllables are composed of the same letters again, and no letter is a mark.
    return Replacement(
        lambda character: character if "가" <= character <= "힣" else unicodedata.normalize("NFD", character)
    )


@functools.cache
def _starter_pairs():
    return StarterPairs()
