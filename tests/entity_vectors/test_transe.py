"""Vectors of entities: the loss and its gradients, what is drawn, and that the same comes out each time."""

import copy
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.entity_vectors.transe import TransESettings, corrupt, loss_and_updates, train
from albert_tf.errors import InputError

IDS = np.array([[0, 0, 1], [2, 1, 3], [4, 0, 4], [1, 1, 0], [0, 0, 1]])
CORRUPTED = np.array([[0, 0, 3], [4, 1, 3], [4, 0, 2], [1, 1, 2], [2, 0, 1]])


def draw(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("margin", [0.5, 3.0])
def test_loss_and_gradients_are_those_of_float64(norm, margin):
    entities, relations = draw(6, 4), draw(2, 4)
    tables = [tf.Variable(entities), tf.Variable(relations)]

    def distance(ids):
        head, relation, tail = (tf.gather(tables[column == 1], ids[:, column]) for column in range(3))
        return tf.norm(head + relation - tail, norm, axis=1)

    with tf.GradientTape() as tape:
        losses = tf.nn.relu(margin + distance(IDS) - distance(CORRUPTED))
        expected = tf.reduce_sum(losses)
    gradients = [tf.convert_to_tensor(each).numpy() for each in tape.gradient(expected, tables)]
    assert np.count_nonzero(losses) > 0 and (margin > 1 or np.count_nonzero(losses) < len(IDS))
    settings = TransESettings(distance_norm=norm, margin=margin)
    loss, *updates = loss_and_updates(entities, relations, IDS, CORRUPTED, settings)
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    for update, gradient in zip(updates, gradients):
        assert len(set(update.rows)) == len(update.rows)
        np.testing.assert_allclose(update.gradients, gradient[update.rows], atol=1e-12)
        assert not np.delete(gradient, update.rows, axis=0).any()


def test_a_triple_that_holds_exactly_changes_nothing_itself():
    entities, relations = np.array([[1.0, 0], [0, 1], [0, 0]]), np.array([[-1.0, 1]])
    settings = TransESettings(margin=9)
    ids, corrupted = np.array([[0, 0, 1]]), np.array([[0, 0, 2]])
    _, of_entities, _ = loss_and_updates(entities, relations, ids, corrupted, settings)
    # What is left is the gradient of the corrupted one: its head, minus its tail.
    np.testing.assert_array_equal(of_entities.gradients, [[0, -1], [0, 0], [0, 1]])


def test_corrupted_triples_have_another_head_or_another_tail():
    ids = np.tile(np.array([[3, 1, 7]]), (4000, 1))
    corrupted = corrupt(ids, 10, np.random.default_rng(5))
    is_other = corrupted != ids
    assert (is_other.sum(1) == 1).all() and not is_other[:, 1].any()
    assert 0.45 < is_other[:, 0].mean() < 0.55
    found = np.bincount(corrupted[is_other[:, 0], 0], minlength=10)
    assert found[3] == 0 and found[[0, 1, 2, 4, 5, 6, 7, 8, 9]].min() > 150
    assert (ids == [3, 1, 7]).all()


def test_same_settings_give_the_same_bytes_and_another_seed_others():
    ids = np.random.default_rng(0).integers(20, size=[300, 3]) % [20, 3, 20]
    settings = TransESettings(entity_size=8, train_batch_size=64, num_train_epochs=3)
    told = []
    first, again = (train(ids, 20, 3, settings, lambda *values: told.append(values)) for _ in range(2))
    assert [each.tobytes() for each in first] == [each.tobytes() for each in again]
    assert told[:5] == told[15:20] and [each[:2] for each in told[:5]] == [(0, n) for n in (64, 128, 192, 256, 300)]
    other = train(ids, 20, 3, dataclasses.replace(settings, random_seed=1))
    assert not np.array_equal(first[0], other[0])
    assert first[0].dtype == first[1].dtype == np.float32
    kept = []
    train(ids, 20, 3, settings, keep=lambda learnt: kept.append(copy.deepcopy(learnt)))
    assert [learnt.num_epochs for learnt in kept] == [1, 2]
    for learnt in kept:
        assert [each.tobytes() for each in train(ids, 20, 3, settings, begun=learnt)] == [
            each.tobytes() for each in first
        ]
    np.testing.assert_allclose(np.linalg.norm(first[0], axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name in ("margin", "learning_rate") for value in (0.0, float("nan"), float("inf"), "1")]
    + [(name, value) for name in ("entity_size", "train_batch_size", "num_train_epochs") for value in (0, 8.0, True)]
    + [("random_seed", value) for value in (-1, 0.5)]
    + [("distance_norm", value) for value in (0, 3, 2.0)],
)
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(InputError, match=f"`{name}` must be .* Received: {value!r}"):
        TransESettings(**{name: value})
