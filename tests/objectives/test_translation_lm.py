"""Pairs of translations: positions, languages, and that one text is read off the other."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.objectives import make_objective
from albert_tf.objectives.language_models import restarted_positions

LANGUAGES = ("korean", "english")
NUM_WORDS, LENGTH = 6, 4  # words of each language, and of each text
CLS, SEP, MASK, FIRST_WORD = 2, 3, 4, 5
CONFIG = tiny_config(FIRST_WORD + 2 * NUM_WORDS, num_hidden_layers=2, hidden_size=32, num_attention_heads=2)
LEARNER = CONFIG.replace(position_initializer="sinusoidal", num_languages=2, pooler=False, initializer_range=0.1)


def test_positions_of_the_second_text_begin_at_0():
    segments = tf.constant([[0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1]])
    assert restarted_positions(segments).numpy().tolist() == [
        [0, 1, 2, 0, 1, 5],
        [0, 1, 2, 3, 4, 5],
        [0, 0, 1, 2, 3, 4],
    ]


def pairs_of(words, others, order):
    """Returns a batch in which the first language is masked wholly.

    Args:
        words: int [B, LENGTH], words of the first language.
        others: The same of the second one, counted from 0 as well.
        order: bool [B], whether the second language comes first.
    """
    count = len(words)
    texts = np.stack([np.full([count, LENGTH], MASK), FIRST_WORD + NUM_WORDS + others], axis=1)
    numbers = np.stack([order, ~order], axis=1).astype(int)  # which language comes first, and which second
    first, second = (texts[np.arange(count), numbers[:, place]] for place in (0, 1))
    column = np.ones([count, 1], int)
    ids = np.concatenate([CLS * column, first, SEP * column, second, SEP * column], axis=1)
    segments = np.tile(np.repeat([0, 1], [LENGTH + 2, LENGTH + 1]), (count, 1))
    begins = np.where(order, LENGTH + 2, 1)
    batch = {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": segments,
        "language_ids": numbers[np.arange(count)[:, None], segments],
        "masked_lm_positions": begins[:, None] + np.arange(LENGTH),
        "masked_lm_ids": FIRST_WORD + words,
    }
    weights = {"masked_lm_weights": tf.ones([count, LENGTH])}
    return {name: tf.constant(values, tf.int32) for name, values in batch.items()} | weights


def accuracy(objective, model, batch):
    total, weight = objective.compute(batch, False, None, model=model)["masked_lm_accuracy"]
    return float(total / weight)


def learn(objective, batches):
    """Returns a model that learnt from each batch once, and its loss at each."""
    tf.keras.utils.set_random_seed(0)
    model = objective.make_model()
    optimizer, variables = tf.keras.optimizers.Adam(0.005), model.trainable_variables

    @tf.function(reduce_retracing=True)
    def step(batch):
        with tf.GradientTape() as tape:
            results = objective.compute(batch, True, tf.constant([0, 0]), model=model)
            loss = results["masked_lm_loss"][0] / results["masked_lm_loss"][1]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return model, [float(step(batch)) for batch in batches]


@pytest.mark.slow
def test_masked_text_is_read_off_its_translation_and_nothing_else():
    objective, draws = make_objective("translation", LEARNER), np.random.default_rng(0)
    dictionary = draws.permutation(NUM_WORDS)

    def drawn(count):
        return draws.integers(0, NUM_WORDS, [count, LENGTH]), draws.random(count) < 0.5

    batches = []
    for words, order in (drawn(32) for _ in range(300)):
        batches.append(pairs_of(words, dictionary[words], order))
    model, _ = learn(objective, batches)
    words, order = drawn(500)
    right = accuracy(objective, model, pairs_of(words, dictionary[words], order))
    others = draws.permutation(dictionary[words])
    wrong = accuracy(objective, model, pairs_of(words, others, order))
    assert right > 0.95
    assert wrong == pytest.approx((others == dictionary[words]).mean(), abs=0.05)


@pytest.mark.slow
def test_eight_examples_are_learnt_by_heart_where_segments_tell_languages():
    draws = np.random.default_rng(0)
    words, others = draws.integers(0, NUM_WORDS, [2, 8, LENGTH])
    batch = pairs_of(words, others, np.arange(8) % 2 == 0)
    _, losses = learn(make_objective("translation", LEARNER.replace(num_languages=0)), [batch] * 150)
    assert losses[0] > 2 and losses[-1] < 0.1


@pytest.mark.parametrize("num_languages", [2, 0])
def test_encoder_is_told_languages_by_embeddings_or_else_by_segments(num_languages):
    objective = make_objective("translation", CONFIG.replace(num_languages=num_languages, pooler=False))
    model = objective.make_model()
    words = np.zeros([2, LENGTH], int)
    batch = pairs_of(words, words, np.array([False, True]))
    found = objective.compute(batch, False, None, model=model)["masked_lm_loss"]
    table = model.encoder.embeddings.language_embeddings if num_languages else None
    inputs = {
        "input_ids": batch["input_ids"],
        "position_ids": [[*range(LENGTH + 2), *range(LENGTH + 1)]] * 2,
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
        "input_ids": [[CLS, 6, SEP, 7, SEP, 0], [CLS, 7, SEP, 0, 0, 0]],
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
            LANGUAGES,
            "`objective=electra` doesn't tell this model what language a text is in",
        ),
    ],
)
def test_languages_that_do_not_go_together_are_one_sentence(name, changes, languages, message):
    with pytest.raises(InputError) as error:
        make_objective(name, CONFIG.replace(**changes), languages=languages)
    assert message in str(error.value) and "\n" not in str(error.value)
