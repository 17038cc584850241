"""Offsets that TensorFlow ops compute are those of Python, for any text and all switches."""

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import Vocabulary

SWITCHES = ("lower_case", "strip_accents", "squeeze_repeats", "full_width_to_ascii", "keep_emoji", "split_punctuation")
HARD = [
    "나는 밥을 먹었다.",
    "",
    " \t ",
    "\u1102\u1161\u1102\u1173\u11ab \u1107\u1161\u11b8을 가\u11a8 \u1100\u1100\u1161\u11a8\u11a8 \u1161\u11a8 가ㅏ",
    "e\u0301 É a\u0308\u0301 \u0301 x\u0301\u0327 \u1e9b\u0323 ΑΣ σ\u0301 İstanbul i\u0307 ǰ J\u030c ŉ ß ﬁ",
    "\u0dd9\u0dcf\u0dca \u0cc6\u0cc2\u0cd5 \u1025\u102e \u09c7\u09be \u0dd9\u0dca\u0dcf",
    "👩\u200d🚀 \x00 👩\u200d🚀 끝",
    "👩\u200d🚀 👩\u200d 🚀\u200d 👍🏽 ❤\ufe0f ❤ 1\ufe0f\u20e3 1\ufe0f 🏴\U000e0067\U000e0062\U000e007f \ufe0f",
    "ＡＢＣ　１２３！ ａｅ",
    "ㅋㅋㅋㅋㅋㅋ ㅠㅠㅠ!!!! …… 1000000 III ㅋㅋ ㅋ",
    "\ufeff처음\u200b과\u00ad끝\ufffd \x00\x01 \u2028\u3000\u00a0 끝",
    "가_나 _ __ ##는 [MASK] [CLS]",
    "ㅎ\u302e 방\u302f점 ｶﾞ か\u3099",
    "한" * 300,
    "\U0001d15f \u2126 \u212b \uf900 \u0958 \u0344",
]


@pytest.fixture(scope="module")
def vocabularies(sample_tokenizer):
    pieces = sample_tokenizer.vocabulary.pieces
    marked = [piece for piece in pieces if not piece.startswith("##")]
    return {
        "continuation": sample_tokenizer.vocabulary,
        "end_of_word": Vocabulary([*marked, *(f"{piece}_" for piece in marked if piece[0] != "[" and piece != "_")]),
    }


def assert_same(tokenizer, texts, encode=None):
    encode = encode or tokenizer.encode_with_offsets
    found = encode(tf.constant([text.encode() for text in texts], tf.string, shape=[len(texts)]))
    ids, begins, ends = (values.to_list() for values in found)
    for row, encoding in enumerate(tokenizer.encode_batch(texts)):
        assert ids[row] == encoding.ids[1:-1], repr(texts[row])
        assert list(zip(begins[row], ends[row])) == encoding.offsets[1:-1], (repr(texts[row]), encoding.tokens)


def make_tokenizer(vocabularies, scheme, on):
    return KoreanWordPieceTokenizer(vocabularies[scheme], scheme, **{name: name in on for name in SWITCHES})


USUAL = ("lower_case", "keep_emoji", "split_punctuation")


@pytest.mark.parametrize(
    ("scheme", "on"),
    [("continuation", USUAL), ("continuation", SWITCHES), ("end_of_word", SWITCHES[:2]), ("end_of_word", ())],
    ids=str,
)
def test_hard_texts_have_the_offsets_of_python(vocabularies, scheme, on):
    tokenizer = make_tokenizer(vocabularies, scheme, on)
    assert_same(tokenizer, HARD)
    assert_same(tokenizer, HARD[:1])
    assert_same(tokenizer, [" ".join(HARD)])
    assert_same(tokenizer, [])


UNUSUAL = (
    "가각힣ㄱㅏㅋ\u1100\u1161\u11a8\u11a7\u0301\u0327é ＡÀ\u200d👩🚀❤\ufe0f\u20e31\x00\t\u3000\u202eİςΣ.,!a_"
    "\u0dd9\u0dcf\u0dca"
)
# Characters that are no characters yet may be some in the next version of Unicode.
STRINGS = st.text(
    st.one_of(st.sampled_from(UNUSUAL), st.sampled_from(UNUSUAL), st.characters(exclude_categories=["Cs", "Cn"])),
    max_size=40,
)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "on"), [("continuation", USUAL), ("end_of_word", SWITCHES)], ids=str)
def test_any_text_has_the_offsets_of_python(vocabularies, scheme, on):
    tokenizer = make_tokenizer(vocabularies, scheme, on)
    encode = tf.function(tokenizer.encode_with_offsets, input_signature=[tf.TensorSpec([None], tf.string)])

    @settings(max_examples=15)
    @given(st.lists(STRINGS, min_size=1, max_size=8))
    def check(texts):
        assert_same(tokenizer, texts, encode)

    check()


def test_bytes_that_are_no_text_end_in_no_error(sample_tokenizer):
    ids, begins, ends = sample_tokenizer.encode_with_offsets(tf.constant([b"\xff\xfe", b"\xed\xa0\x80a", b"\xea\xb0"]))
    assert ids.row_lengths().numpy().tolist() == begins.row_lengths().numpy().tolist()
    assert (ends.values >= begins.values).numpy().all()
