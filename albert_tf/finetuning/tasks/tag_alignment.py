"""From tagged words or characters to the tokens that a model reads, and back.

A unit is read from the first token that holds one of its characters: tokenizers remove some, such as zero-width spaces.
Where one token holds several units, as is common in Korean, the first of them gives the token its tag and gets the
token's; the others go on with it. A unit that no token holds is not read: it makes and breaks no entity.
"""

import dataclasses

import numpy as np

from albert_tf.base.files import replace_halves
from albert_tf.finetuning.task import Features
from albert_tf.finetuning.tasks.tagged_text import TaggedText, go_on_with, leave_out, put_between
from albert_tf.modeling.heads import CHARACTERS_SHAPE, REACH
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.base import pieces_of_spans
from albert_tf.tokenization.model_inputs import pack_arrays
from albert_tf.tokenization.vocabulary import CLS, PAD, SEP

# The label of a position that is not tagged.
IGNORED = -1


def encode_tagged(
    texts: list[TaggedText], labels: tuple[str, ...], tokenizer: Tokenizer, max_seq_length: int
) -> Features:
    """Encodes texts as `[CLS] text [SEP]`; one that is too long is cut between two tokens, into several windows.

    Returns:
        Arrays of N windows:
            `input_ids`, `input_mask`, `segment_ids` int32 [N, S].
            `label_ids` int32 [N, S]: the tag where a unit is read for the first time, 0 if it is unknown; elsewhere
                `IGNORED`.
            `text_indices` int32 [N], ascending.
            `units` object [N]: int [U, 2], a unit that is read in this window, and its position.
    """
    tokenizer.vocabulary.require(PAD, CLS, SEP)
    ids_of_labels = {label: number for number, label in enumerate(labels)}
    room = max_seq_length - 2
    parts, label_rows, indices, units_of_rows = [], [], [], []
    for index, (text, encoding) in enumerate(zip(texts, tokenizer.encode_batch([text.text for text in texts]))):
        ids = encoding.ids[1:-1]
        offsets = np.array(encoding.offsets[1:-1], int).reshape([-1, 2])
        pieces, _ = pieces_of_spans(np.array(text.units, int).reshape([-1, 2]), offsets)
        label_ids = np.zeros(len(text.units), np.int32)
        if text.tags:
            unread = set(np.flatnonzero(pieces < 0).tolist())
            label_ids[pieces >= 0] = [ids_of_labels.get(tag, 0) for tag in leave_out(text.tags, unread)]
        for begin in range(0, max(1, len(ids)), room):
            units = np.flatnonzero((pieces >= begin) & (pieces < begin + room))
            positions = pieces[units] - begin + 1
            labels_of_row = np.full(max_seq_length, IGNORED, np.int32)
            for unit, position in zip(units[::-1], positions[::-1]):  # the first unit of a piece stays
                labels_of_row[position] = label_ids[unit]
            parts.append(ids[begin : begin + room])
            label_rows.append(labels_of_row)
            indices.append(index)
            units_of_rows.append(np.stack([units, positions], axis=1))
    units = np.empty(len(parts), object)
    units[:] = units_of_rows
    return {
        **pack_arrays([parts], tokenizer.vocabulary, max_seq_length),
        "label_ids": np.array(label_rows),
        "text_indices": np.array(indices, np.int32),
        "units": units,
    }


def characters_around(texts: list[TaggedText], features: Features) -> np.ndarray:
    """Returns the code points around the first and the last character of what is read at each position."""
    # int32 [N, S, 2, 5]; spaces beyond the text, and 0 where no unit is read.
    padding = " " * REACH
    padded = (f"{padding}{replace_halves(text.text)}{padding}" for text in texts)
    code_points = [np.frombuffer(text.encode("utf-32-le"), "<i4") for text in padded]
    found = np.zeros([*features["input_ids"].shape, *CHARACTERS_SHAPE], np.int32)
    for row, index, units in zip(found, features["text_indices"], features["units"]):
        numbers, positions = units.T
        spans = np.array([texts[index].units[number] for number in numbers], int).reshape([-1, 2])
        around = code_points[index][(spans - [0, 1])[..., None] + np.arange(CHARACTERS_SHAPE[1])]
        # Of the units that one piece holds, the first character of the first, and the last one of the last.
        row[positions[::-1], 0] = around[::-1, 0]
        row[positions, 1] = around[:, 1]
    return found


def tags_of_units(texts: list[TaggedText], features: Features, tags_of_positions: list[np.ndarray]) -> list[list[str]]:
    """Returns the tag of each unit of each text, given the tags of each window's positions."""
    # A unit that is not read goes on with the entity that the units around it are of, or else is outside of all.
    found = [[None] * len(text.units) for text in texts]
    for index, units, tags in zip(features["text_indices"], features["units"], tags_of_positions):
        previous, tag = None, None
        for unit, position in units:
            tag = go_on_with(tag) if position == previous else tags[position]
            found[index][unit], previous = tag, position
    return [put_between(tags) for tags in found]


def unread_units(texts: list[TaggedText], features: Features) -> list[list[int]]:
    """Returns the units of each text that no piece holds; arguments as for `tags_of_units`."""
    is_unread = [np.ones(len(text.units), bool) for text in texts]
    for index, units in zip(features["text_indices"], features["units"]):
        is_unread[index][units[:, 0]] = False
    return [np.flatnonzero(each).tolist() for each in is_unread]


def without_units(text: TaggedText, units: list[int]) -> TaggedText:
    """Returns a text and its tags without some units."""
    if not units:
        return text
    left = tuple(each for unit, each in enumerate(text.units) if unit not in units)
    return dataclasses.replace(text, units=left, tags=tuple(leave_out(text.tags, units)))


def count_split_pieces(texts: list[TaggedText], features: Features) -> int:
    """Returns how many pieces hold characters whose tags one tag can't give, so that borders are lost."""
    count = 0
    for index, units in zip(features["text_indices"], features["units"]):
        tags, previous, is_counted = texts[index].tags, None, False
        for unit, position in units:
            if position != previous:
                previous, is_counted = position, False
            elif not is_counted and tags[unit] != go_on_with(tags[unit - 1]):
                count, is_counted = count + 1, True
    return count
