"""The head that compares the pieces of a pair of texts."""

import numpy as np
import pytest
import tensorflow as tf
from every_model import copied
from numpy_reference import gelu

from albert_tf.modeling import AlbertForMultipleChoice, AlbertForSequenceClassification
from albert_tf.modeling.aligned_pairs import SHARPNESS
from albert_tf.modeling.layers import named_variables


@pytest.fixture
def model(tiny_config, randomized):
    return randomized(AlbertForSequenceClassification(tiny_config.replace(classifier_pooling="aligned"), 3))


@pytest.fixture
def pairs():
    """Two pairs of 5 and 3 pieces, of which the second is followed by padding, and a single text."""
    random = np.random.default_rng(3)
    input_mask = np.array([[1] * 8, [1] * 6 + [0] * 2, [1] * 8])
    segment_ids = np.array([[0] * 5 + [1] * 3, [0] * 3 + [1] * 3 + [0] * 2, [0] * 8])
    ids = random.integers(5, 30, [3, 8])
    return {
        "input_ids": tf.constant(ids, tf.int32),
        "input_mask": tf.constant(input_mask, tf.int32),
        "segment_ids": tf.constant(segment_ids, tf.int32),
    }


def reference_logits(model, batch):
    """Returns the logits by the papers' formulas, in float64, one example and one piece at a time."""
    weights = {name: variable.numpy().astype(np.float64) for name, variable in named_variables(model).items()}
    states = model.encoder(batch)["sequence_output"].numpy().astype(np.float64)
    found = []
    for ids, mask, segments, hidden in zip(*(batch[name].numpy() for name in batch), states):
        words = weights["encoder/embeddings/word_embeddings"][ids]
        words = words / np.linalg.norm(words, axis=-1, keepdims=True) * np.sqrt(words.shape[-1])
        texts = [np.flatnonzero((mask == 1) & (segments == segment)) for segment in (0, 1)]
        averages = []
        for text, other in (texts, texts[::-1]):
            compared = []
            for piece in text:
                aligned, aligned_word = np.zeros(hidden.shape[-1]), np.zeros(words.shape[-1])
                if len(other):
                    likeness = np.exp(SHARPNESS * words[other] @ words[piece] / words.shape[-1])
                    aligned = likeness @ hidden[other] / likeness.sum()
                    aligned_word = likeness @ words[other] / likeness.sum()
                state, word = hidden[piece], words[piece]
                of_states = [state, aligned, np.abs(state - aligned), state * aligned]
                parts = np.concatenate([*of_states, np.abs(word - aligned_word), word * aligned_word])
                compared.append(gelu(parts @ weights["head/compare/kernel"] + weights["head/compare/bias"]))
            logits = np.array(compared) @ weights["head/weigh/kernel"][:, 0] if compared else np.zeros(0)
            averages.append(np.exp(logits) / np.exp(logits).sum() @ compared if compared else 0 * hidden[0])
        found.append(np.concatenate(averages) @ weights["head/dense/kernel"] + weights["head/dense/bias"])
    return np.array(found)


def test_logits_equal_the_papers_formulas(model, pairs):
    np.testing.assert_allclose(model(pairs)["logits"], reference_logits(model, pairs), rtol=1e-4, atol=1e-5)


def test_padding_changes_nothing(model, pairs):
    longer = {name: tf.pad(values, [[0, 0], [0, 4]]) for name, values in pairs.items()}
    np.testing.assert_allclose(model(longer)["logits"], model(pairs)["logits"], rtol=1e-5, atol=1e-6)


def test_row_of_padding_alone_gives_finite_numbers(model, pairs):
    empty = {name: tf.zeros_like(values) for name, values in pairs.items()}
    assert np.isfinite(model(empty)["logits"]).all()


def test_all_but_the_pooler_learn(model, pairs):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(pairs, training=True)["logits"] ** 2)
    gradients = tape.gradient(loss, named_variables(model))
    still = {name for name, gradient in gradients.items() if gradient is None}
    assert still == {"encoder/pooler/kernel", "encoder/pooler/bias"}


def test_choices_are_compared_with_their_text_too(tiny_config, randomized, pairs):
    model = randomized(AlbertForMultipleChoice(tiny_config.replace(classifier_pooling="aligned")))
    logits = model({name: values[None] for name, values in pairs.items()})["logits"]
    expected = [
        model({name: values[None, row : row + 1] for name, values in pairs.items()})["logits"] for row in range(3)
    ]
    np.testing.assert_allclose(logits[0], np.ravel(expected), rtol=1e-4, atol=1e-5)


def test_half_precision_is_close(tiny_config, randomized, pairs, model):
    half = AlbertForSequenceClassification(tiny_config.replace(classifier_pooling="aligned"), 3, dtype="mixed_bfloat16")
    logits = copied(half, model)(pairs)["logits"]
    assert logits.dtype == tf.float32
    np.testing.assert_allclose(logits, model(pairs)["logits"], rtol=0.1, atol=0.1)
