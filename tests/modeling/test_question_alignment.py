"""The layer that tells pieces of a text which words of the question are like them."""

import numpy as np
import pytest
import tensorflow as tf
from every_model import copied

from albert_tf.modeling import AlbertForConditionalQuestionAnswering, AlbertForQuestionAnswering
from albert_tf.modeling.aligned_pairs import SHARPNESS
from albert_tf.modeling.layers import named_variables

MODELS = (AlbertForQuestionAnswering, AlbertForConditionalQuestionAnswering)


@pytest.fixture
def batch():
    """A question of 4 pieces with a text of 4, and one of 3 with a text of 3 and padding."""
    return {
        "input_ids": tf.constant(np.random.default_rng(3).integers(5, 30, [2, 8]), tf.int32),
        "input_mask": tf.constant([[1] * 8, [1] * 6 + [0] * 2], tf.int32),
        "segment_ids": tf.constant([[0] * 4 + [1] * 4, [0] * 3 + [1] * 3 + [0] * 2], tf.int32),
    }


def reference_embeddings(model, batch):
    """Returns the aligned embeddings by the layer's formula, in float64, one piece at a time."""
    weights = {name: variable.numpy().astype(np.float64) for name, variable in named_variables(model).items()}
    kernel, bias = (weights[f"question_alignment/mix/{name}"] for name in ("kernel", "bias"))
    found = []
    for ids, mask, segments in zip(*(batch[name].numpy() for name in ("input_ids", "input_mask", "segment_ids"))):
        words = weights["encoder/embeddings/word_embeddings"][ids]
        scales = np.sqrt((words**2).mean(axis=-1, keepdims=True))
        units = words / scales
        rows = []
        for piece in range(len(ids)):
            others = np.flatnonzero((mask == 1) & (segments != segments[piece]))
            aligned = np.zeros(words.shape[-1])
            if mask[piece] and len(others):
                likeness = np.exp(SHARPNESS * units[others] @ units[piece] / words.shape[-1])
                aligned = likeness @ units[others] / likeness.sum()
            parts = np.concatenate([aligned, np.abs(units[piece] - aligned), units[piece] * aligned])
            rows.append(words[piece] + scales[piece] * (parts @ kernel + bias))
        found.append(rows)
    return np.array(found)


@pytest.mark.parametrize("make", MODELS)
def test_the_encoder_reads_what_the_formula_gives(make, tiny_config, randomized, batch):
    aligned = randomized(make(tiny_config.replace(question_alignment="words")))
    plain = copied(make(tiny_config), aligned)
    embeddings = tf.constant(reference_embeddings(aligned, batch), tf.float32)
    expected = plain({**{name: batch[name] for name in ("input_mask", "segment_ids")}, "inputs_embeds": embeddings})
    found = aligned(batch)
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", MODELS)
def test_a_new_layer_changes_nothing_yet(make, tiny_config, batch):
    plain = make(tiny_config)
    aligned = copied(make(tiny_config.replace(question_alignment="words")), plain)
    for name, values in plain(batch).items():
        np.testing.assert_allclose(aligned(batch)[name], values, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", MODELS)
def test_padding_changes_nothing(make, tiny_config, randomized, batch):
    model = randomized(make(tiny_config.replace(question_alignment="words")))
    longer = {name: tf.pad(values, [[0, 0], [0, 4]]) for name, values in batch.items()}
    start_logits = model(longer)["start_logits"][:, :8]
    np.testing.assert_allclose(
        start_logits[batch["input_mask"] > 0], model(batch)["start_logits"][batch["input_mask"] > 0], rtol=1e-4
    )


@pytest.mark.parametrize("make", MODELS)
def test_all_but_the_pooler_learn(make, tiny_config, randomized, batch):
    model = randomized(make(tiny_config.replace(question_alignment="words")))
    with tf.GradientTape() as tape:
        outputs = model({**batch, "start_positions": tf.constant([5, 4])}, training=True)
        loss = tf.add_n([tf.reduce_sum(tf.nn.log_softmax(values)) for values in outputs.values()])
    gradients = tape.gradient(loss, named_variables(model))
    assert np.abs(gradients["question_alignment/mix/kernel"]).max() > 0
    still = {name for name, gradient in gradients.items() if gradient is None}
    assert not {name for name in still if name.startswith("question_alignment")}


def test_beams_are_searched_on_aligned_texts(tiny_config, randomized, batch):
    model = randomized(AlbertForConditionalQuestionAnswering(tiny_config.replace(question_alignment="words")))
    found = model.search(batch, 1, 1, 8)
    expected = tf.argmax(model(batch)["start_logits"][:, 1:], axis=-1) + 1
    np.testing.assert_array_equal(found["start_positions"][:, 0], expected)


@pytest.mark.parametrize("make", MODELS)
def test_half_precision_is_close(make, tiny_config, randomized, batch):
    model = randomized(make(tiny_config.replace(question_alignment="words")))
    half = copied(make(model.config, dtype="mixed_bfloat16"), model)
    possible = batch["input_mask"] > 0
    values, close = (each(batch)["start_logits"][possible] for each in (model, half))
    assert close.dtype == tf.float32
    can_answer = values > -1e29
    np.testing.assert_allclose(close[can_answer], values[can_answer], rtol=0.1, atol=0.1)
