"""SentencePieceTokenizer gives the ids of the original and of Hugging Face, and spans in the text as given."""

import gc
import re

import pytest
import sentencepiece_training
import tensorflow as tf
from hostile_texts import draw_texts
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece_reference import ReferenceTokenizer
from text_strategies import ANY_TEXT

from albert_tf.base.errors import InputError
from albert_tf.tokenization import SentencePieceModel, SentencePieceTokenizer, load_tokenizer

SWITCHES = ("lower_case", "strip_accents", "normalize_quotes", "split_number_commas")
ENGLISH = {"lower_case": True, "strip_accents": True, "normalize_quotes": False, "split_number_commas": True}
HARD = [
    "In 2010, the company paid 1,000 dollars, 9,9 and 3,141, or 5,",
    "",
    " \t ",
    "  two   spaces\u3000wide\u00a0hard  ",
    "``quoted'' ``` ''' `' don't",
    "Café e\u0301x \u0301 a\u0308\u0301 İstanbul ß ﬁ ½ ㎏ … ¨ \u0344 Å",
    "ΑΣ ΣΑ ΟΔΟΣ. Σ aΣ'b aΣ' Σ\u0301",
    "나는 2020년에, 밥을 먹었다. 각 각 ㅋㅋㅋ",
    "[CLS] [MASK] <unk> <pad> [unused1] ▁a ▁▁ b▁",
    "👩\u200d🚀 hi ❤\ufe0f \x00 \x01x \u200b y\u200bz \ufeff끝\ufffd",
    "ＡＢＣ　１２３，　４，",
    "\ud800lone \udfff surrogates\ud800",
    "\ud800",
    "word" * 200,
]


@pytest.fixture(scope="module")
def english(english_tokenizer) -> SentencePieceTokenizer:
    assert ENGLISH.items() <= english_tokenizer.to_dict().items()
    return english_tokenizer


def without_surrogates(text):
    return re.sub("[\ud800-\udfff]", "", text)


def is_tie(tokenizer, found, expected):
    """Whether two ways to cut a text are as probable, of which versions of SentencePiece choose one or the other."""
    scores = [sum(tokenizer.model.pieces[piece].score for piece in ids) for ids in (found, expected)]
    texts = ["".join(tokenizer.vocabulary.pieces[each] for each in ids) for ids in (found, expected)]
    return texts[0] == texts[1] and abs(scores[0] - scores[1]) < 1e-3


def assert_as_reference(tokenizer, reference, texts):
    """Compares ids and spans; returns how many texts have two ways to cut them that are as probable."""
    num_ties = 0
    ids = tokenizer.encode_ids(texts).to_list()
    for text, found, encoding in zip(texts, ids, tokenizer.encode_batch(texts), strict=True):
        expected, spans = reference.encode(without_surrogates(text))
        assert found == encoding.ids[1:-1]
        if found != expected:
            assert is_tie(tokenizer, found, expected), repr(text)
            num_ties += 1
        elif text == without_surrogates(text):
            assert encoding.offsets[1:-1] == spans, (repr(text), encoding.tokens)
    return num_ties


# Each two switches in all ways.
COMBINATIONS = ["0000", "0111", "1011", "1101", "1110"]


@pytest.mark.parametrize(
    ("name", "on"), [*(("english", on) for on in COMBINATIONS), ("korean", "0000"), ("korean", "1111")]
)
def test_hard_texts_are_encoded_as_by_the_original(models, name, on):
    switches = {switch: value == "1" for switch, value in zip(SWITCHES, on)}
    tokenizer = SentencePieceTokenizer(SentencePieceModel.from_bytes(models[name]), **switches)
    assert_as_reference(tokenizer, ReferenceTokenizer(models[name], **switches), HARD)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "form"), [("english", "google"), ("korean", "huggingface"), ("english", "sentencepiece")]
)
def test_hostile_texts_are_encoded_as_where_the_form_comes_from(models, name, form):
    texts = draw_texts(200)
    switches = dict.fromkeys(SWITCHES, form != "sentencepiece")
    tokenizer = SentencePieceTokenizer(SentencePieceModel.from_bytes(models[name]), **switches, form=form)
    reference = ReferenceTokenizer(models[name], **switches)
    if form == "google":
        assert assert_as_reference(tokenizer, reference, texts) < 10
        return
    encode = {"huggingface": reference.encode_as_huggingface, "sentencepiece": reference.encode_as_keras_hub}[form]
    num_ties = 0
    ids, begins, ends = (column.to_list() for column in tokenizer.encode_with_offsets(tf.constant(texts)))
    for text, found, encoding, *spans in zip(texts, ids, tokenizer.encode_batch(texts), begins, ends, strict=True):
        expected = encode(text)
        assert found == encoding.ids[1:-1] and list(zip(*spans)) == encoding.offsets[1:-1]
        assert found == expected or is_tie(tokenizer, found, expected), repr(text)
        num_ties += found != expected
    assert num_ties < 10 and tokenizer.encode_ids(texts).to_list() == ids


