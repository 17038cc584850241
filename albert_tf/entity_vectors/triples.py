"""Triples of names: what is known of entities, read from a file."""

import os
import typing
import unicodedata

import numpy as np

from albert_tf.errors import InputError
from albert_tf.rows.bad_rows import shorten
from albert_tf.rows.lines import decode, read_lines

# More would tell the scores no more exactly, and take long: each is compared with all entities.
_MOST_HELD_OUT = 5_000

# What tables have above their triples; here every line is one.
_HEADERS = (("head", "relation", "tail"), ("subject", "predicate", "object"), ("subject", "relation", "object"))


class Triples(typing.NamedTuple):
    """What is known of some entities.

    Attributes:
        entities: Their names, in the order in which the file mentions them.
        relations: The names of relations, likewise.
        ids: int32 [N, 3], each triple once: the numbers of head, relation and tail, from 0.
        num_repeated: How often the file says what it has said before.
    """

    entities: list[str]
    relations: list[str]
    ids: np.ndarray
    num_repeated: int


def read_triples(path: str | os.PathLike) -> Triples:
    """Reads triples from a UTF-8 file, a gzip file if its name ends in .gz: head, tab, relation, tab, tail on a line.

    Names are in NFC, without spaces around them; lines of nothing but spaces are left out.

    Raises:
        InputError: The file can't be read, a line holds no triple but perhaps a header, or there are fewer than two
            entities.
    """
    path = os.fspath(path)
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    triples: dict[tuple[int, int, int], None] = {}
    num_lines = 0
    for line in read_lines(path):
        text = decode(path, line)
        if not text.strip():
            continue
        names = [unicodedata.normalize("NFC", name).strip() for name in text.split("\t")]
        if len(names) != 3 or not all(names):
            raise InputError(
                f"{path}, line {line.number}: a triple must be a head, a relation and a tail, separated by tabs. "
                f"Received: {shorten(text)!r}"
            )
        if not triples and tuple(map(str.lower, names)) in _HEADERS:
            raise InputError(
                f"{path}, line {line.number}: {shorten(text)!r} names the columns, and is no triple; remove the line"
            )
        head, relation, tail = names
        first = entities.setdefault(head, len(entities))
        second = relations.setdefault(relation, len(relations))
        triples[first, second, entities.setdefault(tail, len(entities))] = None
        num_lines += 1
    if len(entities) < 2:
        raise InputError(f"{path}: there must be at least two entities, and there are {len(entities)}; add triples")
    ids = np.array(list(triples), np.int32)
    return Triples(list(entities), list(relations), ids, num_lines - len(triples))


def split(ids: np.ndarray, held_out_fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the triples to learn from, and those held out, of which every entity and relation is among the former.

    Args:
        ids: int [N, 3].
        held_out_fraction: Share of the triples to hold out, at most 5,000; there may be fewer.
        seed: Of what is drawn.
    """
    order = np.random.default_rng([seed, 0]).permutation(len(ids))
    wanted = min(int(len(ids) * held_out_fraction), _MOST_HELD_OUT)
    # A triple may go as long as another one has its entities, and another one its relation.
    uses = np.bincount(ids[:, [0, 2]].ravel()), np.bincount(ids[:, 1])
    is_held_out = np.zeros(len(ids), bool)
    for number in order:
        if wanted == 0:
            break
        head, relation, tail = ids[number]
        needed = 3 if head == tail else 2
        if min(uses[0][head], uses[0][tail]) >= needed and uses[1][relation] > 1:
            is_held_out[number] = True
            np.subtract.at(uses[0], [head, tail], 1)
            uses[1][relation] -= 1
            wanted -= 1
    return ids[~is_held_out], ids[is_held_out]
