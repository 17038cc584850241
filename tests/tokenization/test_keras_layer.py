"""The tokenizer as a Keras layer."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, TokenizerLayer, Vocabulary

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TEXTS = ["나는 밥을 먹었다 ㅋㅋ", "", "정말? The 2nd time, again and again and again and again"]
PAIRS = ["네", "아니요, 그렇지 않아요", "no"]


@pytest.fixture(params=["sample_tokenizer", "english_tokenizer"])
def tokenizer(request):
    """A tokenizer of WordPiece, and one of SentencePiece."""
    return request.getfixturevalue(request.param)


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
        assert found[name].dtype == "int32"


@pytest.mark.parametrize("padding", ["max_length", "longest"])
def test_inputs_are_those_of_the_tokenizer(tokenizer, padding):
    layer = TokenizerLayer(tokenizer, 12, padding)
    options = {"padding": padding, "truncation": True, "max_length": 12, "return_tensors": "np"}
    expected = tokenizer(TEXTS, **options)
    for texts in (TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, object), tf.constant(TEXTS)):
        assert_equal(layer(texts), expected)
    assert_equal(layer(tf.constant(TEXTS)[:, None]), expected)
    assert_equal(layer(TEXTS[0]), tokenizer(TEXTS[:1], **options))
    assert_equal(layer(TEXTS, PAIRS), tokenizer(TEXTS, PAIRS, **options))


def test_rows_are_as_long_as_the_longest_or_as_asked(sample_tokenizer):
    shapes = [
        TokenizerLayer(sample_tokenizer, 50, padding)(["밥", "나는 밥을"])["input_ids"].shape
        for padding in ("max_length", "longest")
    ]
    assert shapes[0] == [2, 50] and shapes[1][1] < 10


@pytest.mark.slow
def test_data_sets_are_mapped(tokenizer):
    layer = TokenizerLayer(tokenizer, 12)
    texts = tf.data.Dataset.from_tensor_slices((TEXTS, PAIRS)).batch(3)
    assert_equal(next(iter(texts.map(layer))), layer(TEXTS, PAIRS))
    assert_equal(next(iter(texts.map(lambda text, _: layer(text)))), layer(TEXTS))


def test_layer_is_built_again_from_its_config(tokenizer):
    layer = TokenizerLayer(tokenizer, 12, "longest", name="words")
    again = tf.keras.utils.deserialize_keras_object(tf.keras.utils.serialize_keras_object(layer))
    assert type(again) is TokenizerLayer and again.get_config() == layer.get_config()
    assert again.tokenizer.identity == tokenizer.identity and again.name == "words"
    assert_equal(again(TEXTS), layer(TEXTS))


def test_config_with_another_vocabulary_is_refused(sample_tokenizer):
    config = TokenizerLayer(sample_tokenizer, 12).get_config()
    other = KoreanWordPieceTokenizer(Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##a"]))
    files = {**config["tokenizer"], "vocab.txt": TokenizerLayer(other, 12).get_config()["tokenizer"]["vocab.txt"]}
    with pytest.raises(InputError, match="is not the vocabulary that"):
        TokenizerLayer.from_config({**config, "tokenizer": files})
    with pytest.raises(InputError, match="a name without folders"):
        TokenizerLayer.from_config({**config, "tokenizer": {"../vocab.txt": ""}})


def test_arguments_are_checked(sample_tokenizer):
    with pytest.raises(InputError, match="padding must be one of max_length, longest"):
        TokenizerLayer(sample_tokenizer, 12, "shortest")
    with pytest.raises(InputError, match="max_seq_length must be at least 3"):
        TokenizerLayer(sample_tokenizer, 2)
    with pytest.raises(InputError, match=r"has no \[CLS\]"):
        TokenizerLayer(KoreanWordPieceTokenizer(Vocabulary(["[PAD]", "[UNK]", "[SEP]", "##a"])), 12)


# What another process that has the file alone answers to raw strings.
ANSWER = """
import sys
import numpy as np
import tensorflow as tf
import albert_tf.tokenization
model = tf.keras.models.load_model(sys.argv[1])
np.save(sys.argv[2], model(tf.constant(sys.argv[3:])))
"""


@pytest.mark.slow
def test_saved_model_answers_raw_strings_in_another_process(tokenizer, tmp_path):
    text = tf.keras.Input([], dtype="string", name="text")
    inputs = TokenizerLayer(tokenizer, 12, "longest")(text)
    embedded = tf.keras.layers.Embedding(len(tokenizer), 4)(inputs["input_ids"])
    outputs = tf.keras.layers.Dense(2)(tf.keras.layers.GlobalMaxPooling1D()(embedded))
    model = tf.keras.Model(text, outputs)
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(tf.data.Dataset.from_tensor_slices((TEXTS, [0, 1, 1])).batch(2), verbose=0)
    expected = model.predict(tf.constant(TEXTS), verbose=0)

    clone = tf.keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_allclose(clone(tf.constant(TEXTS)), expected, rtol=1e-5, atol=1e-6)

    model.save(tmp_path / "model.keras")
    command = [sys.executable, "-c", ANSWER, str(tmp_path / "model.keras"), str(tmp_path / "answers.npy"), *TEXTS]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "answers.npy"), expected, rtol=1e-5, atol=1e-6)

    tf.saved_model.save(model, str(tmp_path / "saved"))
    [served] = tf.saved_model.load(str(tmp_path / "saved")).signatures["serving_default"](tf.constant(TEXTS)).values()
    np.testing.assert_allclose(served, expected, rtol=1e-5, atol=1e-6)
