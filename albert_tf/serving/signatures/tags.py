"""Named entities with their places in the text, inside a graph; the same as `Entities.predict` finds."""

import typing

import tensorflow as tf

from albert_tf.asking.answers import DEFAULT, LENGTHS
from albert_tf.finetuning.ner.alignment import IGNORED
from albert_tf.modeling.heads import CHARACTERS_SHAPE, REACH
from albert_tf.serving.signatures.base import Signatures, is_space, slices, substrings
from albert_tf.tokenization.arrays import expanded
from albert_tf.tokenization.unicode_tables import differs

_NO_TYPE = -1


class _Units(typing.NamedTuple):
    """Words or characters of N texts that are tagged, text after text, each int32 [U]."""

    rows: tf.Tensor  # which text each is of
    begins: tf.Tensor  # its first character in the text
    ends: tf.Tensor  # the character behind its last one


class EntitySignatures(Signatures):
    """Of `Entities`: `text` string [N].

    Returns, for E entities of the text with most of them, `types` and `texts` string [N, E], and `begins` and `ends`
    int32 [N, E], from which character to before which of the text; "" and -1 behind the last entity of a text; and
    `lengths` int32 [N], how many entities each text has.
    """

    def functions(self):
        return {DEFAULT: self._find}

    def _find(self, text):
        ids, *offsets = self._tokenizer.encode_with_offsets(text)
        characters = tf.strings.unicode_decode(text, "UTF-8")
        units, pieces = _read_units(_units_of(characters, self._task.reads_words), *offsets, characters)
        types, are_begins = self._read_tags(pieces, self._tags_of_pieces(ids, units, pieces, characters))

        is_inside = types > _NO_TYPE
        is_first = is_inside & (are_begins | differs(units.rows) | differs(types))
        rows, begins = (tf.boolean_mask(values, is_first) for values in (units.rows, units.begins))
        # All units of an entity have its number.
        numbers = tf.boolean_mask(tf.cumsum(tf.cast(is_first, tf.int32)) - 1, is_inside)
        ends = tf.math.segment_max(tf.boolean_mask(units.ends, is_inside), numbers)
        names = tf.gather(tf.constant(self._task.types), tf.boolean_mask(types, is_first))
        found = {"types": names, "texts": substrings(characters, rows, begins, ends), "begins": begins, "ends": ends}
        num_texts = tf.cast(tf.size(text), tf.int64)
        filled_up = {
            name: tf.RaggedTensor.from_value_rowids(values, tf.cast(rows, tf.int64), num_texts).to_tensor(
                "" if values.dtype == tf.string else -1
            )
            for name, values in found.items()
        }
        return {**filled_up, LENGTHS: tf.math.bincount(rows, minlength=tf.size(text), maxlength=tf.size(text))}

    def _tags_of_pieces(self, ids, units, pieces, characters):
        """Returns the most probable tag of each piece of all texts, int32 [P]; long texts are read in several parts.

        Units are read from `pieces`, int32 [U]; ids are int32 [N, (pieces)], and characters int32 [N, (characters)].
        """
        room = self._max_seq_length - 2
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        parts, rows = expanded(tf.maximum(1, -(-lengths // room)))
        begins = parts * room
        ends = tf.minimum(begins + room, tf.gather(lengths, rows))

        def in_parts(values, nothing):
            parts = slices(ids.with_values(values), rows, begins, ends).to_tensor(nothing)
            # [CLS] and [SEP] stand around each.
            return tf.pad(parts, [[0, 0], [1, 1], *[[0, 0]] * (values.shape.rank - 1)], constant_values=nothing)

        num_pieces = tf.size(ids.values)
        is_unread = tf.equal(tf.math.bincount(pieces, minlength=num_pieces, maxlength=num_pieces), 0)
        batch = self._inputs.pack(slices(ids, rows, begins, ends))
        batch["label_ids"] = in_parts(tf.where(is_unread, IGNORED, 0), IGNORED)
        if self._task.config.character_ngrams:
            batch["characters"] = in_parts(_characters_around(units, pieces, num_pieces, characters), 0)
        found = self._task_outputs(batch)["found_ids"]
        return tf.RaggedTensor.from_tensor(found[:, 1:], ends - begins).values

    def _read_tags(self, pieces, tags_of_pieces):
        """Returns int32 [U], the type of each unit, -1 for none, and bool [U], whether it begins an entity."""
        labels, tags = self._task.labels, tf.gather(tags_of_pieces, pieces)
        kinds = [label.partition("-")[2] for label in labels]
        types = tf.constant([self._task.types.index(kind) if kind else _NO_TYPE for kind in kinds])
        are_begins = tf.constant([label.startswith("B-") for label in labels])
        # Of the units that one piece holds the first has its tag, and the others go on with it.
        return tf.gather(types, tags), tf.gather(are_begins, tags) & differs(pieces)


def _units_of(characters, are_words):
    """Returns the units of texts, as `units_of` of `finetuning.ner.tagged_text`."""
    positions, rows = expanded(tf.cast(characters.row_lengths(), tf.int32))
    is_part = ~is_space(characters.values)
    if not are_words:
        rows, begins = tf.boolean_mask(rows, is_part), tf.boolean_mask(positions, is_part)
        return _Units(rows, begins, begins + 1)
    is_border = differs(rows) | differs(is_part)
    words = tf.boolean_mask(tf.cumsum(tf.cast(is_border & is_part, tf.int32)) - 1, is_part)
    rows, positions = tf.boolean_mask(rows, is_part), tf.boolean_mask(positions, is_part)
    begins, ends = tf.math.segment_min(positions, words), tf.math.segment_max(positions, words) + 1
    return _Units(tf.math.segment_min(rows, words), begins, ends)


def _characters_around(units, pieces, num_pieces, characters):
    """Returns the characters around each of P tokens, int32 [P, 2, 5], as `finetuning.ner.alignment` does."""
    spaces = tf.fill([characters.nrows(), REACH], ord(" "))
    padded = tf.concat([spaces, characters, spaces], axis=1)
    starts = tf.gather(tf.cast(padded.row_starts(), tf.int32), units.rows)
    is_first = differs(pieces)
    is_last = tf.reverse(differs(tf.reverse(pieces, [0])), [0])
    places = [tf.boolean_mask(starts + units.begins, is_first), tf.boolean_mask(starts + units.ends - 1, is_last)]
    around = tf.gather(padded.values, tf.stack(places, axis=1)[..., None] + tf.range(CHARACTERS_SHAPE[1]))
    return tf.scatter_nd(tf.boolean_mask(pieces, is_first)[:, None], around, [num_pieces, *CHARACTERS_SHAPE])


def _read_units(units, piece_begins, piece_ends, characters):
    """Returns the units that are read, and the first token that holds a character of each, int32 [U].

    Tokens begin and end in their texts, int [N, (tokens)].
    """
    # Counted through all texts, so that one search does for all.
    starts = tf.cast(characters.row_starts(), tf.int32)
    before_pieces, before_units = tf.gather(starts, piece_begins.value_rowids()), tf.gather(starts, units.rows)
    begins, ends = (tf.cast(values.values, tf.int32) + before_pieces for values in (piece_begins, piece_ends))
    pieces = tf.cast(tf.where(begins < ends)[:, 0], tf.int32)
    firsts = tf.searchsorted(tf.gather(ends, pieces), before_units + units.begins, side="right")
    # None is after the last one, and so holds nothing.
    begins = tf.concat([tf.gather(begins, pieces), [tf.int32.max]], axis=0)
    is_read = tf.gather(begins, firsts) < before_units + units.ends
    units = _Units(*(tf.boolean_mask(values, is_read) for values in units))
    return units, tf.gather(pieces, tf.boolean_mask(firsts, is_read))
