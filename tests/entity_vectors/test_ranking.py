"""The places of right entities: equal to a plain count, for vectors and for rules without."""

import numpy as np
import pytest

from albert_tf.entity_vectors.ranking import by_chance, by_frequency, by_vectors, rank


@pytest.fixture
def graph():
    generator = np.random.default_rng(1)
    known = np.unique(np.stack([generator.integers(size, size=120) for size in (15, 3, 15)], axis=1), axis=0)
    return known, known[generator.permutation(len(known))[:30]]


@pytest.mark.parametrize("norm", [1, 2])
def test_ranks_of_vectors_are_counted_one_by_one(graph, norm, monkeypatch):
    known, held_out = graph
    generator = np.random.default_rng(2)
    entities, relations = generator.normal(size=[15, 4]), generator.normal(size=[3, 4])
    places = []
    for missing in (0, 2):
        for triple in held_out:

            def distance(entity, triple=triple, missing=missing):
                head, relation, tail = np.where(np.arange(3) == missing, entity, triple)
                return np.linalg.norm(entities[head] + relations[relation] - entities[tail], norm)

            others = [triple.copy() for _ in range(15)]
            for entity, other in enumerate(others):
                other[missing] = entity
            allowed = [entity for entity, other in enumerate(others) if not (known == other).all(1).any()]
            places.append(1 + sum(distance(entity) < distance(triple[missing]) for entity in allowed))
    expected = np.mean(places), np.mean(np.array(places) <= 10)
    for most in (1 << 24, 50):  # all at once, and in parts
        monkeypatch.setattr("albert_tf.entity_vectors.ranking._NUMBERS_AT_ONCE", most)
        np.testing.assert_allclose(rank(held_out, known, 15, by_vectors(entities, relations, norm)), expected)


def test_chance_is_the_middle_of_what_is_allowed(graph):
    known, held_out = graph
    sizes = []
    for missing in (0, 2):
        for triple in held_out:
            is_same = (np.delete(known, missing, axis=1) == np.delete(triple, missing)).all(1)
            sizes.append(15 - is_same.sum() + 1)
    found = rank(held_out, known, 15, by_chance(15))
    np.testing.assert_allclose(found.mean_rank, np.mean([(size + 1) / 2 for size in sizes]))
    np.testing.assert_allclose(found.hits_at_10, np.mean([min(1, 10 / size) for size in sizes]))


def test_frequency_knows_the_relation_alone():
    known = np.array([[0, 0, 9], [1, 0, 9], [2, 0, 8], [3, 1, 7]])
    scores = by_frequency(known, 10)(np.array([[5, 0, 9], [5, 2, 9], [5, 1, 9]]), 2)
    assert scores[0].tolist() == [0, 0, 0, 0, 0, 0, 0, 0, -1, -2]
    assert not scores[1].any() and scores[2].tolist() == [0, 0, 0, 0, 0, 0, 0, -1, 0, 0]
    assert by_frequency(known, 10)(np.array([[5, 0, 9]]), 0)[0].tolist() == [-1, -1, -1, 0, 0, 0, 0, 0, 0, 0]
