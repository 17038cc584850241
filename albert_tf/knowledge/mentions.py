"""Finds sequences of ids in batches of ids, with TensorFlow ops of static shapes: in a pipeline as well as on a TPU.

The sequences are the pieces of names. One is found where it begins at a word's beginning, and may end within a word, so
that a josa after a name stays outside. Special tokens and padding are in no name, and so in no mention.

The sequences are a trie, and all places of a batch walk down it at once, one step for each id of the longest one. Its
edges lie in a hash table, which compares what it finds, so that a collision is never taken for a sequence.
"""

import collections
import collections.abc
import dataclasses
import hashlib
import io
import os
import typing
import unicodedata

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError, quote, shorten
from albert_tf.base.files import read_bytes, read_text
from albert_tf.config import AlbertConfig
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.vocabulary import UNK

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


# A list of names, as its file has them and as a tokenizer cuts them into pieces.

# Longer than any name; what is longer is likely a file of running text.
MAX_PIECES_OF_NAME = 32

_REPEATED = "has the pieces of another name"


@dataclasses.dataclass(frozen=True)
class NameList:
    """Names that a tokenizer's pieces can spell."""

    names: tuple[str, ...]  # each name in NFC; the number of a name is its place here, counted from 1
    # What the file says of each after a tab, such as a type or the name of an entity; "" for nothing.
    identifiers: tuple[str, ...]
    pieces: tuple[tuple[int, ...], ...]  # the ids that each is cut into
    left_out: dict[str, str]  # the names that no piece spells, or that others spell, and why
    sha256: str  # hash of names and identifiers in order, also of those that are left out

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def from_rows(
        cls, rows: collections.abc.Iterable[tuple[str, str]], tokenizer: Tokenizer, source: str = "the list of names"
    ) -> "NameList":
        """Encodes names, each with its identifier or ""; errors begin with the source.

        Raises InputError if there are no names, the pieces can spell none of them, or don't tell where words begin.
        """
        if getattr(tokenizer, "wordpiece_scheme", None) == "end_of_word":
            raise InputError(
                f"{source}: names are found where words begin, which pieces of `wordpiece_scheme=end_of_word` don't "
                "tell; make a vocabulary of `wordpiece_scheme=continuation`"
            )
        rows = [(unicodedata.normalize("NFC", name), identifier) for name, identifier in rows]
        if not rows:
            raise InputError(f"{source} contains no names; write one per line")
        encoded = tokenizer.encode_ids([name for name, _ in rows]).to_list()
        kept, left_out = {}, {}
        for (name, identifier), pieces in zip(rows, map(tuple, encoded)):
            reason = _why_left_out(name, pieces, tokenizer) or (_REPEATED if pieces in kept else "")
            if reason:
                left_out[name] = reason
            else:
                kept[pieces] = name, identifier
        if not kept:
            name, reason = next(iter(left_out.items()))
            raise InputError(
                f"{source}: no name can be found by this vocabulary ({shorten(name)} {reason}); give other names"
            )
        return cls(
            names=tuple(name for name, _ in kept.values()),
            identifiers=tuple(identifier for _, identifier in kept.values()),
            pieces=tuple(kept),
            left_out=left_out,
            sha256=hashlib.sha256("".join("\t".join(row) + "\n" for row in rows).encode()).hexdigest(),
        )

    def tell_left_out(self) -> str:
        """Returns how many names are left out and why, for people; "" if none is."""
        reasons = collections.Counter(self.left_out.values())
        examples = {reason: name for name, reason in reversed(self.left_out.items())}
        return "; ".join(f"{count:,} {reason}, as {shorten(examples[reason])}" for reason, count in reasons.items())


