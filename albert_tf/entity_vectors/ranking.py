"""How well vectors tell triples that they have not learnt: the place of the right entity among all ("filtered")."""

import collections.abc
import typing

import numpy as np

from albert_tf.entity_vectors.transe import distances

_HITS = 10
_NUMBERS_AT_ONCE = 1 << 24


class Ranks(typing.NamedTuple):
    """Where right answers stand.

    Attributes:
        mean_rank: Mean place, from 1; of several that are as near, the middle one.
        hits_at_10: Share of the answers among the first ten; of those that are as near, as many as there is room for.
    """

    mean_rank: float
    hits_at_10: float


# Scores every entity as the missing one of triples: given int [N, 3] and which column is missing, 0 or 2, float [N,
# entities], the lowest for the best.
Rule = collections.abc.Callable[[np.ndarray, int], np.ndarray]


def rank(held_out: np.ndarray, known: np.ndarray, num_entities: int, rule: Rule) -> Ranks:
    """Returns the places of the heads and tails of triples among all entities that are not known to be right as well.

    Args:
        held_out: int [N, 3].
        known: int [M, 3], all that is known to be right, the former among them.
        num_entities: How many there are.
        rule: What is measured.
    """
    places, hits = [], []
    rows = max(1, _NUMBERS_AT_ONCE // num_entities)
    for missing in (0, 2):
        answers = _answers(known, missing)
        for begin in range(0, len(held_out), rows):
            triples = held_out[begin : begin + rows]
            scores = np.array(rule(triples, missing), np.float64)
            right = scores[np.arange(len(triples)), triples[:, missing]]
            for row, triple in enumerate(triples):
                scores[row, answers[_question(triple, missing)]] = np.inf
            nearer, as_near = (scores < right[:, None]).sum(1), (scores == right[:, None]).sum(1)
            places.append(1 + nearer + as_near / 2)
            hits.append(np.clip((_HITS - nearer) / (as_near + 1), 0, 1))
    return Ranks(float(np.concatenate(places).mean()), float(np.concatenate(hits).mean()))


def by_vectors(entities: np.ndarray, relations: np.ndarray, norm: int) -> Rule:
    """Returns the rule of TransE: how far head plus relation is from the tail."""

    def score(triples, missing):
        relation = relations[triples[:, 1]]
        given = entities[triples[:, 2 - missing]]
        wanted = given + relation if missing == 2 else given - relation
        size = max(1, _NUMBERS_AT_ONCE // max(1, len(wanted) * wanted.shape[1]))
        parts = [entities[begin : begin + size] for begin in range(0, len(entities), size)]
        return np.concatenate([distances(wanted[:, None] - part, norm) for part in parts], axis=1)

    return score


def by_frequency(known: np.ndarray, num_entities: int) -> Rule:
    """Returns the rule that knows the relation alone, and answers what has most often been its head or tail."""
    counted = {missing: np.unique(known[:, [1, missing]], axis=0, return_counts=True) for missing in (0, 2)}

    def score(triples, missing):
        pairs, counts = counted[missing]
        scores = np.zeros([len(triples), num_entities])
        begins, ends = (np.searchsorted(pairs[:, 0], triples[:, 1], side) for side in ("left", "right"))
        for row, begin, end in zip(scores, begins, ends):
            row[pairs[begin:end, 1]] = -counts[begin:end]
        return scores

    return score


def by_chance(num_entities: int) -> Rule:
    """Returns the rule that knows nothing, to which all are the same."""
    return lambda triples, _: np.zeros([len(triples), num_entities])


def _question(triple, missing):
    return int(triple[2 - missing]), int(triple[1])


def _answers(known, missing):
    """Returns the entities that are right, by what is asked."""
    answers = {}
    for triple in known:
        answers.setdefault(_question(triple, missing), []).append(triple[missing])
    return answers
