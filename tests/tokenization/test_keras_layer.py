"""The tokenizer as a Keras layer: in Python, in tf.data, in a model, and saved and loaded."""

import numpy as np
import pytest
import tensorflow as tf
from text_strategies import SPECIAL_TOKENS, tokenizer_that_knows

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, TokenizerLayer, Vocabulary

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


@pytest.mark.parametrize("padding", ["max_length", "longest"])
def test_inputs_are_those_of_the_tokenizer(sample_tokenizer, padding):
    layer = TokenizerLayer(sample_tokenizer, 12, padding)
    expected = expected_inputs(sample_tokenizer, TEXTS, None, 12, padding)
    for texts in (TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, object), tf.constant(TEXTS)):
        assert_equal(layer(texts), expected)
    assert_equal(layer(tf.constant(TEXTS)[:, None]), expected)
    assert_equal(layer(TEXTS[0]), expected_inputs(sample_tokenizer, TEXTS[:1], None, 12, padding))
    assert_equal(layer(TEXTS, PAIRS), expected_inputs(sample_tokenizer, TEXTS, PAIRS, 12, padding))


@pytest.mark.parametrize("max_seq_length", [3, 10, 15])
def test_the_longer_text_is_cut(max_seq_length):
    tokenizer = KoreanWordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, "가", "##가", "나", "##나"]))
    texts = ["가" * length for length in range(9) for _ in range(9)]
    pairs = ["나" * length for _ in range(9) for length in range(9)]
    for given in ((texts[::9], None), (texts, pairs)):
        found = TokenizerLayer(tokenizer, max_seq_length)(*given)
        assert_equal(found, expected_inputs(tokenizer, *given, max_seq_length))


def test_data_sets_are_mapped():
    tokenizer = tokenizer_that_knows(HARD_TEXTS + HARD_PAIRS, strip_accents=True)
    layer = TokenizerLayer(tokenizer, 20)
    texts = tf.data.Dataset.from_tensor_slices((HARD_TEXTS, HARD_PAIRS)).batch(5)
    assert_equal(next(iter(texts.map(layer))), expected_inputs(tokenizer, HARD_TEXTS, HARD_PAIRS, 20))


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


def test_model_that_begins_with_it_learns_and_is_saved_with_its_vocabulary(sample_tokenizer, tmp_path):
    text = tf.keras.Input([], dtype="string", name="text")
    inputs = TokenizerLayer(sample_tokenizer, 12, "longest")(text)
    embedded = tf.keras.layers.Embedding(len(sample_tokenizer), 4)(inputs["input_ids"])
    model = tf.keras.Model(text, tf.keras.layers.Dense(2)(tf.keras.layers.GlobalMaxPooling1D()(embedded)))
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(tf.data.Dataset.from_tensor_slices((TEXTS, [0, 1, 1])).batch(2), verbose=0)
    model.save(tmp_path / "model.keras")
    found, expected = (
        each(tf.constant(TEXTS)) for each in (tf.keras.models.load_model(tmp_path / "model.keras"), model)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_saved_model_holds_what_its_graph_reads(english_tokenizer, tmp_path):
    text = tf.keras.Input([], dtype="string", name="text")
    layer = TokenizerLayer(english_tokenizer, 12)
    tf.saved_model.save(tf.keras.Model(text, layer(text)["input_ids"]), str(tmp_path))
    [found] = tf.saved_model.load(str(tmp_path)).signatures["serving_default"](tf.constant(TEXTS)).values()
    np.testing.assert_array_equal(found, layer(TEXTS)["input_ids"])
