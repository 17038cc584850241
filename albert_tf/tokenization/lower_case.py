"""Lower case that depends on what stands around a letter, with TensorFlow ops alone."""

import functools

import tensorflow as tf

from albert_tf.tokenization.characters import Characters
from albert_tf.tokenization.code_point_tables import KindOfCharacter

CAPITAL_SIGMA, _FINAL_SIGMA = "Σς"
_NEITHER, _CASED, _CASE_IGNORABLE = range(3)


def end_words_in_sigma(characters: Characters) -> Characters:
    """Gives a capital sigma at the end of a word, which has a lower case of its own there, that form."""
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
