"""Ids of texts or pairs to the model's inputs as lists or arrays, truncated and padded as Hugging Face's tokenizers do.

`model_inputs` does the same for a fixed length inside a graph.
"""

import dataclasses
import itertools

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.tokenization.vocabulary import CLS, PAD, SEP, Vocabulary

_PADDING = {False: None, True: "longest", "longest": "longest", "max_length": "max_length"}
_TRUNCATION = {False: False, True: True, "longest_first": True}


@dataclasses.dataclass(frozen=True)
class BatchOptions:
    """How to truncate, pad and return encoded texts.

    Attributes:
        padding: False; True or "longest": up to the longest row; "max_length": up to `max_length`.
        truncation: False; True or "longest_first": down to `max_length`, of a pair the longer text first.
        max_length: Number of pieces, special tokens included.
        return_tensors: None for lists, "np" for NumPy arrays, "tf" for tensors.

    Raises:
        InputError: A value is unknown, or two values contradict each other.
    """

    padding: bool | str = False
    truncation: bool | str = False
    max_length: int | None = None
    return_tensors: str | None = None

    def __post_init__(self):
        choices = {"padding": _PADDING, "truncation": _TRUNCATION, "return_tensors": (None, "np", "tf")}
        for name, values in choices.items():
            if getattr(self, name) not in values:
                raise InputError(
                    f"{name} must be one of {', '.join(map(repr, values))}. Received: {getattr(self, name)!r}"
                )
        needs_length = self.truncates or self.pads_to == "max_length"
        if needs_length and self.max_length is None:
            what = f"truncation={self.truncation!r}" if self.truncates else f"padding={self.padding!r}"
            raise InputError(f"{what} needs max_length; pass the number of pieces, special tokens included")
        if self.max_length is not None and not needs_length:
            raise InputError(
                f"max_length={self.max_length} has no effect without truncation=True or padding='max_length'; pass one "
                "of them"
            )

    @property
    def pads_to(self) -> str | None:
        """What rows are padded to: "longest", "max_length" or None."""
        return _PADDING[self.padding]

    @property
    def truncates(self) -> bool:
        """Whether rows are cut down to `max_length`."""
        return _TRUNCATION[self.truncation]


def make_inputs(segments: list[list[list[int]]], vocabulary: Vocabulary, options: BatchOptions) -> dict:
    """Adds special tokens to the ids of texts, truncates and pads.

    Args:
        segments: For one or two segments, the ids of N texts.
        vocabulary: It must hold [CLS], [SEP] and, to pad, [PAD].
        options: How to truncate, pad and return.

    Returns:
        `input_ids`, `input_mask` (1 for pieces, 0 for padding) and `segment_ids` (1 for the second text and its [SEP]),
        each N rows: lists, or int32 [N, S].

    Raises:
        InputError: A special token is missing, `max_length` has no room for the special tokens, or rows of different
            lengths were to become an array.
    """
    vocabulary.require(CLS, SEP, *([PAD] if options.pads_to else []))
    num_special = vocabulary.num_special(len(segments))
    if options.max_length is not None and options.max_length < num_special:
        raise InputError(
            f"max_length must be at least {num_special} for the special tokens. Received: {options.max_length}"
        )
    rows = list(zip(*segments))
    if options.truncates:
        rows = [_truncate(row, options.max_length - num_special) for row in rows]
    cls_id, sep_id = vocabulary.id_of(CLS), vocabulary.id_of(SEP)
    if len(segments) > 1:
        between = [sep_id] * (vocabulary.num_separators - 1)
        rows = [([*first, *between], second) for first, second in rows]
    input_ids = [[cls_id, *itertools.chain.from_iterable([*ids, sep_id] for ids in row)] for row in rows]
    segment_ids = [[0] + [segment for segment, ids in enumerate(row) for _ in range(len(ids) + 1)] for row in rows]
    inputs = {"input_ids": input_ids, "input_mask": [[1] * len(ids) for ids in input_ids], "segment_ids": segment_ids}
    if options.pads_to:
        length = options.max_length if options.pads_to == "max_length" else max(map(len, input_ids), default=0)
        for name, values in inputs.items():
            value = vocabulary.id_of(PAD) if name == "input_ids" else 0
            inputs[name] = [row + [value] * (length - len(row)) for row in values]
    return {name: _to_array(values, options.return_tensors) for name, values in inputs.items()}


def _truncate(row, room):
    """Cuts the end of the longer text, piece by piece; where both are cut, the longer one keeps the odd piece."""
    if sum(map(len, row)) <= room:
        return row
    if len(row) == 1:
        return [row[0][:room]]
    short = min(len(row[0]), len(row[1]), room // 2)
    lengths = (short, room - short) if len(row[0]) <= len(row[1]) else (room - short, short)
    return [ids[:length] for ids, length in zip(row, lengths)]


def _to_array(rows, return_tensors):
    if return_tensors is None:
        return rows
    if len({len(row) for row in rows}) > 1:
        raise InputError(
            f"return_tensors={return_tensors!r} needs rows of one length, but they differ; pass padding=True, or "
            "padding='max_length' and truncation=True"
        )
    array = np.array(rows, np.int32).reshape(len(rows), -1) if rows else np.zeros([0, 0], np.int32)
    return tf.constant(array) if return_tensors == "tf" else array
