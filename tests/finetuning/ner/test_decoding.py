"""The best sequence of tags is the best of all that are allowed."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.finetuning.ner.task import best_sequence, labels_for

LABELS = labels_for(("A", "B"))


def best_by_trying_all(logits):
    """Returns the allowed tags [n] with the highest sum of logits [n, T], in float64."""
    allowed = [
        ids
        for ids in itertools.product(range(len(LABELS)), repeat=len(logits))
        if all(
            not LABELS[tag].startswith("I-") or LABELS[before][2:] == LABELS[tag][2:]
            for before, tag in itertools.pairwise(ids)
        )
    ]
    return max(allowed, key=lambda ids: sum(logits[place, tag] for place, tag in enumerate(ids)))


@pytest.mark.parametrize("seed", range(5))
def test_no_allowed_sequence_is_better(seed):
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=[6, 7, len(LABELS)]).astype(np.float32)
    is_read = generator.random([6, 7]) < 0.6
    is_read[0] = False
    found = best_sequence(tf.constant(logits), tf.constant(is_read), LABELS).numpy()
    assert found.dtype == np.int32 and found.shape == (6, 7)
    for row in range(6):
        expected = best_by_trying_all(logits[row, is_read[row]].astype(np.float64))
        assert found[row, is_read[row]].tolist() == list(expected)


def test_an_entity_may_go_on_from_an_earlier_part():
    logits = np.full([1, 2, len(LABELS)], -5.0, np.float32)
    logits[:, :, LABELS.index("I-A")] = 5.0
    found = best_sequence(tf.constant(logits), tf.constant([[True, True]]), LABELS)
    assert found.numpy().tolist() == [[LABELS.index("I-A")] * 2]


def test_it_compiles_for_one_shape():
    logits = tf.random.stateless_normal([3, 8, len(LABELS)], [1, 2])
    is_read = tf.ones([3, 8], tf.bool)
    compute = tf.function(lambda *inputs: best_sequence(*inputs, LABELS), jit_compile=True, autograph=False)
    np.testing.assert_array_equal(compute(logits, is_read), best_sequence(logits, is_read, LABELS))
