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
import itertools
import re
import typing

import tensorflow as tf

from albert_tf.tokenization import unicode_tables
from albert_tf.tokenization.unicode_tables import (
    CAPITAL_SIGMA,
    Characters,
    KindOfCharacter,
    Replacement,
    characters_of,
    differs,
    dropped,
    end_words_in_sigma,
    replaced,
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


class _Tables(typing.NamedTuple):
    clean: Replacement
    before_marks: Replacement | None
    combining_class: KindOfCharacter | None
    is_mark: KindOfCharacter | None
    after_marks: Replacement | None


def mark_special_tokens(texts: tf.Tensor, options: BertOptions) -> tf.Tensor:
    """Returns strings in which special tokens, where texts may spell them, are `SPECIAL_CHARACTERS`."""
    if not options.special_tokens_in_text:
        return texts

    def mark():
        marked = tf.strings.regex_replace(texts, _OF_TEXT, _STAND_IN)
        for token, character in SPECIAL_CHARACTERS.items():
            marked = tf.strings.regex_replace(marked, re.escape(token), character)
        return marked

    may_hold = tf.strings.regex_full_match(texts, f"(?s).*({_SPECIAL_TOKEN}|{_OF_TEXT}).*")
    return tf.cond(tf.reduce_any(may_hold), mark, lambda: texts)


def marked_characters(texts: tf.Tensor, options: BertOptions) -> Characters:
    """Returns the characters of `mark_special_tokens`, and where in texts string [N] they stand."""
    characters = characters_of(mark_special_tokens(texts, options))
    if not options.special_tokens_in_text:
        return characters
    numbers = characters.codes - _FIRST
    is_special = (numbers >= 0) & (numbers < len(_LENGTHS))
    lengths = tf.where(is_special, tf.gather(_LENGTHS, tf.clip_by_value(numbers, 0, len(_LENGTHS) - 1)), 1)
    ends = tf.cumsum(lengths)
    before = tf.gather(tf.concat([[0], ends], axis=0), tf.searchsorted(characters.rows, characters.rows))
    return characters._replace(begins=ends - lengths - before, ends=ends - before)


def normalize(texts: tf.Tensor, options: BertOptions) -> tf.Tensor:
    """Normalises UTF-8 strings of any shape, with special tokens marked; spaces are single, none at the ends."""
    characters = normalize_characters(characters_of(tf.reshape(texts, [-1])), options)
    rows = tf.RaggedTensor.from_value_rowids(
        characters.codes, tf.cast(characters.rows, tf.int64), tf.size(texts, tf.int64)
    )
    normalized = tf.strings.regex_replace(tf.strings.unicode_encode(rows, "UTF-8"), "  +", " ")
    return tf.reshape(tf.strings.strip(normalized), tf.shape(texts))


def normalize_characters(characters: Characters, options: BertOptions) -> Characters:
    """Returns the normalised characters, among them spaces where there may be several or none at all."""
    tables = _tables(options)
    if options.form == "bert":
        is_kept = (characters.codes < _PRIVATE_PLANES) | (characters.codes % 0x10000 >= _LAST_TWO)
        characters = Characters(*(tf.boolean_mask(values, is_kept) for values in characters))
    characters = replaced(characters, tables.clean)
    if options.form == "google" and options.lower_case:
        characters = end_words_in_sigma(characters)
    if tables.before_marks is not None:
        characters = replaced(characters, tables.before_marks)
    if options.strip_accents:
        characters = _in_order(characters, tables.combining_class)
        characters = dropped(characters, tables.is_mark(characters.codes) < 1)
    return characters if tables.after_marks is None else replaced(characters, tables.after_marks)


def _in_order(characters, combining_class):
    """Sorts each run of combining characters by their class, as Unicode's canonical ordering does."""
    classes = combining_class(characters.codes)
    begins_run = (classes < 1) | differs(characters.rows)
    runs = tf.cumsum(tf.cast(begins_run, tf.int64))
    order = tf.argsort(runs * 256 + tf.cast(classes, tf.int64), stable=True)
    return Characters(*(tf.gather(values, order) for values in characters))


@functools.cache
def _tables(options):
    lower = unicode_tables.lower if options.lower_case else str
    decompose = unicode_tables.decompose if options.strip_accents else str
    marks = _mark_tables() if options.strip_accents else (None, None)
    if options.form == "google":
        before = Replacement(lambda character: _each(decompose, lower(character)))
        return _Tables(Replacement(lambda character: _clean(character, options)), before, *marks, None)
    clean = Replacement(lambda character: _each(decompose, _clean(character, options)))
    return _Tables(clean, None, *marks, Replacement(lower) if options.lower_case else None)


@functools.cache
def _mark_tables():
    return (
        KindOfCharacter(unicode_tables.combining_class),
        KindOfCharacter(lambda character: int(unicode_tables.is_mark(character))),
    )


def _clean(character, options):
    if options.special_tokens_in_text and character in unicode_tables.SPECIAL_CHARACTERS:
        return character
    return unicode_tables.clean(character, options.form == "google")


def _each(change: collections.abc.Callable[[str], str], text: str) -> str:
    return "".join(map(change, text))


def characters_with_spans(text: str, options: BertOptions) -> list[tuple[str, tuple[int, int]]]:
    """Returns the characters of `normalize_characters` for one string, with spans, which dropped marks extend."""
    characters = [
        (part, span)
        for character, span in _marked(text, options)
        if not "\ud800" <= character <= "\udfff"
        for part in _clean(character, options)
    ]
    if options.lower_case and options.form == "google":
        characters = _lowered(characters)
    if options.strip_accents:
        characters = _without_marks(characters)
    if options.lower_case and options.form == "bert":
        characters = [(part, span) for character, span in characters for part in unicode_tables.lower(character)]
    return characters


def _marked(text, options):
    place = 0
    for match in re.finditer(_SPECIAL_TOKEN, text) if options.special_tokens_in_text else ():
        yield from _with_places(text, place, match.start())
        yield SPECIAL_CHARACTERS[match[0]], match.span()
        place = match.end()
    yield from _with_places(text, place, len(text))


def _with_places(text, begin, end):
    for place in range(begin, end):
        character = text[place]
        yield _STAND_IN if character in unicode_tables.SPECIAL_CHARACTERS else character, (place, place + 1)


def _lowered(characters):
    whole = iter("".join(character for character, _ in characters).lower())
    lowered = []
    for character, span in characters:
        # Only in the whole text is it known whether a sigma ends a word.
        in_text = "".join(next(whole) for _ in character.lower())
        parts = in_text if character == CAPITAL_SIGMA else unicode_tables.lower(character)
        lowered += [(part, span) for part in parts]
    return lowered


def _without_marks(characters):
    parts = [(part, span) for character, span in characters for part in unicode_tables.decompose(character)]
    kept = []
    for _, run in itertools.groupby(parts, lambda part: unicode_tables.combining_class(part[0]) > 0):
        for part, (begin, end) in sorted(run, key=lambda part: unicode_tables.combining_class(part[0])):
            if not unicode_tables.is_mark(part):
                kept.append((part, (begin, end)))
            elif kept:
                base, (base_begin, base_end) = kept[-1]
                kept[-1] = (base, (base_begin, max(base_end, end)))
    return kept


def stays_one(character: str, options: BertOptions) -> bool | None:
    """Whether a character makes one other whatever stands beside it; None if it leaves nothing but spaces."""
    first = unicode_tables.decompose(character)[0]
    if options.strip_accents and (unicode_tables.is_mark(first) or unicode_tables.combining_class(first)):
        return False
    left = [part for part, _ in characters_with_spans(character, options) if part != " "]
    return len(left) == 1 if left else None


def split_words(texts: tf.Tensor) -> tf.RaggedTensor:
    """Splits normalised strings [N] at spaces and around punctuation, string [N, (words)]."""
    return tf.strings.split(tf.strings.regex_replace(texts, f"({unicode_tables.PUNCTUATION})", r" \1 "))
