"""Where pieces stand: from bytes of normalised texts to characters of the texts as given."""

import functools
import typing

import tensorflow as tf

from albert_tf.tokenization.characters import Characters, differs
from albert_tf.tokenization.code_point_tables import KindOfCharacter
from albert_tf.tokenization.normalization import clean_character
from albert_tf.tokenization.sentencepiece.model import SPACE_MARK

_SPACE, _REMOVED, _PART = range(3)


class Spans(typing.NamedTuple):
    """Where the pieces of several texts stand, text after text, each int32 [P]."""

    firsts: tf.Tensor  # the first character of each, counted through all normalised texts
    behinds: tf.Tensor  # the character behind its last one, the same for a piece that stands for none
    rows: tf.Tensor  # its text, ascending


def spans_of(byte_begins: tf.RaggedTensor, byte_ends: tf.RaggedTensor, characters: Characters) -> Spans:
    """Returns the spans in normalised texts of pieces that begin and end at bytes, int32 [N, (pieces)]."""
    sizes = 1 + sum(tf.cast(characters.codes >= least, tf.int32) for least in (0x80, 0x800, 0x10000))
    places = tf.concat([[0], tf.cumsum(sizes)], axis=0)  # where characters begin in all texts side by side
    rows = tf.cast(byte_begins.value_rowids(), tf.int32)
    text_begins = tf.gather(places, tf.searchsorted(characters.rows, rows))
    firsts, behinds = (
        tf.searchsorted(places[:-1], text_begins + tf.cast(values.values, tf.int32))
        for values in (byte_begins, byte_ends)
    )
    return Spans(firsts, behinds, rows)


def trimmed(spans: Spans, characters: Characters, is_space: tf.Tensor) -> Spans:
    """Returns spans of P pieces without spaces and removed characters at either end.

    The engine gives a piece all spaces before it, and only the last piece of several that stand for one character has a
    span that is not empty. `is_space`, bool [P], are pieces that are nothing but a space.
    """
    kinds = _kinds()(characters.codes)
    text_ends = tf.searchsorted(characters.rows, spans.rows, side="right")
    first, behind = _without(spans, tf.equal(kinds, _PART), text_ends)
    other_first, other_behind = _without(spans, kinds > _SPACE, text_ends)
    # A piece may stand for nothing but what is usually removed; a space never does, though it may stand beside it.
    has_others = (first >= behind) & (other_first < other_behind) & ~is_space
    first, behind = tf.where(has_others, other_first, first), tf.where(has_others, other_behind, behind)
    # Only the space before a text, and spaces that are there, stand for no character.
    is_empty = is_space & (first >= behind) & ((spans.firsts < spans.behinds) | differs(spans.rows))
    first = tf.where(is_empty, other_first, first)
    behind = tf.where(is_empty, first, tf.maximum(behind, tf.minimum(first + 1, text_ends)))
    return Spans(first, behind, spans.rows)


def _without(spans, is_kept, text_ends):
    """Returns the first character to keep from where a span begins, and the place behind its last one, int32 [P]."""
    places = tf.cast(tf.where(is_kept)[:, 0], tf.int32)
    nexts = tf.concat([places, [tf.size(is_kept)]], axis=0)
    first = tf.minimum(tf.gather(nexts, tf.searchsorted(places, spans.firsts)), text_ends)
    behinds = tf.concat([[0], places + 1], axis=0)
    return first, tf.gather(behinds, tf.searchsorted(places, spans.behinds))


def in_texts(spans: Spans, characters: Characters) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns where spans begin and end in the texts as given, int32 [P] each."""
    # One more, so that there is something to look up also where nothing is left of the texts.
    begins, ends, rows = (tf.concat([values, [-1]], axis=0) for values in characters[1:])
    text_begins = tf.searchsorted(characters.rows, spans.rows)
    last = tf.maximum(spans.behinds - 1, text_begins)
    # A space at the end of a text has nothing behind it.
    is_inside = tf.equal(tf.gather(rows, spans.firsts), spans.rows)
    begin = tf.where(is_inside, tf.gather(begins, spans.firsts), tf.gather(ends, last))
    return begin, tf.where(spans.firsts < spans.behinds, tf.gather(ends, last), begin)


def _kind_of(character):
    """Returns the kind of a character, of which only `_PART` may stand at the ends of a span."""
    return {" ": _SPACE, SPACE_MARK: _SPACE, "": _REMOVED}.get(clean_character(character), _PART)


@functools.cache
def _kinds():
    return KindOfCharacter(_kind_of)
