"""The normalisation of text before a SentencePiece model, which has a normaliser of its own, gets it.

The steps are those of the original's `preprocess_text`, and of Hugging Face's ALBERT tokenizer: every run of spaces
becomes one, none at the ends; `` and '' become a quotation mark; characters are taken apart (NFKD) and lose their
accents; letters are lower-cased. Hangul is taken apart too: models that were trained so put it together again (NFKC).

All of it is done by tables of Python's Unicode database with TensorFlow ops, in the same way in a graph and outside.
"""

import dataclasses
import unicodedata

import tensorflow as tf

from albert_tf.tokenization.unicode_tables import (
    LOWER_CASE,
    Characters,
    KindOfCharacter,
    Replacement,
    characters_of,
    differs,
    dropped,
    end_words_in_sigma,
    kept,
    replaced,
    texts_of,
)

_SPACE, _QUOTATION_MARK = map(ord, ' "')
_GRAVE, _APOSTROPHE = map(ord, "`'")

# Text that only lower-casing of ASCII changes: most English text. Matching it takes a fraction of the steps' time.
_PLAIN = "!-~"
_HANGUL = "가-힣ㄱ-ㅣ"
_PAIR_OF_MARKS = ".*(``|'').*"


@dataclasses.dataclass(frozen=True)
class SentencePieceOptions:
    lower_case: bool = True  # map letters to lower case
    strip_accents: bool = True  # take characters apart (NFKD), and drop combining marks
    normalize_quotes: bool = False  # make `` and '' a quotation mark


class SentencePieceNormalizer:
    """Normalises texts with TensorFlow ops; `lowers_first` first lower-cases letters, each by itself."""

    def __init__(self, options: SentencePieceOptions, lowers_first: bool = False):
        self._options, self._lowers_first = options, lowers_first and options.lower_case
        kept = _PLAIN if options.strip_accents else _PLAIN + _HANGUL
        self._plain_text = f"([{kept}]+( [{kept}]+)*)?"

    def normalize(self, texts: tf.Tensor) -> tf.Tensor:
        is_plain = tf.strings.regex_full_match(texts, self._plain_text)
        if self._options.normalize_quotes:
            is_plain &= ~tf.strings.regex_full_match(texts, _PAIR_OF_MARKS)
        rows = tf.where(~is_plain)
        plain = tf.strings.lower(texts) if self._options.lower_case else texts
        return tf.cond(
            tf.size(rows) > 0,
            lambda: tf.tensor_scatter_nd_update(plain, rows, self._normalize_any(tf.gather_nd(texts, rows))),
            lambda: plain,
        )

    def characters(self, texts: tf.Tensor) -> Characters:
        """Returns the characters of normalised texts, and where they stand in the texts as given."""
        characters = characters_of(texts)
        if self._lowers_first:
            characters = replaced(characters, LOWER_CASE)
        characters = _collapse_spaces(characters)
        if self._options.normalize_quotes:
            characters = _join_pairs_of_marks(characters)
        if self._options.strip_accents:
            characters = _strip_accents(characters)
        if self._options.lower_case:
            characters = replaced(end_words_in_sigma(characters), LOWER_CASE)
        return characters

    def _normalize_any(self, texts):
        return texts_of(self.characters(texts), tf.size(texts))


def _collapse_spaces(characters):
    """Leaves one space of each run of them between other characters."""
    is_space = _IS_SPACE(characters.codes) > 0
    begins_text = differs(characters.rows)
    begins_run = differs(is_space) | begins_text
    # Of what follows the run, which is no space; a run at the end of a text has none.
    others = tf.concat([tf.boolean_mask(characters.rows, ~is_space), [-1]], axis=0)
    num_before = tf.cumsum(tf.cast(~is_space, tf.int32))
    is_followed = tf.equal(tf.gather(others, num_before), characters.rows)
    is_kept = ~is_space | (begins_run & ~begins_text & is_followed)
    characters = characters._replace(codes=tf.where(is_space, _SPACE, characters.codes))
    return kept(characters, is_kept)


def _join_pairs_of_marks(characters):
    """Makes each two of the same mark a quotation mark, from the first of a run on."""
    codes = characters.codes
    is_mark = tf.equal(codes, _GRAVE) | tf.equal(codes, _APOSTROPHE)
    begins_run = differs(codes) | differs(characters.rows)
    runs = tf.cumsum(tf.cast(begins_run, tf.int32)) - 1
    places = tf.range(tf.size(codes))
    is_even = tf.equal((places - tf.gather(tf.boolean_mask(places, begins_run), runs)) % 2, 0)
    is_second = is_mark & ~is_even
    is_first = is_mark & tf.concat([is_second, [False]], axis=0)[1:]
    return dropped(characters._replace(codes=tf.where(is_first, _QUOTATION_MARK, codes)), ~is_second)


def _strip_accents(characters):
    _, sources = _WITHOUT_ACCENTS(characters.codes)
    leaves_something = tf.math.unsorted_segment_sum(tf.ones_like(sources), sources, tf.size(characters.codes)) > 0
    return replaced(dropped(characters, leaves_something), _WITHOUT_ACCENTS)


def _without_marks(character):
    return "".join(part for part in unicodedata.normalize("NFKD", character) if not unicodedata.combining(part))


_IS_SPACE = KindOfCharacter(lambda character: int(character.isspace()))
_WITHOUT_ACCENTS = Replacement(_without_marks)
