"""The normalisation of BERT's own tokenizer, for vocabularies that come from it: ids are those of its library.

Its steps, as `BertNormalizer` of the library `tokenizers` has them: control, format and private-use characters are
removed; spaces become " "; ideographs are set off by spaces; text is decomposed (NFD, Hangul too) and combining marks
dropped, and not composed again; letters are lower-cased one by one. Every step but the order of combining characters
looks at one character alone, so tables say all.
"""

import functools
import itertools
import typing

import tensorflow as tf

from albert_tf.tokenization import bert_unicode
from albert_tf.tokenization.characters import Characters, characters_of, differs, dropped, replaced
from albert_tf.tokenization.code_point_tables import KindOfCharacter, Replacement

# Private use, all of two planes but their last two characters; larger than the tables go.
_PRIVATE_PLANES = 0xF0000
_LAST_TWO = 0xFFFE


class _Tables(typing.NamedTuple):
    before_marks: Replacement
    combining_class: KindOfCharacter | None
    is_mark: KindOfCharacter | None
    after_marks: Replacement | None


def normalize(texts: tf.Tensor, lower_case: bool, strip_accents: bool) -> tf.Tensor:
    """Normalises UTF-8 strings of any shape with TensorFlow ops; runs of spaces become one, none at the ends."""
    characters = normalize_characters(characters_of(tf.reshape(texts, [-1])), lower_case, strip_accents)
    rows = tf.RaggedTensor.from_value_rowids(
        characters.codes, tf.cast(characters.rows, tf.int64), tf.size(texts, tf.int64)
    )
    normalized = tf.strings.regex_replace(tf.strings.unicode_encode(rows, "UTF-8"), "  +", " ")
    return tf.reshape(tf.strings.strip(normalized), tf.shape(texts))


def normalize_characters(characters: Characters, lower_case: bool, strip_accents: bool) -> Characters:
    """Returns the normalised characters, among them spaces where there may be several or none at all."""
    tables = _tables(lower_case, strip_accents)
    is_kept = (characters.codes < _PRIVATE_PLANES) | (characters.codes % 0x10000 >= _LAST_TWO)
    characters = Characters(*(tf.boolean_mask(values, is_kept) for values in characters))
    characters = replaced(characters, tables.before_marks)
    if strip_accents:
        characters = _in_order(characters, tables.combining_class)
        characters = dropped(characters, tables.is_mark(characters.codes) < 1)
        characters = replaced(characters, tables.after_marks)
    return characters


def _in_order(characters, combining_class):
    """Sorts each run of combining characters by their class, as Unicode's canonical ordering does."""
    classes = combining_class(characters.codes)
    begins_run = (classes < 1) | differs(characters.rows)
    runs = tf.cumsum(tf.cast(begins_run, tf.int64))
    order = tf.argsort(runs * 256 + tf.cast(classes, tf.int64), stable=True)
    return Characters(*(tf.gather(values, order) for values in characters))


@functools.cache
def _tables(lower_case, strip_accents):
    lower = bert_unicode.lower if lower_case else str
    if not strip_accents:
        return _Tables(Replacement(lambda character: _each(lower, bert_unicode.clean(character))), None, None, None)
    return _Tables(
        Replacement(lambda character: _each(bert_unicode.decompose, bert_unicode.clean(character))),
        KindOfCharacter(bert_unicode.combining_class),
        KindOfCharacter(lambda character: int(bert_unicode.is_mark(character))),
        Replacement(lower),
    )


def _each(change, text):
    return "".join(map(change, text))


def characters_with_spans(text: str, lower_case: bool, strip_accents: bool) -> list[tuple[str, tuple[int, int]]]:
    """Returns what `normalize_characters` does for one string in Python, with the span that each comes from.

    A mark that is dropped leaves its span to the character before it.
    """
    characters = [
        (part, (i, i + 1))
        for i, character in enumerate(text)
        if not "\ud800" <= character <= "\udfff"
        for part in bert_unicode.clean(character)
    ]
    if strip_accents:
        characters = _without_marks(characters)
    if lower_case:
        characters = [(part, span) for character, span in characters for part in bert_unicode.lower(character)]
    return characters


def _without_marks(characters):
    parts = [(part, span) for character, span in characters for part in bert_unicode.decompose(character)]
    kept = []
    for _, run in itertools.groupby(parts, lambda part: bert_unicode.combining_class(part[0]) > 0):
        for part, (begin, end) in sorted(run, key=lambda part: bert_unicode.combining_class(part[0])):
            if not bert_unicode.is_mark(part):
                kept.append((part, (begin, end)))
            elif kept:
                base, (base_begin, base_end) = kept[-1]
                kept[-1] = (base, (base_begin, max(base_end, end)))
    return kept


def stays_one(character: str, lower_case: bool, strip_accents: bool) -> bool | None:
    """Whether a character makes one other whatever stands beside it; None if it leaves nothing but spaces."""
    first = bert_unicode.decompose(character)[0]
    if strip_accents and (bert_unicode.is_mark(first) or bert_unicode.combining_class(first)):
        return False
    left = [part for part, _ in characters_with_spans(character, lower_case, strip_accents) if part != " "]
    return len(left) == 1 if left else None


def split_words(texts: tf.Tensor) -> tf.RaggedTensor:
    """Splits normalised strings [N] at spaces and around punctuation, string [N, (words)]."""
    return tf.strings.split(tf.strings.regex_replace(texts, f"({bert_unicode.PUNCTUATION})", r" \1 "))
