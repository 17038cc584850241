"""Finds names in batches of pieces, with TensorFlow ops of static shapes: in the input pipeline as well as on a TPU.

The names are a trie, and all places of a batch walk down it at once, one step for each piece of the longest name. Its
edges lie in a hash table, which compares what it finds, so that a collision is never taken for a name.
"""

import collections.abc

import numpy as np
import tensorflow as tf

from albert_tf.mentions.names import NameList
from albert_tf.tokenization import Tokenizer

_NODE_FACTOR, _PIECE_FACTOR = np.int32(1640531527), np.int32(2048144777)  # odd, with bits all over
_ROOT = 0


class MentionFinder:
    """Finds mentions of names: the longest name that begins at the beginning of a word, from left to right.

    A mention ends anywhere, also within a word, so that a josa after it stays outside. No two mentions overlap: what
    begins inside of an earlier one is none.

    Args:
        pieces: The ids of each name, none of them empty and none twice.
        starts_word: bool [vocab_size], whether a word starts with a piece.
    """

    def __init__(self, pieces: collections.abc.Sequence[collections.abc.Sequence[int]], starts_word: np.ndarray):
        self._starts_word = np.asarray(starts_word, bool)
        self._max_length = max(map(len, pieces))
        edges, self._name_of_node = _build_trie(pieces)
        self._edges = _EdgeTable(edges)

    @classmethod
    def of(cls, names: NameList, tokenizer: Tokenizer) -> "MentionFinder":
        """Returns a finder of names in texts that this tokenizer, which cut the names, has cut into pieces."""
        return cls(names.pieces, tokenizer.starts_word)

    @tf.autograph.experimental.do_not_convert
    def find(self, ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds mentions.

        Args:
            ids: int32 [B, S]; special tokens and padding are in no name, and so in no mention.

        Returns:
            int32 [B, S] twice, which are 0 except at the first piece of a mention: the number of its name, from 1, and
            how many pieces it has.
        """
        nodes = tf.where(tf.gather(self._starts_word, ids), _ROOT, -1)
        numbers = lengths = tf.zeros_like(ids)
        name_of_node = tf.constant(self._name_of_node)
        for step in range(self._max_length):
            nodes = self._edges.follow(nodes, _shift_left(ids, step, -1))
            found = tf.gather(name_of_node, nodes + 1)
            numbers, lengths = tf.where(found > 0, found, numbers), tf.where(found > 0, step + 1, lengths)
        is_kept = self._without_overlaps(lengths)
        return tf.where(is_kept, numbers, 0), tf.where(is_kept, lengths, 0)

    def _without_overlaps(self, lengths):
        """Returns bool [B, S]: which mentions are left if each that is left covers those that begin inside of it."""
        if self._max_length == 1:
            return lengths > 0

        def covered_by(kept):
            covered = tf.zeros_like(kept)
            for distance in range(1, self._max_length):
                covered |= _shift_right(kept & (lengths > distance), distance)
            return covered

        # A round decides at least the next mention of each row whose fate was open; nearly always two are enough.
        def decide(kept, _):
            return (lengths > 0) & ~covered_by(kept), kept

        def is_open(kept, before):
            return tf.reduce_any(kept != before)

        is_any = lengths > 0
        return tf.while_loop(is_open, decide, (is_any & ~covered_by(is_any), is_any))[0]


class _EdgeTable:
    """The edges of a trie by node and piece: those of one hash stand next to one another."""

    def __init__(self, edges):
        rows = np.array([(*edge, child) for edge, child in edges.items()], np.int32)
        self._largest_hash = (1 << (2 * len(edges)).bit_length()) - 1  # most hashes are of no edge
        hashes = self._hash(rows[:, 0], rows[:, 1], np.right_shift, np.bitwise_and)
        sizes = np.bincount(hashes, minlength=self._largest_hash + 1)
        self._begins = (np.cumsum(sizes) - sizes).astype(np.int32)
        self._most_of_hash = int(sizes.max())
        # Reading on after the edges of a hash finds those of others, and at the end some that nothing leads to.
        end = np.full([self._most_of_hash, 3], -2, np.int32)
        self._rows = np.concatenate([rows[np.argsort(hashes, kind="stable")], end])

    def follow(self, nodes, pieces):
        """Returns int32, the node that the edge from each node by its piece leads to; -1 where there is none."""
        hashes = self._hash(nodes, pieces, tf.bitwise.right_shift, tf.bitwise.bitwise_and)
        places = tf.gather(self._begins, hashes)[..., None] + tf.range(self._most_of_hash)
        from_nodes, by_pieces, to_nodes = tf.unstack(tf.gather(self._rows, places), axis=-1)
        is_edge = (from_nodes == nodes[..., None]) & (by_pieces == pieces[..., None])
        return tf.reduce_max(tf.where(is_edge, to_nodes, -1), axis=-1)

    def _hash(self, nodes, pieces, right_shift, bitwise_and):
        mixed = nodes * _NODE_FACTOR + pieces * _PIECE_FACTOR  # whatever doesn't fit into 32 bits is lost
        return bitwise_and(right_shift(mixed, 7), self._largest_hash)


def _build_trie(pieces):
    """Returns {(node, piece): child}, and int32 [nodes + 1]: of each node, -1 first, the number of the name, or 0."""
    edges, ends = {}, {}
    for number, name in enumerate(pieces, start=1):
        node = _ROOT
        for piece in name:
            node = edges.setdefault((node, int(piece)), len(edges) + 1)
        ends[node] = number
    name_of_node = np.zeros(len(edges) + 2, np.int32)
    name_of_node[np.array(list(ends)) + 1] = list(ends.values())
    return edges, name_of_node


def _shift_left(values, distance, fill):
    return tf.pad(values, [[0, 0], [0, distance]], constant_values=fill)[:, distance:]


def _shift_right(values, distance):
    return tf.pad(values, [[0, 0], [distance, 0]])[:, :-distance]
