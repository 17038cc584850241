"""Finds names in batches of pieces, with TensorFlow ops of static shapes: in the input pipeline as well as on a TPU."""

import collections.abc

import numpy as np
import tensorflow as tf

from albert_tf.mentions.names import NameList
from albert_tf.mentions.trie import build_trie, find_sequences
from albert_tf.tokenization import Tokenizer


class MentionFinder:
    """Finds mentions of names: the longest name that begins at the beginning of a word, from left to right.

    A mention ends anywhere, also within a word, so that a josa after it stays outside. No two mentions overlap: what
    begins inside of an earlier one is none.

    Args:
        pieces: The ids of each name, none of them empty and none twice.
        starts_word: bool [vocab_size], whether a word starts with a piece.

    Attributes:
        trie: Of the names' pieces.
        sizes: Its sizes.
    """

    def __init__(self, pieces: collections.abc.Sequence[collections.abc.Sequence[int]], starts_word: np.ndarray):
        self.trie, self.sizes = build_trie(pieces, starts_word)

    @classmethod
    def of(cls, names: NameList, tokenizer: Tokenizer) -> "MentionFinder":
        """Returns a finder of names in texts that this tokenizer, which cut the names, has cut into pieces."""
        return cls(names.pieces, tokenizer.starts_word)

    def find(self, ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds mentions.

        Args:
            ids: int32 [B, S]; special tokens and padding are in no name, and so in no mention.

        Returns:
            int32 [B, S] twice, which are 0 except at the first piece of a mention: the number of its name, from 1, and
            how many pieces it has.
        """
        return find_sequences(self.trie, self.sizes, ids)
