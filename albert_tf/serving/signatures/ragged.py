"""Parts of texts, as characters or as pieces, inside a graph."""

import re

import tensorflow as tf

# All that Python's \s takes for a space; there is none above.
_SPACES = [code_point for code_point in range(0x3001) if re.match(r"\s", chr(code_point))]


def slices(values: tf.RaggedTensor, rows: tf.Tensor, begins: tf.Tensor, ends: tf.Tensor) -> tf.RaggedTensor:
    """Returns parts of rows of values [N, (values)], [M, (values)]: their rows, begins and ends there, int [M] each."""
    starts = tf.gather(tf.cast(values.row_starts(), tf.int32), rows)
    positions = tf.ragged.range(starts + begins, starts + ends)
    return positions.with_values(tf.gather(values.values, positions.values))


def count_up(counts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns for each of `counts` int32 [N] its index as often as it says, and 0, 1, ... beside: int32 [M] each."""
    numbers = tf.ragged.range(counts)
    return tf.cast(numbers.value_rowids(), tf.int32), numbers.values


def substrings(characters: tf.RaggedTensor, rows: tf.Tensor, begins: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Returns parts of texts, string [M]; arguments as for `slices` of int32 characters [N, (characters)]."""
    return tf.strings.unicode_encode(slices(characters, rows, begins, ends), "UTF-8")


def is_space(characters: tf.Tensor) -> tf.Tensor:
    """Returns which characters are spaces, bool of the shape of int32 `characters`."""
    spaces = tf.constant(_SPACES)
    places = tf.minimum(tf.searchsorted(spaces, characters), len(_SPACES) - 1)
    return tf.equal(tf.gather(spaces, places), characters)
