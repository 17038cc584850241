"""Finds sequences of ids in batches of ids, with TensorFlow ops of static shapes: in a pipeline as well as on a TPU.

The sequences are the pieces of names. One is found where it begins at a word's beginning, and may end within a word, so
that a josa after a name stays outside. Special tokens and padding are in no name, and so in no mention.

The sequences are a trie, and all places of a batch walk down it at once, one step for each id of the longest one. Its
edges lie in a hash table, which compares what it finds, so that a collision is never taken for a sequence.
"""

import collections.abc
import typing

import numpy as np
import tensorflow as tf

_NODE_FACTOR, _PIECE_FACTOR = np.int32(1640531527), np.int32(2048144777)  # odd, with bits all over
_ROOT = 0


class TrieSizes(typing.NamedTuple):
    """The sizes that the shapes of a trie follow from."""

    num_pieces: int  # size of the vocabulary
    num_edges: int  # edges of the trie
    most_of_hash: int  # most edges that have one hash
    max_length: int  # ids of the longest sequence

    def shapes(self) -> dict[str, list[int]]:
        return {
            "starts_word": [self.num_pieces],
            "begins": [_largest_hash(self.num_edges) + 1],
            "edges": [self.num_edges + self.most_of_hash, 3],
            "number_of_node": [self.num_edges + 2],
        }


class Trie(typing.NamedTuple):
    """A trie, in arrays or in tensors of int32."""

    starts_word: typing.Any  # [num_pieces], 1 for ids that a sequence may begin with
    begins: typing.Any  # [hashes], the first of the edges that have a hash
    # [num_edges + most_of_hash, 3], from which node, by which id, to which node; those of one hash stand next to one
    # another.
    edges: typing.Any
    number_of_node: typing.Any  # [nodes + 1]: of each node, -1 first, the number of the sequence that ends there, or 0


def build_trie(
    sequences: collections.abc.Sequence[collections.abc.Sequence[int]], starts_word: np.ndarray
) -> tuple[Trie, TrieSizes]:
    """Returns the trie of sequences, none empty or repeated, numbered from 1; `starts_word` is bool [num_pieces]."""
    edges, ends = {}, {}
    for number, sequence in enumerate(sequences, start=1):
        node = _ROOT
        for piece in sequence:
            node = edges.setdefault((node, int(piece)), len(edges) + 1)
        ends[node] = number
    number_of_node = np.zeros(len(edges) + 2, np.int32)
    number_of_node[np.array(list(ends)) + 1] = list(ends.values())
    rows = np.array([(*edge, child) for edge, child in edges.items()], np.int32)
    hashes = _hash(rows[:, 0], rows[:, 1], _largest_hash(len(edges)), np.right_shift, np.bitwise_and)
    counts = np.bincount(hashes, minlength=_largest_hash(len(edges)) + 1)
    most_of_hash = int(counts.max())
    # Reading on after the edges of a hash finds those of others, and at the end some that nothing leads to.
    end = np.full([most_of_hash, 3], -2, np.int32)
    trie = Trie(
        np.asarray(starts_word, np.int32),
        (np.cumsum(counts) - counts).astype(np.int32),
        np.concatenate([rows[np.argsort(hashes, kind="stable")], end]),
        number_of_node,
    )
    return trie, TrieSizes(len(trie.starts_word), len(edges), most_of_hash, max(map(len, sequences)))


@tf.autograph.experimental.do_not_convert
def find_sequences(trie: Trie, sizes: TrieSizes, ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the longest sequence at the beginning of each word, from left to right; no two overlap.

    Returns its number, from 1, and its length where one begins, else 0: int32 [B, S], as `ids`, each.
    """
    nodes = tf.where(tf.gather(trie.starts_word, ids) > 0, _ROOT, -1)
    numbers = lengths = tf.zeros_like(ids)
    for step in range(sizes.max_length):
        following = tf.pad(ids, [[0, 0], [0, step]], constant_values=-1)[:, step:]
        nodes = _follow(trie, sizes, nodes, following)
        found = tf.gather(trie.number_of_node, nodes + 1)
        numbers, lengths = tf.where(found > 0, found, numbers), tf.where(found > 0, step + 1, lengths)
    is_kept = _without_overlaps(lengths, sizes.max_length)
    return tf.where(is_kept, numbers, 0), tf.where(is_kept, lengths, 0)


def _follow(trie, sizes, nodes, pieces):
    """Returns int32, the node that the edge from each node by its piece leads to; -1 where there is none."""
    hashes = _hash(nodes, pieces, _largest_hash(sizes.num_edges), tf.bitwise.right_shift, tf.bitwise.bitwise_and)
    places = tf.gather(trie.begins, hashes)[..., None] + tf.range(sizes.most_of_hash)
    from_nodes, by_pieces, to_nodes = tf.unstack(tf.gather(trie.edges, places), axis=-1)
    is_edge = (from_nodes == nodes[..., None]) & (by_pieces == pieces[..., None])
    return tf.reduce_max(tf.where(is_edge, to_nodes, -1), axis=-1)


def _without_overlaps(lengths, max_length):
    """Returns bool [B, S], the sequences that are left if each of them removes those that begin inside of it."""
    if max_length == 1:
        return lengths > 0

    def covered_by(kept):
        covered = tf.zeros_like(kept)
        for distance in range(1, max_length):
            covered |= tf.pad(kept & (lengths > distance), [[0, 0], [distance, 0]])[:, :-distance]
        return covered

    # A round decides at least the next sequence of each row whose fate was open; nearly always two are enough.
    def decide(kept, _):
        return (lengths > 0) & ~covered_by(kept), kept

    def is_open(kept, before):
        return tf.reduce_any(kept != before)

    is_any = lengths > 0
    return tf.while_loop(is_open, decide, (is_any & ~covered_by(is_any), is_any))[0]


def _largest_hash(num_edges):
    return (1 << (2 * num_edges).bit_length()) - 1  # most hashes are of no edge


def _hash(nodes, pieces, largest, right_shift, bitwise_and):
    mixed = nodes * _NODE_FACTOR + pieces * _PIECE_FACTOR  # whatever doesn't fit into 32 bits is lost
    return bitwise_and(right_shift(mixed, 7), largest)
