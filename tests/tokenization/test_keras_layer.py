"""The tokenizer as a Keras layer: in Python, in tf.data, in a model, and saved and loaded."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from text_strategies import ANY_TEXT, SETTINGS, SPECIAL_TOKENS, tokenizer_that_knows

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, TokenizerLayer, Vocabulary

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TEXTS = ["나는 밥을 먹었다 ㅋㅋ", "", "정말? The 2nd time, again and again and again and again"]
PAIRS = ["네", "아니요, 그렇지 않아요", "no"]
HARD_TEXTS = ["나는 밥을 먹었다.", "", "ㅋㅋㅋ 진짜 재밌다ㅠㅠ!!", "大韓民國\u3000e\u0301 İ\0", "가" * 300]
HARD_PAIRS = ["다시는 보지 않겠다!", "짧다", "", "[MASK] ##는", "나 " * 300]
NAMES = ["input_ids", "input_mask", "segment_ids"]


@pytest.fixture(params=["sample_tokenizer", "english_tokenizer"])
def tokenizer(request):
    """A tokenizer of WordPiece, and one of SentencePiece."""
    return request.getfixturevalue(request.param)


def expected_inputs(tokenizer, texts, pairs, max_seq_length, padding="max_length"):
    """Returns what the tokenizer alone gives, cut one piece after another."""
    rows = [_expected_row(tokenizer, given, max_seq_length) for given in zip(*[texts, pairs][: 1 + bool(pairs)])]
    length = max_seq_length if padding == "max_length" else max(len(ids) for ids, _, _ in rows)
    pad = tokenizer.vocabulary.id_of("[PAD]")
    columns = zip(NAMES, zip(*rows), (pad, 0, 0))
    return {
        name: np.array([row + [value] * (length - len(row)) for row in column], np.int32)
        for name, column, value in columns
    }


def _expected_row(tokenizer, given, max_seq_length):
    cls, sep = (tokenizer.vocabulary.id_of(token) for token in ("[CLS]", "[SEP]"))
    texts = [[tokenizer.vocabulary.id_of(piece) for piece in tokenizer.tokenize(text)] for text in given]
    while 1 + len(texts) + sum(map(len, texts)) > max_seq_length:
        max(texts, key=len).pop()
    ids, segment_ids = [cls], [0]
    for segment, text_ids in enumerate(texts):
        ids += [*text_ids, sep]
        segment_ids += [segment] * (len(text_ids) + 1)
    return ids, [1] * len(ids), segment_ids


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
        assert found[name].dtype == "int32"


@pytest.mark.keras_2
@pytest.mark.parametrize("padding", ["max_length", "longest"])
def test_inputs_are_those_of_the_tokenizer(tokenizer, padding):
    layer = TokenizerLayer(tokenizer, 12, padding)
    expected = expected_inputs(tokenizer, TEXTS, None, 12, padding)
    for texts in (TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, object), tf.constant(TEXTS)):
        assert_equal(layer(texts), expected)
    assert_equal(layer(tf.constant(TEXTS)[:, None]), expected)
    assert_equal(layer(TEXTS[0]), expected_inputs(tokenizer, TEXTS[:1], None, 12, padding))
    assert_equal(layer(TEXTS, PAIRS), expected_inputs(tokenizer, TEXTS, PAIRS, 12, padding))


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT), min_size=1, max_size=3), st.booleans(), SETTINGS, st.integers(3, 40))
def test_any_texts(rows, has_pair, choice, max_seq_length):
    texts, pairs = (list(column) for column in zip(*rows))
    tokenizer = tokenizer_that_knows(texts + pairs, **choice)
    given = [texts, pairs][: 1 + has_pair]
    found = TokenizerLayer(tokenizer, max_seq_length)(*given)
    assert_equal(found, expected_inputs(tokenizer, texts, pairs if has_pair else None, max_seq_length))


@pytest.mark.slow
@pytest.mark.parametrize("max_seq_length", [3, 4, 5, 10, 15])
@pytest.mark.parametrize("has_pair", [True, False])
def test_the_longer_text_is_cut(max_seq_length, has_pair):
    tokenizer = KoreanWordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, "가", "##가", "나", "##나"]))
    texts = ["가" * length for length in range(9) for _ in range(9)]
    pairs = ["나" * length for _ in range(9) for length in range(9)] if has_pair else None
    found = TokenizerLayer(tokenizer, max_seq_length)(texts, pairs)
    assert_equal(found, expected_inputs(tokenizer, texts, pairs, max_seq_length))


def test_rows_are_as_long_as_the_longest_or_as_asked(sample_tokenizer):
    shapes = [
        TokenizerLayer(sample_tokenizer, 50, padding)(["밥", "나는 밥을"])["input_ids"].shape
        for padding in ("max_length", "longest")
    ]
    assert shapes[0] == [2, 50] and shapes[1][1] < 10


@pytest.mark.keras_2
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["continuation", "end_of_word"])
def test_data_sets_are_mapped(scheme):
    tokenizer = tokenizer_that_knows(HARD_TEXTS + HARD_PAIRS, wordpiece_scheme=scheme, strip_accents=True)
    layer = TokenizerLayer(tokenizer, 20)
    texts = tf.data.Dataset.from_tensor_slices((HARD_TEXTS, HARD_PAIRS)).batch(5)
    assert_equal(next(iter(texts.map(layer))), expected_inputs(tokenizer, HARD_TEXTS, HARD_PAIRS, 20))
    alone = texts.map(lambda text, _: layer(text))
    assert_equal(next(iter(alone)), expected_inputs(tokenizer, HARD_TEXTS, None, 20))


@pytest.mark.keras_2
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


@pytest.mark.slow
def test_a_process_without_albert_tf_gives_the_same(tmp_path):
    tokenizer = tokenizer_that_knows(HARD_TEXTS, wordpiece_scheme="end_of_word")
    text = tf.keras.Input([], dtype="string", name="text")
    model = tf.keras.Model(text, TokenizerLayer(tokenizer, 20)(text))
    # Keras 2 names the outputs of a model that is saved as it is after its layers.
    signature = tf.function(lambda text: model(text), [tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(model, str(tmp_path / "encoder"), signature)
    program = (
        "import json, sys, tensorflow as tf, tensorflow_text\n"
        "features = tf.saved_model.load(sys.argv[1]).signatures['serving_default'](tf.constant(json.load(sys.stdin)))\n"
        "assert not any(name.startswith('albert_tf') for name in sys.modules)\n"
        "print(json.dumps({name: values.numpy().tolist() for name, values in features.items()}))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "encoder")]
    result = subprocess.run(
        command, input=json.dumps(HARD_TEXTS), capture_output=True, text=True, cwd=tmp_path, check=True
    )
    found = {name: np.array(values, np.int32) for name, values in json.loads(result.stdout).items()}
    assert_equal(found, expected_inputs(tokenizer, HARD_TEXTS, None, 20))


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
