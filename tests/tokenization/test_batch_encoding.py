"""A tokenizer that is called gives what Hugging Face's gives, under our models' names."""

import doctest
import itertools
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tokenizer_reference.md"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "나", "##는", "밥", "##을", "먹", "##다", ".", "ㅋㅋ"]
THEIR_NAMES = {"input_ids": "input_ids", "input_mask": "attention_mask", "segment_ids": "token_type_ids"}
# Both normalise and split these alike.
TEXTS = st.text("가나다라마 밥을먹었ab12.,!?", max_size=30)


@pytest.fixture(scope="module")
def tokenizer():
    return KoreanWordPieceTokenizer(Vocabulary(PIECES))


@pytest.fixture(scope="module")
def peer(sample_tokenizer):
    """Hugging Face's tokenizer with the vocabulary and settings of `sample_tokenizer`."""
    transformers = pytest.importorskip("transformers")
    return transformers.BertTokenizerFast(sample_tokenizer.get_vocab(), do_lower_case=True, strip_accents=False)


def assert_equal(ours, theirs):
    assert ours.keys() == THEIR_NAMES.keys()
    for name, values in ours.items():
        same = theirs[THEIR_NAMES[name]]
        if isinstance(values, list):  # NumPy compares nested lists element by element, in Python
            assert values == same, name
        else:
            np.testing.assert_array_equal(values, same, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("return_tensors", [None, "np", "tf"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"padding": True},
        {"padding": "longest", "truncation": True, "max_length": 12},
        {"padding": "max_length", "truncation": "longest_first", "max_length": 33},
    ],
    ids=str,
)
def test_sample_lines_are_encoded_as_by_hugging_face(sample_tokenizer, peer, sample_lines, arguments, return_tensors):
    texts, pairs = sample_lines[:600:2], sample_lines[1:600:2]
    peer_tensors = return_tensors and "np"
    for batch in ((texts,), (texts, pairs)):
        ours = sample_tokenizer(*batch, **arguments, return_tensors=return_tensors)
        assert_equal(ours, peer(*batch, **arguments, return_tensors=peer_tensors))
        if return_tensors:
            dtypes = {values.dtype for values in ours.values()}
            assert dtypes == {np.dtype(np.int32) if return_tensors == "np" else tf.int32}


def test_every_sample_line_has_the_same_ids(sample_tokenizer, peer, sample_lines):
    assert_equal(sample_tokenizer(sample_lines), peer(sample_lines))


@pytest.mark.slow
@settings(max_examples=60)
@given(
    pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4),
    has_pairs=st.booleans(),
    padding=st.sampled_from([False, True, "max_length"]),
    truncation=st.booleans(),
    max_length=st.integers(3, 40),
)
def test_any_texts_are_truncated_and_padded_as_by_hugging_face(
    sample_tokenizer, peer, pairs, has_pairs, padding, truncation, max_length
):
    batch = [list(texts) for texts in zip(*pairs)][: 1 + has_pairs]
    arguments = {"padding": padding, "truncation": truncation}
    if truncation or padding == "max_length":
        arguments["max_length"] = max_length
    assert_equal(sample_tokenizer(*batch, **arguments), peer(*batch, **arguments))
    single = [texts[0] for texts in batch]
    if all(single):  # they take an empty second text, where it is not in a list, for none
        assert_equal(sample_tokenizer(*single, **arguments), peer(*single, **arguments))


def test_pairs_of_any_lengths_are_truncated_as_by_hugging_face(sample_tokenizer, peer):
    lengths = list(itertools.product(range(7), range(7)))
    batch = [". " * first for first, _ in lengths], ["! " * second for _, second in lengths]
    for max_length in range(3, 16):
        arguments = {"truncation": True, "max_length": max_length}
        assert_equal(sample_tokenizer(*batch, **arguments), peer(*batch, **arguments))


def test_one_text_gives_flat_lists_and_a_list_gives_rows(tokenizer):
    assert tokenizer("나는 밥")["input_ids"] == [2, 5, 6, 7, 3]
    assert tokenizer(["나는 밥"])["input_ids"] == [[2, 5, 6, 7, 3]]
    assert tokenizer("나는", "밥을")["segment_ids"] == [0, 0, 0, 0, 1, 1, 1]
    assert tokenizer("나는 밥", return_tensors="np")["input_ids"].shape == (1, 5)
    assert tokenizer([], padding=True)["input_ids"] == []
    assert tokenizer([], return_tensors="tf")["input_ids"].shape == (0, 0)


