"""Vectors of texts: the losses against NumPy in float64, what is no partner, and what a taught model answers."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

import albert_tf
from albert_tf.base.errors import InputError
from albert_tf.finetuning import Vectors
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.finetuning.tasks.labelled_text import LabelledText

TEMPERATURE = 0.05
PAIRS = DataFiles(text_column="text", text_pair_column="text_pair")
TEXTS = [
    ("비가 온다", "비가 내린다"),
    ("책을 읽는다", "독서를 한다"),
    ("밥을 먹었다", "식사했다"),
    ("잠이 온다", "졸리다"),
]


def batch_of(ids, weights, numbers=None):
    """Returns the batch of ids [B, texts, S], 0 for padding."""
    ids = np.array(ids, np.int32)
    return {
        "input_ids": tf.constant(ids),
        "input_mask": tf.constant((ids > 0).astype(np.int32)),
        "segment_ids": tf.zeros_like(ids),
        "label_values": tf.constant(numbers or [0.0] * len(ids)),
        "example_weights": tf.constant(weights),
    }


def lookup(vectors):
    """Returns a model whose vector of a text is that of its first id."""
    return lambda inputs, training, dropout_seed=None: {"vectors": tf.gather(vectors, inputs["input_ids"][:, 0])}


def log_softmax(scores):
    return scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))


def test_order_of_cosines_comes_to_be_that_of_the_numbers():
    vectors = np.random.default_rng(0).normal(size=[12, 5])
    ids = np.arange(1, 11).reshape(5, 2, 1)
    numbers, weights = [3.0, 1.0, 2.0, 2.0, 9.0], [1.0, 1.0, 1.0, 1.0, 0.0]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = [unit[first] @ unit[second] for first, second in ids[:4, :, 0]]
    total = 1.0 + sum(
        np.exp((cosines[j] - cosines[i]) / TEMPERATURE) for i in range(4) for j in range(4) if numbers[i] > numbers[j]
    )
    task, batch = Vectors(tiny_config()), batch_of(ids, weights, numbers)
    loss, count = task.compute(batch, False, None, lookup(tf.constant(vectors, tf.float32)))["contrastive_loss"]
    assert count == 4.0
    np.testing.assert_allclose(loss / count, np.log(total), rtol=1e-5)
    np.testing.assert_allclose(
        task.outputs(batch, lookup(tf.constant(vectors, tf.float32)))["scores"][:4], cosines, 1e-5
    )


def test_partner_is_told_from_those_of_other_texts():
    # The first and the third pair begin with the same text, and the last one is padding.
    ids = [[[1], [2]], [[3], [4]], [[1], [5]], [[6], [7]]]
    vectors = np.random.default_rng(1).normal(size=[8, 5])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = np.array([[unit[first] @ unit[second] / TEMPERATURE for second in (2, 4, 5)] for first in (1, 3, 1)])
    scores[0, 2] = scores[2, 0] = -np.inf
    ways = scores, scores.T
    losses = [-np.diag(log_softmax(way)) for way in ways]
    right = [way.argmax(axis=1) == np.arange(3) for way in ways]
    task, batch = Vectors(tiny_config(), PAIRS, "pairs"), batch_of(ids, [1.0, 1.0, 1.0, 0.0])
    found = task.compute(batch, False, None, lookup(vectors.astype(np.float32)))
    for name, expected in (("contrastive_loss", losses), ("accuracy", right)):
        total, count = found[name]
        np.testing.assert_allclose(total / count, np.mean(expected), rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("files", [PAIRS, DataFiles(text_column="text")])
def test_text_is_its_own_partner_under_another_dropout(files):
    config = tiny_config(hidden_dropout_prob=0.3)
    task = Vectors(config, files, "texts")
    texts = len(files.text_columns)
    ids = np.random.default_rng(2).integers(5, 30, [3, texts, 6])
    model = task.make_model()
    batch = batch_of(ids, [1.0] * 3)
    seed = tf.constant([1, 2])
    losses = {}
    for training in (True, False):
        total, count = task.compute(batch, training, seed, model)["contrastive_loss"]
        losses[training] = float(total / count)
        assert count == 2 * 3 * texts
    assert losses[True] > losses[False] > 0.0
    flat = {name: tf.reshape(batch[name], [3 * texts, 6]) for name in ("input_ids", "input_mask", "segment_ids")}
    unit = tf.math.l2_normalize(model(flat)["vectors"], axis=-1).numpy().astype(np.float64)
    np.testing.assert_allclose(losses[False], -np.diag(log_softmax(unit @ unit.T / TEMPERATURE)).mean(), rtol=1e-4)


def test_texts_are_read_apart(sample_tokenizer):
    task = Vectors(tiny_config(len(sample_tokenizer)), PAIRS, "pairs")
    pairs = [LabelledText(first, second, None, number) for number, (first, second) in enumerate(TEXTS)]
    features = task.encode(pairs, sample_tokenizer, 16)
    assert features["input_ids"].shape == (4, 2, 16)
    for pair, ids, mask in zip(TEXTS, features["input_ids"], features["input_mask"]):
        for text, row, count in zip(pair, ids, mask.sum(axis=1)):
            assert row[:count].tolist() == sample_tokenizer.encode(text).ids


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (TEXTS, [1.0, None, 2.0, 3.0], "1 of 4 labels are None; give a number for each pair, or for none"),
        (["하나", "둘"], [1.0, 2.0], r"labels\[0\] must be None: to compare vectors by numbers, texts must be tuples"),
        (TEXTS, ["a"] * 4, r"labels\[0\] must be a number"),
    ],
)
def test_labels_of_vectors_are_numbers_of_pairs_or_none(texts, labels, message):
    with pytest.raises(InputError, match=message):
        albert_tf.fit(texts, labels, kind="vectors")
