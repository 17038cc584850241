"""Layers on words: the head that compares texts, the one that aligns a question, and the one of characters."""

import numpy as np
import pytest
import tensorflow as tf
from every_model import copied
from numpy_reference import gelu

from albert_tf.base.errors import InputError
from albert_tf.modeling import (
    AlbertForConditionalQuestionAnswering,
    AlbertForMultipleChoice,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from albert_tf.modeling.aligned_pairs import SHARPNESS
from albert_tf.modeling.heads import NUM_BUCKETS, ngram_buckets
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


def test_row_of_padding_alone_gives_finite_numbers(model, pairs):
    empty = {name: tf.zeros_like(values) for name, values in pairs.items()}
    assert np.isfinite(model(empty)["logits"]).all()


def test_choices_are_compared_with_their_text_too(tiny_config, randomized, pairs):
    model = randomized(AlbertForMultipleChoice(tiny_config.replace(classifier_pooling="aligned")))
    logits = model({name: values[None] for name, values in pairs.items()})["logits"]
    expected = [
        model({name: values[None, row : row + 1] for name, values in pairs.items()})["logits"] for row in range(3)
    ]
    np.testing.assert_allclose(logits[0], np.ravel(expected), rtol=1e-4, atol=1e-5)


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


def test_a_new_layer_changes_nothing_yet(tiny_config, batch):
    plain = AlbertForQuestionAnswering(tiny_config)
    aligned = copied(AlbertForQuestionAnswering(tiny_config.replace(question_alignment="words")), plain)
    for name, values in plain(batch).items():
        np.testing.assert_allclose(aligned(batch)[name], values, rtol=1e-5, atol=1e-6)


def test_beams_are_searched_on_aligned_texts(tiny_config, randomized, batch):
    model = randomized(AlbertForConditionalQuestionAnswering(tiny_config.replace(question_alignment="words")))
    found = model.search(batch, 1, 1, 8)
    expected = tf.argmax(model(batch)["start_logits"][:, 1:], axis=-1) + 1
    np.testing.assert_array_equal(found["start_positions"][:, 0], expected)


NUM_LABELS = 5


@pytest.fixture
def config(tiny_config):
    return tiny_config.replace(character_ngrams=True)


@pytest.fixture
def words():
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
def tagger(config, randomized):
    """A tagger of which n-grams say something."""
    tagger = randomized(AlbertForTokenClassification(config, NUM_LABELS))
    table = tagger.head.table
    table.assign(np.random.default_rng(4).normal(size=table.shape, scale=0.1))
    return tagger


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


def test_each_ngram_has_the_row_of_its_characters_and_its_place(words):
    characters = words["characters"].numpy()
    found = ngram_buckets(words["characters"]).numpy()
    assert found.shape == (2, 8, 24)
    for row, position in np.ndindex(2, 8):
        assert sorted(found[row, position].tolist()) == expected_buckets(characters[row, position])


def test_logits_are_those_of_states_and_of_ngrams_together(tagger, tiny_config, words):
    plain = copied(AlbertForTokenClassification(tiny_config, NUM_LABELS), tagger)
    table = tagger.head.table.numpy().astype(np.float64)
    added = np.array(
        [[table[expected_buckets(each)].sum(axis=0) for each in row] for row in words["characters"].numpy()]
    )
    expected = plain({name: words[name] for name in ("input_ids", "input_mask")})["logits"] + 5.0 * added
    np.testing.assert_allclose(tagger(words)["logits"], expected, rtol=1e-4, atol=1e-5)


def test_a_new_table_says_nothing_yet(config, words):
    tagger = AlbertForTokenClassification(config, NUM_LABELS)
    others = {**words, "characters": words["characters"] + 1}
    np.testing.assert_array_equal(tagger(words)["logits"], tagger(others)["logits"])


def test_characters_must_be_given(config, words):
    tagger = AlbertForTokenClassification(config, NUM_LABELS)
    with pytest.raises(InputError, match="character_ngrams=true needs `characters` in its dictionary"):
        tagger({"input_ids": words["input_ids"]})


@pytest.mark.slow
def test_export_of_keras_takes_characters(tagger, words, tmp_path):
    if not hasattr(tf.keras, "Variable"):
        pytest.skip("Keras 2 exports what a tagger was called with")
    tagger.summary()
    tagger.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    inputs = {**words, "segment_ids": tf.zeros_like(words["input_ids"])}
    np.testing.assert_allclose(exported.serve(inputs)["logits"], tagger(words)["logits"], rtol=1e-4, atol=1e-5)