def test_padding_uses_the_id_of_the_pad_token():
    pieces = ["[UNK]", "[CLS]", "[SEP]", "나", "[PAD]", "##는"]
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(pieces))
    assert tokenizer(["나", "나는"], padding=True)["input_ids"] == [[1, 3, 2, 4], [1, 3, 5, 2]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"padding": "max_length"}, "padding='max_length' needs max_length"),
        ({"truncation": True}, "truncation=True needs max_length"),
        ({"max_length": 8}, "max_length=8 has no effect without truncation=True or padding='max_length'"),
        ({"padding": True, "max_length": 8}, "max_length=8 has no effect"),
        ({"padding": "always"}, "padding must be one of False, True, 'longest', 'max_length'. Received: 'always'"),
        ({"truncation": "only_first", "max_length": 8}, "truncation must be one of False, True, 'longest_first'"),
        ({"return_tensors": "pt"}, "return_tensors must be one of None, 'np', 'tf'. Received: 'pt'"),
        ({"return_tensors": "np"}, "rows of one length, but they differ; pass padding=True"),
        ({"truncation": True, "max_length": 1}, "max_length must be at least 2 for the special tokens. Received: 1"),
        ({"padding": "max_length", "max_length": 0}, "max_length must be at least 2"),
        ({"text_pair": "나"}, "must both be strings, or both be lists of strings"),
        ({"text_pair": ["나"]}, "there are 2 texts, but 1 text_pairs"),
        (
            {"text_pair": ["나", "나"], "truncation": True, "max_length": 2},
            "max_length must be at least 3 for the special tokens",
        ),
    ],
    ids=str,
)
def test_arguments_that_contradict_each_other_are_refused(tokenizer, arguments, message):
    with pytest.raises(InputError) as error:
        tokenizer(["나는 밥", "나"], **arguments)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("text", [None, 7, [None], [["나"]], [b"a"]], ids=str)
def test_what_is_no_text_is_refused(tokenizer, text):
    with pytest.raises(InputError, match="must both be strings, or both be lists of strings"):
        tokenizer(text)


def test_missing_special_token_is_named():
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(["[UNK]", "[CLS]", "[SEP]", "나"]))
    assert tokenizer("나")["input_ids"] == [1, 3, 2]
    with pytest.raises(InputError, match=r"has no \[PAD\]"):
        tokenizer(["나"], padding=True)
    with pytest.raises(InputError, match=r"has no \[MASK\]"):
        _ = tokenizer.mask_token_id
    assert tokenizer.all_special_ids == [0, 1, 2]


def test_lookups_are_those_of_hugging_face(sample_tokenizer, peer):
    names = ["pad", "unk", "cls", "sep", "mask"]
    for name in [f"{name}_token{end}" for name in names for end in ("", "_id")]:
        assert getattr(sample_tokenizer, name) == getattr(peer, name)
    assert len(sample_tokenizer) == sample_tokenizer.vocab_size == len(peer)
    assert sample_tokenizer.get_vocab() == peer.get_vocab()
    assert sorted(sample_tokenizer.all_special_ids) == sorted(peer.all_special_ids)
    tokens = ["##다", "[MASK]", "없는조각"]
    ids = sample_tokenizer.convert_tokens_to_ids(tokens)
    assert ids == peer.convert_tokens_to_ids(tokens)
    assert sample_tokenizer.convert_tokens_to_ids("##다") == ids[0]
    assert sample_tokenizer.convert_ids_to_tokens(ids) == peer.convert_ids_to_tokens(ids) == ["##다", "[MASK]", "[UNK]"]
    assert sample_tokenizer.convert_ids_to_tokens(ids[0]) == "##다"


def test_ids_may_be_arrays_and_tensors(tokenizer):
    ids = [2, 5, 6, 7, 3]
    for same in (np.array(ids), tf.constant(ids), iter(ids)):
        assert tokenizer.decode(same) == "나는 밥"
    assert tokenizer.convert_ids_to_tokens(tf.constant(5)) == "나"
    assert tokenizer.batch_decode(tf.constant([ids, ids])) == ["나는 밥"] * 2


@pytest.mark.parametrize("ids", [[0, 13], [-1], 13])
def test_id_outside_the_vocabulary_is_refused(tokenizer, ids):
    with pytest.raises(InputError, match="ids must be from 0 to 12"):
        tokenizer.convert_ids_to_tokens(ids)


@pytest.mark.parametrize("scheme", ["continuation", "end_of_word"])
def test_special_tokens_are_decoded_on_request(scheme):
    pieces = {"continuation": ["나", "##는", "밥"], "end_of_word": ["나", "는_", "밥"]}[scheme]
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(PIECES[:5] + pieces), wordpiece_scheme=scheme)
    ids = tokenizer("나는 밥")["input_ids"]
    assert tokenizer.decode(ids) == "나는 밥"
    assert tokenizer.decode([*ids, 0, 1], skip_special_tokens=False) == "[CLS] 나는 밥 [SEP] [PAD] [UNK]"
    assert tokenizer.batch_decode([ids, [4]], skip_special_tokens=False) == ["[CLS] 나는 밥 [SEP]", "[MASK]"]


def test_folder_is_saved_and_loaded_under_both_names(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    assert KoreanWordPieceTokenizer.from_pretrained(tmp_path).identity == tokenizer.identity
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"there is no tokenizer.json beside .*vocab.txt .*from_vocab_file$"):
        KoreanWordPieceTokenizer.from_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"can't read the tokenizer settings no/such/folder/tokenizer\.json"):
        KoreanWordPieceTokenizer.from_pretrained("no/such/folder")


def test_example_of_the_document_gives_what_it_shows():
    examples = doctest.DocTestParser().get_doctest(
        DOCUMENT.read_text(encoding="utf-8"), {}, DOCUMENT.name, str(DOCUMENT), 0
    )
    assert len(examples.examples) > 5
    report = []
    doctest.DocTestRunner().run(examples, out=report.append)
    assert not report, "".join(report)
