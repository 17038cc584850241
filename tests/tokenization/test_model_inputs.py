"""The tokenizer inside a graph gives the ids of the tokenizer outside: in tf.data, and saved and loaded."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from text_strategies import ANY_TEXT, SETTINGS, SPECIAL_TOKENS, tokenizer_that_knows

from albert_tf.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.model_inputs import InputEncoder

pytestmark = pytest.mark.slow

TEXTS = ["나는 밥을 먹었다.", "", "ㅋㅋㅋ 진짜 재밌다ㅠㅠ!!", "大韓民國\u3000e\u0301 İ\0", "가" * 300]
PAIRS = ["다시는 보지 않겠다!", "짧다", "", "[MASK] ##는", "나 " * 300]
NAMES = ["input_ids", "input_mask", "segment_ids"]


def expected_inputs(tokenizer, text, text_pair, max_seq_length):
    """Returns what the tokenizer alone gives, cut one piece after another."""
    texts = [[tokenizer.vocabulary.id_of(piece) for piece in tokenizer.tokenize(text)]]
    if text_pair is not None:
        texts.append([tokenizer.vocabulary.id_of(piece) for piece in tokenizer.tokenize(text_pair)])
    while 1 + len(texts) + sum(map(len, texts)) > max_seq_length:
        max(texts, key=len).pop()
    pad, cls, sep = (tokenizer.vocabulary.id_of(token) for token in ("[PAD]", "[CLS]", "[SEP]"))
    ids, segment_ids = [cls], [0]
    for segment, text_ids in enumerate(texts):
        ids += [*text_ids, sep]
        segment_ids += [segment] * (len(text_ids) + 1)
    padding = [0] * (max_seq_length - len(ids))
    return [ids + [pad] * len(padding), [1] * len(ids) + padding, segment_ids + padding]


def assert_encodes(features, tokenizer, texts, pairs, max_seq_length):
    expected = [expected_inputs(tokenizer, text, pair, max_seq_length) for text, pair in zip(texts, pairs)]
    expected = np.array(expected, np.int32).reshape(len(texts), len(NAMES), max_seq_length)
    for index, name in enumerate(NAMES):
        assert features[name].dtype == tf.int32
        np.testing.assert_array_equal(features[name], expected[:, index], name)


def encode_untraced(tokenizer, texts, pairs, max_seq_length):
    """Runs the ops one by one: a graph for every example would take long to build."""
    tf.config.run_functions_eagerly(True)
    try:
        pair = None if pairs is None else tf.constant(pairs)
        return InputEncoder(tokenizer, max_seq_length)(tf.constant(texts), pair)
    finally:
        tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module", params=["continuation", "end_of_word"])
def tokenizer(request) -> KoreanWordPieceTokenizer:
    return tokenizer_that_knows(TEXTS + PAIRS, wordpiece_scheme=request.param, strip_accents=True)


@pytest.fixture(scope="module")
def exported(tokenizer, tmp_path_factory) -> str:
    folder = str(tmp_path_factory.mktemp("encoder"))
    InputEncoder(tokenizer, 20).export(folder)
    return folder


@settings(max_examples=60)
@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT), min_size=1, max_size=3), st.booleans(), SETTINGS, st.integers(3, 40))
def test_any_texts(rows, has_pair, choice, max_seq_length):
    texts, pairs = (list(column) for column in zip(*rows))
    tokenizer = tokenizer_that_knows(texts + pairs, **choice)
    features = encode_untraced(tokenizer, texts, pairs if has_pair else None, max_seq_length)
    assert_encodes(features, tokenizer, texts, pairs if has_pair else [None] * len(texts), max_seq_length)


@pytest.mark.parametrize("max_seq_length", [3, 4, 5, 10, 15])
@pytest.mark.parametrize("has_pair", [True, False])
def test_the_longer_text_is_cut(max_seq_length, has_pair):
    tokenizer = KoreanWordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, "가", "##가", "나", "##나"]))
    texts = ["가" * length for length in range(9) for _ in range(9)]
    pairs = ["나" * length for _ in range(9) for length in range(9)] if has_pair else [None] * len(texts)
    features = encode_untraced(tokenizer, texts, pairs if has_pair else None, max_seq_length)
    assert_encodes(features, tokenizer, texts, pairs, max_seq_length)


def test_works_inside_a_dataset(tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, PAIRS)).batch(2).map(InputEncoder(tokenizer, 20))
    batches = list(dataset.as_numpy_iterator())
    features = {name: np.concatenate([batch[name] for batch in batches]) for name in NAMES}
    assert_encodes(features, tokenizer, TEXTS, PAIRS, 20)


def test_saved_and_loaded(tokenizer, exported):
    loaded = tf.saved_model.load(exported)
    assert_encodes(loaded(tf.constant(TEXTS)), tokenizer, TEXTS, [None] * len(TEXTS), 20)
    features = loaded.signatures["text_pair"](texts=tf.constant(TEXTS), text_pair=tf.constant(PAIRS))
    assert_encodes(features, tokenizer, TEXTS, PAIRS, 20)
    assert loaded(tf.constant([], tf.string))["input_ids"].shape == (0, 20)


def test_the_tokenizer_lies_beside_the_saved_model(tokenizer, exported):
    assert KoreanWordPieceTokenizer.load(exported).identity == tokenizer.identity


def test_a_process_without_albert_tf_gives_the_same(tmp_path):
    tokenizer = tokenizer_that_knows(TEXTS, wordpiece_scheme="end_of_word")
    InputEncoder(tokenizer, 20).export(tmp_path / "encoder")
    program = (
        "import json, sys, tensorflow as tf, tensorflow_text\n"
        "features = tf.saved_model.load(sys.argv[1]).signatures['serving_default'](tf.constant(json.load(sys.stdin)))\n"
        "assert not any(name.startswith('albert_tf') for name in sys.modules)\n"
        "print(json.dumps({name: values.numpy().tolist() for name, values in features.items()}))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "encoder")]
    result = subprocess.run(command, input=json.dumps(TEXTS), capture_output=True, text=True, cwd=tmp_path, check=True)
    features = {name: np.array(values, np.int32) for name, values in json.loads(result.stdout).items()}
    assert_encodes(features, tokenizer, TEXTS, [None] * len(TEXTS), 20)


def test_mistakes_are_refused(tokenizer):
    with pytest.raises(InputError, match=r"max_seq_length must be at least 3\. Received: 2"):
        InputEncoder(tokenizer, 2)
    with pytest.raises(InputError, match=r"no \[SEP\]"):
        InputEncoder(KoreanWordPieceTokenizer(Vocabulary(["[PAD]", "[UNK]", "[CLS]"])), 8)
