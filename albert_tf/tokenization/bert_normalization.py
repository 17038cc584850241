"""The normalisation of BERT's own tokenizers, for vocabularies that come from them.

Control and format characters are removed; spaces become " "; ideographs are set off by spaces; text is decomposed (NFD,
Hangul too) and combining marks dropped, and not composed again; letters are lower-cased. Every step but the order of
combining characters and Google's lower case of a sigma looks at one character alone, so tables say all.

The form "bert" is `BertNormalizer` of the library `tokenizers`, which transformers stands on; "google" is
`BasicTokenizer` of google-research/bert and google-research/albert, which keeps private use, lower-cases first, and
ends words in another sigma.
"""

import collections.abc
import functools
import re
import typing

import numpy as np
import tensorflow as tf

from albert_tf.tokenization import unicode_tables
from albert_tf.tokenization.arrays import cast, concat, cumsum, gather, searchsorted, stable_order, where
from albert_tf.tokenization.unicode_tables import (
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
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

# Private use, all of two planes but their last two characters; larger than the tables go.
_PRIVATE_PLANES = 0xF0000
_LAST_TWO = 0xFFFE

# Where texts may spell special tokens, each is one of these control characters until it is looked up. Those of the text
# itself are removed like any other, and so another stands in for them before.
SPECIAL_CHARACTERS = dict(zip(SPECIAL_TOKENS, unicode_tables.SPECIAL_CHARACTERS))
_OF_TEXT, _STAND_IN = f"[{unicode_tables.SPECIAL_CHARACTERS}]", "\x01"
_SPECIAL_TOKEN = "|".join(map(re.escape, SPECIAL_TOKENS))
_FIRST, _LENGTHS = ord(unicode_tables.SPECIAL_CHARACTERS[0]), tuple(map(len, SPECIAL_TOKENS))


class BertOptions(typing.NamedTuple):
    form: str  # "bert" or "google"
    lower_case: bool  # map letters to lower case
    strip_accents: bool  # take characters apart, Hangul too, and drop combining marks
    special_tokens_in_text: bool  # make one word of "[MASK]" and the like, that of `SPECIAL_CHARACTERS`


def mark_special_tokens(texts: list[str] | tf.Tensor, options: BertOptions) -> list[str] | tf.Tensor:
    """Returns texts in which special tokens, where they may spell them, are `SPECIAL_CHARACTERS`."""
    if not options.special_tokens_in_text:
        return texts
    if not tf.is_tensor(texts):
        texts = [re.sub(_OF_TEXT, _STAND_IN, text) for text in texts]
        return [re.sub(_SPECIAL_TOKEN, lambda match: SPECIAL_CHARACTERS[match[0]], text) for text in texts]

    def mark():
        marked = tf.strings.regex_replace(texts, _OF_TEXT, _STAND_IN)
        for token, character in SPECIAL_CHARACTERS.items():
            marked = tf.strings.regex_replace(marked, re.escape(token), character)
        return marked

    may_hold = tf.strings.regex_full_match(texts, f"(?s).*({_SPECIAL_TOKEN}|{_OF_TEXT}).*")
    return tf.cond(tf.reduce_any(may_hold), mark, lambda: texts)


def marked_characters(texts: list[str] | tf.Tensor, options: BertOptions) -> Characters:
    """Returns the characters of `mark_special_tokens`, and where in texts, strings or string [N], they stand."""
    characters = characters_of(mark_special_tokens(texts, options))
    if not options.special_tokens_in_text:
        return characters
    numbers = characters.codes - _FIRST
    is_special = (numbers >= 0) & (numbers < len(_LENGTHS))
    more = where(is_special, gather(_LENGTHS, where(is_special, numbers, 0)) - 1, 0)
    added = concat([[0], cumsum(more)])
    shifts = added[:-1] - gather(added, searchsorted(characters.rows, characters.rows))
    return characters._replace(begins=characters.begins + shifts, ends=characters.ends + shifts + more)


def normalize(texts: tf.Tensor, options: BertOptions) -> tf.Tensor:
    """Normalises UTF-8 strings of any shape, with special tokens marked; spaces are single, none at the ends."""
    characters = normalize_characters(characters_of(tf.reshape(texts, [-1])), options)
    normalized = tf.strings.regex_replace(texts_of(characters, tf.size(texts)), "  +", " ")
    return tf.reshape(tf.strings.strip(normalized), tf.shape(texts))


def normalize_characters(characters: Characters, options: BertOptions) -> Characters:
    """Returns the normalised characters, among them spaces where there may be several or none at all."""
    clean, before_marks = _replacements(options)
    if options.form == "bert":
        is_kept = (characters.codes < _PRIVATE_PLANES) | (characters.codes % 0x10000 >= _LAST_TWO)
        characters = kept(characters, is_kept)
    characters = replaced(characters, clean)
    if options.form == "google":
        if options.lower_case:
            characters = end_words_in_sigma(characters)
        characters = replaced(characters, before_marks)
    if options.strip_accents:
        characters = _in_order(characters)
        characters = dropped(characters, _IS_MARK(characters.codes) < 1)
    return replaced(characters, _LOWER) if options.form == "bert" and options.lower_case else characters


def _in_order(characters):
    """Sorts each run of combining characters by their class, as Unicode's canonical ordering does."""
    classes = _COMBINING_CLASS(characters.codes)
    runs = cumsum(cast((classes < 1) | differs(characters.rows), np.int64))
    order = stable_order(runs * 256 + cast(classes, np.int64))
    return Characters(*(gather(values, order) for values in characters))


@functools.cache
def _replacements(options):
    """Returns what becomes of characters that are cleaned, and then, of the form "google" alone, before marks go."""
    lower = unicode_tables.lower if options.lower_case else str
    decompose = unicode_tables.decompose if options.strip_accents else str
    if options.form == "google":
        before = Replacement(lambda character: _each(decompose, lower(character)))
        return Replacement(lambda character: _clean(character, options)), before
    return Replacement(lambda character: _each(decompose, _clean(character, options))), None


_COMBINING_CLASS = KindOfCharacter(unicode_tables.combining_class)
_IS_MARK = KindOfCharacter(lambda character: int(unicode_tables.is_mark(character)))
_LOWER = Replacement(unicode_tables.lower)


def _clean(character, options):
    if options.special_tokens_in_text and character in unicode_tables.SPECIAL_CHARACTERS:
        return character
    return unicode_tables.clean(character, options.form == "google")


def _each(change: collections.abc.Callable[[str], str], text: str) -> str:
    return "".join(map(change, text))


def split_words(texts: tf.Tensor) -> tf.RaggedTensor:
    """Splits normalised strings [N] at spaces and around punctuation, string [N, (words)]."""
    return tf.strings.split(tf.strings.regex_replace(texts, f"({unicode_tables.PUNCTUATION})", r" \1 "))
