"""Characters of texts and where they come from, for steps of normalisation with TensorFlow ops alone."""

import functools
import typing

import tensorflow as tf

from albert_tf.tokenization.code_point_tables import KindOfCharacter, Replacement

CAPITAL_SIGMA, _FINAL_SIGMA = "Σς"
_NEITHER, _CASED, _CASE_IGNORABLE = range(3)


class Characters(typing.NamedTuple):
    """Characters of several texts, one text after the other, and where they come from, int32 [M] each."""

    codes: tf.Tensor  # their code points
    begins: tf.Tensor  # where what they stand for begins in its text
    ends: tf.Tensor  # where it ends
    rows: tf.Tensor  # their text, ascending


def characters_of(texts: tf.Tensor) -> Characters:
    """Returns the characters of texts string [N]; bytes that are no UTF-8 become U+FFFD."""
    decoded = tf.strings.unicode_decode(texts, "UTF-8")
    rows = tf.cast(decoded.value_rowids(), tf.int32)
    begins = tf.range(tf.size(decoded.values)) - tf.gather(tf.cast(decoded.row_starts(), tf.int32), rows)
    return Characters(decoded.values, begins, begins + 1, rows)


def replaced(characters: Characters, replacement: Replacement) -> Characters:
    """Replaces characters; several that take the place of one all have its span."""
    codes, sources = replacement(characters.codes)
    return Characters(codes, *(tf.gather(values, sources) for values in characters[1:]))


def dropped(characters: Characters, is_kept: tf.Tensor) -> Characters:
    """Drops characters; their spans go to the last character before them that is kept, if there is one."""
    groups = tf.cumsum(tf.cast(is_kept, tf.int32)) - 1
    kept = Characters(*(tf.boolean_mask(values, is_kept) for values in characters))
    is_of_text = tf.equal(tf.gather(tf.concat([[-1], kept.rows], axis=0), groups + 1), characters.rows)
    ends = tf.math.segment_max(tf.where(is_of_text, characters.ends, 0), groups + 1)
    return kept._replace(ends=ends[1:][: tf.size(kept.ends)])


def differs(values: tf.Tensor) -> tf.Tensor:
    """Returns where a value of [M] differs from the one before it, bool [M]; True for the first."""
    return tf.concat([tf.ones_like(values[:1], tf.bool), values[1:] != values[:-1]], axis=0)


@functools.cache
def lower_case() -> Replacement:
    return Replacement(str.lower)


def end_words_in_sigma(characters: Characters) -> Characters:
    """Gives a capital sigma at the end of a word the lower case that it has there."""
    return tf.cond(
        tf.reduce_any(tf.equal(characters.codes, ord(CAPITAL_SIGMA))),
        lambda: characters._replace(codes=_with_final_sigmas(characters)),
        lambda: characters,
    )


def _with_final_sigmas(characters):
    """Returns the codes, by the rule of Unicode: after a cased letter and before none, other marks passed over."""
    kinds = _kinds_of_case()(characters.codes)
    places = tf.where(tf.not_equal(kinds, _CASE_IGNORABLE))[:, 0]
    codes, rows, kinds = (tf.gather(values, places) for values in (characters.codes, characters.rows, kinds))
    cased_rows = tf.where(tf.equal(kinds, _CASED), rows, -1)
    before = tf.concat([[-1], cased_rows], axis=0)[: tf.size(rows)]
    behind = tf.concat([cased_rows, [-1]], axis=0)[1:]
    is_final = tf.equal(codes, ord(CAPITAL_SIGMA)) & tf.equal(before, rows) & tf.not_equal(behind, rows)
    places = tf.boolean_mask(places, is_final)
    finals = tf.fill([tf.size(places)], ord(_FINAL_SIGMA))
    return tf.tensor_scatter_nd_update(characters.codes, places[:, None], finals)


def _kind_of_case(character):
    if f"AΣ{character}".lower()[1] == "σ":
        return _CASED
    return _CASE_IGNORABLE if f"AΣ{character}a".lower()[1] == "σ" else _NEITHER


@functools.cache
def _kinds_of_case():
    return KindOfCharacter(_kind_of_case)
