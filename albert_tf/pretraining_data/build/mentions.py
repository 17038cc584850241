"""Marks where the text of a corpus mentions entities, so that masking takes each mention as one unit.

A unit ends where a mention does, also within a word: of 이순신은, with the name 이순신, the josa is one by itself.
"""

import os

import numpy as np
import tensorflow as tf

from albert_tf.files import write_text
from albert_tf.mentions.names import NameList, read_names
from albert_tf.mentions.trie import build_trie, find_sequences
from albert_tf.pretraining_data.packing.packing import AFTER_MENTION, BEGINS_MENTION, IN_MENTION, ranges
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.vocabulary import SEP

_NAMES_FILE = "names.txt"


def save_names(names: NameList | None, folder: str) -> None:
    if names is not None:
        write_text(os.path.join(folder, _NAMES_FILE), "".join(f"{name}\n" for name in names.names))


def load_names(folder: str, tokenizer: Tokenizer) -> NameList | None:
    path = os.path.join(folder, _NAMES_FILE)
    return read_names(path, tokenizer) if tf.io.gfile.exists(path) else None


class MentionMarks:
    def __init__(self, names: NameList, tokenizer: Tokenizer):
        self._trie, self._sizes = build_trie(names.pieces, tokenizer.starts_word)
        self._between = tokenizer.vocabulary.id_of(SEP)

    def mark(self, ids: np.ndarray, borders: np.ndarray) -> np.ndarray:
        """Returns `Text.mentions`, int8 [P]; the borders are of sentences, int64."""
        # As one row, in which no name goes on across what stands between sentences.
        places = np.arange(len(ids)) + np.repeat(np.arange(len(borders) - 1), np.diff(borders))
        row = np.full(len(ids) + len(borders), self._between, np.int32)
        row[places] = ids
        _, lengths = find_sequences(self._trie, self._sizes, tf.constant(row[None]))
        lengths = lengths.numpy()[0, places]
        begins = np.flatnonzero(lengths)
        ends = begins + lengths[begins]
        marks = np.zeros(len(ids) + 1, np.int8)
        marks[ends] = AFTER_MENTION
        marks[ranges(begins, ends - begins)] = IN_MENTION
        marks[begins] = BEGINS_MENTION
        return marks[:-1]
