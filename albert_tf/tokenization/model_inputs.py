"""Ids of texts or pairs to the model's inputs, with TensorFlow ops alone."""

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.texts import kept_lengths
from albert_tf.tokenization.arrays import Array, expanded, gather, where
from albert_tf.tokenization.vocabulary import CLS, PAD, SEP, Vocabulary


def pack_segments(
    segments: list[tf.RaggedTensor], vocabulary: Vocabulary, max_seq_length: int, pads_to_longest: bool = False
) -> dict[str, tf.Tensor]:
    """Puts special tokens around the ids of texts, cuts the end of the longer text off, and pads.

    Segments are one or two ragged int32 tensors [N, (pieces)]. Returns int32 [N, S] `input_ids`, `input_mask` and
    `segment_ids`; with `pads_to_longest`, S is that of the longest row. Errors are those of `check_packing`.
    """
    check_packing(vocabulary, max_seq_length)
    room = max_seq_length - vocabulary.num_special(len(segments))
    lengths = [tf.cast(segment.row_lengths(), tf.int64) for segment in segments]
    lengths = kept_lengths(lengths, room, vocabulary.truncation, tf.minimum, tf.maximum)
    begin = tf.ones_like(lengths[0])  # behind [CLS]
    begins, ends = [], []
    for length, num_separators in zip(lengths, [vocabulary.num_separators] * (len(segments) - 1) + [1]):
        begins.append(begin)
        begin += length + num_separators
        ends.append(begin)
    padded_length = max_seq_length
    if pads_to_longest:  # where there is no text, one piece: no model reads none
        padded_length = tf.maximum(tf.constant(1, tf.int64), tf.reduce_max(ends[-1]))
    columns = tf.range(padded_length, dtype=tf.int64)[None]
    is_there = columns < ends[-1][:, None]
    features = {
        "input_ids": _ids_of_rows(segments, begins, lengths, columns, is_there, vocabulary),
        "input_mask": is_there,
        "segment_ids": is_there & (columns >= ends[0][:, None]),
    }
    return {name: tf.cast(values, tf.int32) for name, values in features.items()}


def pack_arrays(segments: list[list[np.ndarray]], vocabulary: Vocabulary, max_seq_length: int) -> dict[str, np.ndarray]:
    """Returns the arrays of `pack_segments` for one or two segments, each N arrays of ids."""
    ragged = [
        tf.RaggedTensor.from_row_lengths(np.concatenate(rows, dtype=np.int32, casting="unsafe"), list(map(len, rows)))
        for rows in segments
    ]
    return {name: values.numpy() for name, values in pack_segments(ragged, vocabulary, max_seq_length).items()}


def _ids_of_rows(segments, begins, lengths, columns, is_there, vocabulary):
    """Returns ids [N, S]: of each segment so many pieces as its length from its begin on, special tokens elsewhere."""
    # All pieces, one segment behind the other, and behind them the special tokens.
    specials = tf.constant([vocabulary.id_of(token) for token in (CLS, SEP, PAD)], segments[0].dtype)
    table = tf.concat([*(segment.flat_values for segment in segments), specials], axis=0)
    cls, sep, pad = (tf.size(table, tf.int64) - place for place in (3, 2, 1))
    places = tf.where(columns == 0, cls, tf.where(is_there, sep, pad))
    first = tf.constant(0, tf.int64)
    for segment, begin, length in zip(segments, begins, lengths):
        is_piece = (columns >= begin[:, None]) & (columns < (begin + length)[:, None])
        starts = first + tf.cast(segment.row_starts(), tf.int64) - begin
        places = tf.where(is_piece, starts[:, None] + columns, places)
        first += tf.size(segment.flat_values, tf.int64)
    return tf.gather(table, places)


def check_packing(vocabulary: Vocabulary, max_seq_length: int) -> None:
    """Raises InputError if a special token is missing, or S has no room for those of a pair."""
    vocabulary.require(PAD, CLS, SEP)
    least = vocabulary.num_special(2)
    if max_seq_length < least:
        raise InputError(f"max_seq_length must be at least {least}. Received: {max_seq_length}")


def cut_windows(lengths: Array, room: int | Array, stride: int) -> tuple[Array, Array, Array]:
    """Cuts texts of so many pieces, int [N], into windows of at most `room` pieces, a number or int [N].

    One begins every `stride` pieces, at most half of the room, so that the pieces at its border stand well inside
    another; the last ends where its text does. Returns of W windows, those of a text one after the other, which text
    each is of, where it begins there and where it ends, int [W] each.
    """
    rooms = 0 * lengths + room
    strides = where(rooms > 1, rooms // 2, 1)
    strides = where(strides < stride, strides, stride)
    beyond = lengths - rooms
    numbers, rows = expanded(1 + where(beyond > 0, -(-beyond // strides), 0))
    begins = numbers * gather(strides, rows)
    ends, last = begins + gather(rooms, rows), gather(lengths, rows)
    return rows, begins, where(ends < last, ends, last)
