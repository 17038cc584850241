"""A tokenizer that is called, and the Keras layer, give what Hugging Face's tokenizer gives, under our names."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, TokenizerLayer, Vocabulary

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "나", "##는", "밥", "##을", "먹", "##다", ".", "ㅋㅋ"]
THEIR_NAMES = {"input_ids": "input_ids", "input_mask": "attention_mask", "segment_ids": "token_type_ids"}
OPTIONS = {"padding": True, "return_tensors": "tf"}
# Both normalise and split these alike.
TEXTS = st.text("가나다라마 밥을먹었ab12.,!?", max_size=30)


@pytest.fixture(scope="module")
def tokenizer():
    return KoreanWordPieceTokenizer(Vocabulary(PIECES))


@pytest.fixture(scope="module")
def peer(sample_tokenizer):
    """Hugging Face's tokenizer with the vocabulary and settings of `sample_tokenizer`."""
    transformers = pytest.importorskip("transformers")
    ids = {piece: number for number, piece in enumerate(sample_tokenizer.vocabulary.pieces)}
    return transformers.BertTokenizerFast(ids, do_lower_case=True, strip_accents=False)


def assert_equal(ours, theirs):
    assert ours.keys() == THEIR_NAMES.keys()
    for name, values in ours.items():
        assert values.dtype == tf.int32
        np.testing.assert_array_equal(values, theirs[THEIR_NAMES[name]], err_msg=name)


def test_every_sample_line_has_the_same_ids(sample_tokenizer, peer, sample_lines):
    ids = [encoding.ids for encoding in sample_tokenizer.encode_batch(sample_lines)]
    assert ids == peer(sample_lines)["input_ids"]


@pytest.mark.slow
@settings(max_examples=25)
@given(
    pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4),
    has_pairs=st.booleans(),
    padding=st.sampled_from(["longest", "max_length"]),
    room=st.integers(0, 20),
)
def test_any_texts_are_cut_and_padded_as_by_hugging_face(sample_tokenizer, peer, pairs, has_pairs, padding, room):
    batch = [list(texts) for texts in zip(*pairs)][: 1 + has_pairs]
    assert_equal(sample_tokenizer(*batch, **OPTIONS), peer(*batch, padding=True, return_tensors="np"))
    length = 3 + 2 * room  # of an odd room the two keep the odd piece of another text
    theirs = peer(*batch, padding=padding, truncation=True, max_length=length, return_tensors="np")
    assert_equal(TokenizerLayer(sample_tokenizer, length, padding)(*batch), theirs)


def test_pairs_of_any_lengths_are_cut_as_by_hugging_face(sample_tokenizer, peer):
    lengths = list(itertools.product(range(7), range(7)))
    batch = [". " * first for first, _ in lengths], ["! " * second for _, second in lengths]
    for length in (3, 9, 15):
        theirs = peer(*batch, padding=True, truncation=True, max_length=length, return_tensors="np")
        assert_equal(TokenizerLayer(sample_tokenizer, length, "longest")(*batch), theirs)


def test_padding_uses_the_id_of_the_pad_token():
    pieces = ["[UNK]", "[CLS]", "[SEP]", "나", "[PAD]", "##는"]
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(pieces))
    assert tokenizer(["나", "나는"], **OPTIONS)["input_ids"].numpy().tolist() == [[1, 3, 2, 4], [1, 3, 5, 2]]
    assert tokenizer([], **OPTIONS)["input_ids"].shape[0] == 0


@pytest.mark.parametrize("options", [{}, {**OPTIONS, "truncation": True, "max_length": 8}], ids=str)
def test_other_options_are_refused(tokenizer, options):
    with pytest.raises(InputError, match=r"padding=True and return_tensors='tf' alone; use TokenizerLayer .* Received"):
        tokenizer(["나는 밥", "나"], **options)


@pytest.mark.parametrize("text", ["나는 밥", [None]], ids=str)
def test_what_is_no_list_of_texts_is_refused(tokenizer, text):
    with pytest.raises(InputError, match="must be lists of strings"):
        tokenizer(text, **OPTIONS)


def test_lists_of_different_lengths_are_refused(tokenizer):
    with pytest.raises(InputError, match="there are 2 texts, but 1 text_pairs"):
        tokenizer(["나", "나"], ["나"], **OPTIONS)


def test_ids_may_be_arrays_and_tensors(tokenizer):
    ids = [2, 5, 6, 7, 3]
    for same in (ids, np.array(ids), tf.constant(ids), iter(ids)):
        assert tokenizer.decode(same) == "나는 밥"


@pytest.mark.parametrize("ids", [[0, 13], [-1]])
def test_id_outside_the_vocabulary_is_refused(tokenizer, ids):
    with pytest.raises(InputError, match="ids must be from 0 to 12"):
        tokenizer.decode(ids)
