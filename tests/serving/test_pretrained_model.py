"""A pre-trained folder as a Python object: guesses and vectors are the model's own, and what it can't do is told."""

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.base.errors import InputError

TEXTS = ["정말 재밌어요", "", "배우들의 연기가 훌륭하고 " * 8, "시간이 아깝다 ㅠㅠ"]


@pytest.fixture(scope="module")
def model():
    return albert_tf.load("models/albert_ko_small")


def states_of(model, text):
    """Returns the last states of one text, without padding: float32 [S, H]."""
    vocabulary = model.tokenizer.vocabulary
    ids = [vocabulary.id_of("[CLS]"), *model.tokenizer.encode(text).ids[1:-1], vocabulary.id_of("[SEP]")]
    return model.model.encoder({"input_ids": tf.constant([ids])})["sequence_output"][0].numpy()


@pytest.mark.slow
def test_vectors_are_means_of_the_states_of_pieces(model):
    found = {pooling: model.encode(TEXTS, pooling=pooling) for pooling in ("mean", "first", "last")}
    for row, text in enumerate(TEXTS):
        states = states_of(model, text)
        pieces = states[1:-1] if len(states) > 2 else states[:1]
        np.testing.assert_allclose(found["mean"][row], pieces.astype(float).mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(found["first"][row], states[0], atol=1e-5)
        np.testing.assert_allclose(found["last"][row], pieces[-1], atol=1e-5)
    assert found["mean"].dtype == np.float32 and model.encode([]).shape == (0, model.backend.trained.config.hidden_size)


def test_many_texts_are_encoded_as_each_alone(model):
    texts = [f"{text} {number}" for number in range(20) for text in TEXTS]
    np.testing.assert_allclose(model.encode(texts)[37:39], model.encode(texts[37:39]), atol=1e-5)


def test_masks_get_the_most_probable_pieces_in_order(model):
    texts = ["[MASK] 연기가 정말 [MASK] 좋았다", "이 영화 정말 [MASK]"]
    found = model.fill_mask(texts, top_k=3)
    assert [len(of_text) for of_text in found] == [2, 1]
    vocabulary = model.tokenizer.vocabulary
    for text, of_text in zip(texts, found):
        ids = [vocabulary.id_of("[CLS]")]
        for number, part in enumerate(text.split("[MASK]")):
            ids += [vocabulary.id_of("[MASK]")] * (number > 0) + model.tokenizer.encode(part).ids[1:-1]
        ids.append(vocabulary.id_of("[SEP]"))
        positions = [place for place, each in enumerate(ids) if each == vocabulary.id_of("[MASK]")]
        inputs = {"input_ids": tf.constant([ids]), "masked_lm_positions": tf.constant([positions])}
        logits = model.model(inputs)["masked_lm_logits"][0].numpy().astype(float)
        probabilities = np.exp(logits - logits.max(axis=-1, keepdims=True))
        probabilities /= probabilities.sum(axis=-1, keepdims=True)
        for guesses, of_mask in zip(of_text, probabilities, strict=True):
            best = np.argsort(-of_mask)[:3]
            assert [guess["piece"] for guess in guesses] == [vocabulary.pieces[each] for each in best]
            np.testing.assert_allclose([guess["probability"] for guess in guesses], of_mask[best], rtol=1e-4)


def test_piece_that_goes_on_with_a_word_is_shown_as_its_text(model):
    guesses = [guess for guess in model.fill_mask(["재미있[MASK]"], top_k=200)[0][0] if guess["piece"][:2] == "##"]
    assert guesses and all(guess["text"] == guess["piece"][2:] for guess in guesses)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: model.predict(["좋다"]), "albert_ko_small was pre-trained and not fine-tuned: in Python "),
        (lambda model: model.task, "fine-tune it, by albert_tf.fit or run_classifier.py --init_checkpoint"),
        (lambda model: model.fill_mask(["좋다 [MASK]", "좋다"]), r"input 1 has no \[MASK\]; write it where a piece is"),
        (lambda model: model.fill_mask("좋다 [MASK]"), "pass a list of inputs, even for a single one. Received: "),
        (lambda model: model.fill_mask(["[MASK]"], top_k=0), "top_k must be a whole number from 1 to 8000. "),
        (lambda model: model.fill_mask(["좋다 " * 200 + "[MASK]"]), r"input 0: a \[MASK\] lies beyond the 128 pieces"),
        (lambda model: model.encode(["좋다", 3]), r"input 1 must be a string. Received: 3 \(int\)"),
        (lambda model: model.encode(["좋다"], "max"), "pooling must be one of mean, first, last, all. Received: 'max'"),
    ],
)
def test_what_can_not_be_asked_is_one_sentence(model, ask, message):
    with pytest.raises(InputError, match=message):
        ask(model)


def test_long_texts_are_cut_and_counted(model):
    before = model.num_cut
    with pytest.warns(UserWarning, match="longer than the 128 pieces that the model reads"):
        model.encode(["좋다 " * 200, "좋다"])
    assert model.num_cut == before + 1