def read_names(path: str | os.PathLike, tokenizer: Tokenizer) -> NameList:
    """Reads names from a UTF-8 file, one per line, maybe with a tab and an identifier; blank lines are left out.

    Raises InputError as `NameList.from_rows`, or for a line with no name or several tabs, or a name repeated.
    """
    rows, lines = [], {}
    for number, line in enumerate(read_text(path, "the list of names").split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{os.fspath(path)}, line {number}"
        name, *identifiers = (unicodedata.normalize("NFC", part).strip() for part in line.split("\t"))
        if not _is_one_line(name) or len(identifiers) > 1:
            raise InputError(
                f"{place}: it must be a name, or a name, a tab and what identifies it. Received: {quote(line)}"
            )
        if name in lines:
            raise InputError(f"{place}: {shorten(name)} is on line {lines[name]} too; remove one")
        lines[name] = number
        rows.append((name, *(identifiers or [""])))
    return NameList.from_rows(rows, tokenizer, os.fspath(path))


def _why_left_out(name, pieces, tokenizer):
    """Returns why a name can't be found, as words after "it"; "" if it can."""
    vocabulary = tokenizer.vocabulary
    if not pieces:
        return "has no piece"
    if "\t" in name or not _is_one_line(name):
        return "has a tab or the end of a line"
    if vocabulary.id_of(UNK) in pieces:
        return "has a word that the vocabulary can't spell"
    if any(vocabulary.is_reserved(vocabulary.pieces[piece]) for piece in pieces):
        return "has a special token"
    if not tokenizer.starts_word[pieces[0]]:
        return "begins with a piece that begins no word"
    return f"has more than {MAX_PIECES_OF_NAME} pieces" if len(pieces) > MAX_PIECES_OF_NAME else ""


def _is_one_line(name):
    return len(name.splitlines()) == 1  # which also knows the line ends of other systems


ENTITIES_FILE, VECTORS_FILE = "entities.txt", "entity_vectors.npy"


class KnownEntities(typing.NamedTuple):
    """Entities whose names a vocabulary can spell."""

    names: tuple[str, ...]  # their names; the number of an entity is its place here, counted from 1
    vectors: np.ndarray  # float32 [entities, size]
    trie: Trie  # of the names' pieces
    sizes: TrieSizes  # of the trie
    told: str  # in a sentence, how many there are, and how many can't be spelled
    sha256: str  # hash of the names and vectors that were read

    def config_for(self, config: AlbertConfig) -> AlbertConfig:
        """Returns the config of a model that knows them; raises InputError if the model can't."""
        return config_with_entities(config, self.vectors.shape, self.sizes)


def config_with_entities(config: AlbertConfig, shape: tuple[int, int], sizes: TrieSizes) -> AlbertConfig:
    """Returns the config of a model that knows entities, in the middle of its blocks if it knew none before."""
    num_entities, entity_size = shape
    return config.replace(
        num_entities=num_entities,
        entity_size=entity_size,
        entity_layer=config.entity_layer if config.num_entities else config.num_blocks // 2,
        entity_name_edges=sizes.num_edges,
        entity_name_collisions=sizes.most_of_hash,
        entity_name_length=sizes.max_length,
    )


def read_known_entities(folder: str | os.PathLike, tokenizer: Tokenizer, source: str) -> KnownEntities:
    """Returns the entities in a folder of vectors whose names a vocabulary can spell; errors begin with the source."""
    entities, vectors = read_entity_vectors(folder, source)
    digest = hashlib.sha256("".join(f"{name}\n" for name in entities).encode())
    digest.update(vectors.tobytes())
    rows = [(name, str(number)) for number, name in enumerate(entities)]
    names = NameList.from_rows(rows, tokenizer, source)
    trie, sizes = build_trie(names.pieces, tokenizer.starts_word)
    told = f"{len(names):,} entities of {len(rows):,} have names that can be found"
    if names.left_out:
        told += f"; left out: {names.tell_left_out()}"
    kept = [int(number) for number in names.identifiers]
    return KnownEntities(names.names, vectors[kept], trie, sizes, told, digest.hexdigest())


def read_entity_vectors(folder: str | os.PathLike, source: str) -> tuple[list[str], np.ndarray]:
    """Returns names in NFC, each once, and float32 [entities, size] vectors; errors begin with the source.

    They are read from `entities.txt`, a name a line, and `entity_vectors.npy`, in the same order. Raises InputError if
    the files can't be read, don't go together, or don't hold finite floats.
    """
    names = read_text(os.path.join(folder, ENTITIES_FILE), f"the names that {source} has vectors of,").split("\n")
    entities = [unicodedata.normalize("NFC", name).strip() for name in names if name.strip()]
    path = os.path.join(folder, VECTORS_FILE)
    content = read_bytes(path, "the entity vectors")
    try:
        vectors = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is not a NumPy file as `numpy.save` writes it; make the folder again") from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or not vectors.shape[1]:
        raise InputError(
            f"{path} must hold a vector of floats for each name. Received: {vectors.dtype} {list(vectors.shape)}"
        )
    if len(vectors) != len(entities):
        raise InputError(
            f"{source}: {len(entities):,} names in {ENTITIES_FILE}, but {len(vectors):,} vectors in "
            f"{VECTORS_FILE}; make the folder anew"
        )
    if len(set(entities)) < len(entities):
        twice = collections.Counter(entities).most_common(1)[0][0]
        raise InputError(f"{source}: {shorten(twice)} appears in {ENTITIES_FILE} twice; remove one, and its vector")
    with np.errstate(over="ignore"):  # which is refused
        vectors = vectors.astype(np.float32)
    if not np.isfinite(vectors).all():
        raise InputError(f"{path} holds NaN, infinity, or a number too large for float32; make the vectors anew")
    return entities, vectors
