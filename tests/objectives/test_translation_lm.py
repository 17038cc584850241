"""Pairs of translations: positions and languages."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.objectives import make_objective
from albert_tf.objectives.language_models import restarted_positions

CONFIG = tiny_config(17, num_hidden_layers=2)


def test_positions_of_the_second_text_begin_at_0():
    segments = tf.constant([[0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1]])
    assert restarted_positions(segments).numpy().tolist() == [
        [0, 1, 2, 0, 1, 5],
        [0, 1, 2, 3, 4, 5],
        [0, 0, 1, 2, 3, 4],
    ]


def make_batch():
    """Returns a text of four masked words and its translation, and the same in the other order."""
    batch = {
        "input_ids": [[2, 4, 4, 4, 4, 3, 11, 12, 13, 14, 3], [2, 11, 12, 13, 14, 3, 4, 4, 4, 4, 3]],
        "input_mask": [[1] * 11] * 2,
        "segment_ids": [[0] * 6 + [1] * 5] * 2,
        "language_ids": [[0] * 6 + [1] * 5, [1] * 6 + [0] * 5],
        "masked_lm_positions": [[1, 2, 3, 4], [6, 7, 8, 9]],
        "masked_lm_ids": [[5, 6, 7, 8]] * 2,
    }
    return {name: tf.constant(values) for name, values in batch.items()} | {"masked_lm_weights": tf.ones([2, 4])}


@pytest.mark.parametrize("num_languages", [2, 0])
def test_encoder_is_told_languages_by_embeddings_or_else_by_segments(num_languages):
    objective = make_objective("translation", CONFIG.replace(num_languages=num_languages, pooler=False))
    model = objective.make_model()
    batch = make_batch()
    found = objective.compute(batch, False, None, model=model)["masked_lm_loss"]
    table = model.encoder.embeddings.language_embeddings if num_languages else None
    inputs = {
        "input_ids": batch["input_ids"],
        "position_ids": [[*range(6), *range(5)]] * 2,
        "segment_ids": batch["segment_ids"] if num_languages else batch["language_ids"],
        **({"langs": batch["language_ids"]} if num_languages else {}),
        "masked_lm_positions": batch["masked_lm_positions"],
    }
    inputs = {name: tf.constant(value) for name, value in inputs.items()}
    logits = model(inputs)["masked_lm_logits"]
    expected = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["masked_lm_ids"], logits)
    assert float(found[0]) == pytest.approx(float(tf.reduce_sum(expected)), rel=1e-5)
    if num_languages:
        assert table.shape == (2, CONFIG.embedding_size)
        other = model({**inputs, "langs": 1 - batch["language_ids"]})["masked_lm_logits"]
        assert np.abs(other - logits).max() > 1e-4
        first = model({name: value for name, value in inputs.items() if name != "langs"})["masked_lm_logits"]
        zeros = model({**inputs, "langs": tf.zeros_like(batch["language_ids"])})["masked_lm_logits"]
        np.testing.assert_allclose(first, zeros, atol=1e-6)


def test_languages_of_records_become_those_of_pieces():
    objective = make_objective("translation", CONFIG)
    features = {
        "input_ids": [[2, 6, 3, 7, 3, 0], [2, 7, 3, 0, 0, 0]],
        "input_mask": [[1] * 5 + [0], [1] * 3 + [0] * 3],
        "segment_ids": [[0, 0, 0, 1, 1, 0], [0] * 6],
        "languages": [[1, 0], [1, 1]],
        "masked_lm_positions": [[1], [1]],
        "masked_lm_ids": [[6], [7]],
    }
    features = {name: tf.constant(values) for name, values in features.items()}
    batch = objective.prepare(features | {"masked_lm_weights": tf.ones([2, 1])}, tf.zeros([2], tf.int64))
    assert batch["language_ids"].numpy().tolist() == [[1, 1, 1, 0, 0, 1], [1] * 6]


@pytest.mark.parametrize(
    ("name", "changes", "languages", "message"),
    [
        ("translation", {}, ("a", "b", "c"), "segments can't tell 3 languages (a, b, c) by type_vocab_size=2; set "),
        ("roberta", {"num_languages": 2}, (), "embeddings of 2 languages (num_languages), and the data don't say"),
        ("roberta", {"num_languages": 2}, ("a",), "(num_languages), and the data are in 1 languages (a); name as many"),
        (
            "electra",
            {"num_languages": 2},
            ("a", "b"),
            "`objective=electra` doesn't tell this model what language a text",
        ),
    ],
)
def test_languages_that_do_not_go_together_are_one_sentence(name, changes, languages, message):
    with pytest.raises(InputError) as error:
        make_objective(name, CONFIG.replace(**changes), languages=languages)
    assert message in str(error.value) and "\n" not in str(error.value)