def test_special_tokens_in_texts_are_as_the_form_and_the_model_have_them(english, tmp_path):
    text = "a [MASK]b<pad> "
    tokenizer = SentencePieceTokenizer(english.model, form="huggingface")
    encoding = tokenizer.encode(text)
    assert [token for token in encoding.tokens if token in ("[MASK]", "<pad>")] == ["[MASK]", "<pad>"]
    assert encoding.offsets[encoding.tokens.index("[MASK]")] == (2, 8)
    tokenizer.save(tmp_path)
    assert load_tokenizer(tmp_path).to_dict() == tokenizer.with_unused(0).to_dict() == tokenizer.to_dict()
    assert {"form", "special_pieces_in_text"}.isdisjoint(english.to_dict())
    options = {"user_defined_symbols": "[CLS],[SEP],[MASK]", "control_symbols": ""}
    lines = sentencepiece_training.english_lines()[:500]
    model = SentencePieceModel.from_bytes(sentencepiece_training.train_model(lines, 200, **options))
    off = dict.fromkeys(SWITCHES, False)
    for more, is_there in (({}, False), ({"special_pieces_in_text": True}, True), ({"form": "sentencepiece"}, True)):
        assert ("[MASK]" in SentencePieceTokenizer(model, **off, **more).tokenize(text)) == is_there


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"form": "fast"},
            "form must be one of google, huggingface, sentencepiece, xlm-roberta, deberta. Received: 'fast'",
        ),
        ({"form": "sentencepiece"}, "form=sentencepiece leaves text to the model"),
        ({"form": "huggingface", "special_pieces_in_text": True}, "special_pieces_in_text works only with form=google"),
        ({"special_pieces_in_text": 1}, "special_pieces_in_text must be true or false"),
    ],
)
def test_settings_that_contradict_the_form_are_refused(english, settings, message):
    with pytest.raises(InputError, match=message):
        SentencePieceTokenizer(english.model, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "switches"), [("english", ENGLISH), ("korean", dict.fromkeys(SWITCHES, True))])
def test_any_text_is_encoded_as_by_the_original(models, name, switches):
    tokenizer = SentencePieceTokenizer(SentencePieceModel.from_bytes(models[name]), **switches)
    reference = ReferenceTokenizer(models[name], **switches)

    @settings(max_examples=15)
    @given(st.lists(ANY_TEXT, min_size=1, max_size=6))
    def check(texts):
        assert_as_reference(tokenizer, reference, texts)

    check()


def test_first_space_by_itself_is_no_special_token(english):
    encoding = english.encode("\u9f98 model")  # nothing that the model knows
    assert encoding.tokens[1:3] == ["▁", "<unk>"] and encoding.offsets[1:3] == [(0, 0), (0, 1)]
    assert encoding.span_of_pieces(1, 2) == (0, 1) and encoding.pieces_of_span(0, 1) == (2, 2)
    for first, last in ((0, 2), (1, len(encoding.tokens) - 1)):
        with pytest.raises(InputError, match=r"hold \[CLS\] or \[SEP\]"):
            encoding.span_of_pieces(first, last)


def test_spans_of_texts_with_lone_surrogates(english):
    text = "\ud800the \udfffmodel\ud800 \ud800"
    encoding = english.encode(text)
    found = {piece: text[begin:end] for piece, (begin, end) in zip(encoding.tokens, encoding.offsets)}
    assert found["▁the"] == "the" and found["▁model"] == "model"


def test_number_is_spelled_alike_before_a_comma(english):
    model = english.model
    whole = SentencePieceTokenizer(model, split_number_commas=False)
    assert "▁16," in english.vocabulary and whole.tokenize("with 16, or")[1] == "▁16,"
    assert english.tokenize("with 16, or")[1:3] == ["▁16", ","]
    encoding = english.encode("with １６, or")
    assert [encoding.offsets[place] for place in (2, 3)] == [(5, 7), (7, 8)]


@pytest.mark.slow
def test_model_stays_when_tensorflow_forgets_its_kernels(english, english_model):
    other = SentencePieceTokenizer(SentencePieceModel.from_bytes(english_model))
    lines = sentencepiece_training.english_lines()[:300]
    expected = english.encode_batch(lines), other.encode_batch(HARD)
    tf.random.set_seed(1)
    assert (english.encode_batch(lines), other.encode_batch(HARD)) == expected
    tf.keras.backend.clear_session()
    del other
    gc.collect()
    assert english.encode_batch(lines) == expected[0]


def test_what_is_no_utf_8_is_one_unknown_character(english):
    ids, _, ends = english.encode_with_offsets(tf.constant([b"the \xff\xfe model"]))
    assert ids.to_list() == [english.encode("the \ufffd\ufffd model").ids[1:-1]]
    assert ends.to_list()[0][-1] == len("the ?? model")


def test_many_texts_are_encoded_as_one_by_one(english):
    lines = sentencepiece_training.english_lines()[:300]
    found = english.encode_ids(lines).to_list()[:20]
    assert found == [english.encode_ids([line]).to_list()[0] for line in lines[:20]]


def test_words_start_at_spaces_and_marks(english):
    ids, starts = english.encode_with_word_starts(["the model, the training", "", "(one)", "zzqq"])
    pieces = [english.vocabulary.pieces[each] for each in ids.values]
    words = []
    for piece, start in zip(pieces, starts):
        words = [*words, piece] if start else [*words[:-1], words[-1] + piece]
    assert "▁model" in words and "," in words and "▁the" in words
    assert "".join(words).startswith("▁the▁model,▁the▁training▁(")
    assert "▁(" in words or "▁(one" in words  # a space by itself is no word
    assert "▁" not in words and starts[ids.row_splits.numpy()[2]]
