"""The head that reads a word's characters beside the states of its pieces."""

import numpy as np
import pytest
import tensorflow as tf
from every_model import copied

from albert_tf.base.errors import InputError
from albert_tf.modeling import AlbertForTokenClassification
from albert_tf.modeling.heads import NUM_BUCKETS, ngram_buckets
from albert_tf.modeling.layers import named_variables

NUM_LABELS = 5


@pytest.fixture
def config(tiny_config):
    return tiny_config.replace(character_ngrams=True)


@pytest.fixture
def batch():
    """A text of 8 pieces and one of 6, with code points around their words, the last of them the highest there is."""
    generator = np.random.default_rng(3)
    characters = generator.integers(0xAC00, 0xD7A4, [2, 8, 2, 5])
    characters[1, 2] = 0x10FFFF
    return {
        "input_ids": tf.constant(generator.integers(5, 30, [2, 8]), tf.int32),
        "input_mask": tf.constant([[1] * 8, [1] * 6 + [0] * 2], tf.int32),
        "characters": tf.constant(characters, tf.int32),
    }


@pytest.fixture
def model(config, randomized):
    """A model of which n-grams say something."""
    model = randomized(AlbertForTokenClassification(config, NUM_LABELS))
    table = model.head.table
    table.assign(np.random.default_rng(4).normal(size=table.shape, scale=0.1))
    return model


def expected_buckets(characters):
    """Returns the rows of the n-grams of a word, with Python's own numbers, which never overflow."""
    found = []
    for length in (1, 2, 3):
        for place in range(2):
            for begin in range(6 - length):
                number = 1 + 5 * place + begin
                for character in characters[place][begin : begin + length]:
                    number = (number * 1_000_003 + int(character)) % (2**31 - 1)
                found.append(number % NUM_BUCKETS)
    return sorted(found)


def test_each_ngram_has_the_row_of_its_characters_and_its_place(batch):
    characters = batch["characters"].numpy()
    found = ngram_buckets(batch["characters"]).numpy()
    assert found.shape == (2, 8, 24)
    for row, position in np.ndindex(2, 8):
        assert sorted(found[row, position].tolist()) == expected_buckets(characters[row, position])


def test_ngrams_share_rows_no_more_often_than_at_random():
    characters = np.random.default_rng(0).integers(0xAC00, 0xD7A4, [NUM_BUCKETS // 24, 2, 5])
    ngrams = {
        (place, begin, *characters[word, place, begin:end])
        for word, place in np.ndindex(len(characters), 2)
        for begin in range(5)
        for end in range(begin + 1, min(begin + 3, 5) + 1)
    }
    rows = np.unique(ngram_buckets(tf.constant(characters, tf.int32)))
    assert len(rows) / NUM_BUCKETS > 1 - np.exp(-len(ngrams) / NUM_BUCKETS) - 0.005


def test_logits_are_those_of_states_and_of_ngrams_together(model, tiny_config, batch):
    plain = copied(AlbertForTokenClassification(tiny_config, NUM_LABELS), model)
    table = model.head.table.numpy().astype(np.float64)
    added = np.array(
        [[table[expected_buckets(each)].sum(axis=0) for each in row] for row in batch["characters"].numpy()]
    )
    expected = plain({name: batch[name] for name in ("input_ids", "input_mask")})["logits"] + 5.0 * added
    np.testing.assert_allclose(model(batch)["logits"], expected, rtol=1e-4, atol=1e-5)


def test_a_new_table_says_nothing_yet(config, batch):
    model = AlbertForTokenClassification(config, NUM_LABELS)
    others = {**batch, "characters": batch["characters"] + 1}
    np.testing.assert_array_equal(model(batch)["logits"], model(others)["logits"])


def test_the_rows_that_are_read_learn(model, batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.log_softmax(model(batch, training=True)["logits"])[..., 0])
    gradient = tf.convert_to_tensor(tape.gradient(loss, named_variables(model)["head/table"])).numpy()
    read = np.unique(ngram_buckets(batch["characters"]))
    assert np.abs(gradient[read]).min(axis=-1).all() and not np.delete(gradient, read, axis=0).any()


def test_half_precision_is_close(config, model, batch):
    close = copied(AlbertForTokenClassification(config, NUM_LABELS, dtype="mixed_bfloat16"), model)(batch)["logits"]
    assert close.dtype == tf.float32
    np.testing.assert_allclose(close, model(batch)["logits"], rtol=0.1, atol=0.1)


def test_characters_must_be_given(config, batch):
    model = AlbertForTokenClassification(config, NUM_LABELS)
    with pytest.raises(InputError, match="character_ngrams=true needs `characters` in its dictionary"):
        model({"input_ids": batch["input_ids"]})


@pytest.mark.slow
def test_export_of_keras_takes_characters(model, batch, tmp_path):
    if not hasattr(tf.keras, "Variable"):
        pytest.skip("Keras 2 exports what a model was called with")
    model.summary()
    model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    inputs = {**batch, "segment_ids": tf.zeros_like(batch["input_ids"])}
    np.testing.assert_allclose(exported.serve(inputs)["logits"], model(batch)["logits"], rtol=1e-4, atol=1e-5)
