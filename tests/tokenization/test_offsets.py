"""Offsets of pieces, and spans to pieces and back, count characters of the text as it was given."""

import unicodedata

import hypothesis
import numpy as np
import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from text_strategies import ANY_TEXT, SETTINGS, SPECIAL_TOKENS, tokenizer_that_knows

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.encoding import pieces_of_spans

KOREAN_PIECES = ["한국", "##어", "나", "나_", "##는", "_", "!"]
PIECES = [*SPECIAL_TOKENS, *KOREAN_PIECES, "é", "e", "i", "i\u0307", "x", "##x"]


def tokenizer_with(**settings):
    return KoreanWordPieceTokenizer(Vocabulary(PIECES), **settings)


def decomposed(text):
    return unicodedata.normalize("NFD", text)


def pieces_and_offsets(tokenizer, text, text_pair=None):
    encoding = tokenizer.encode(text, text_pair)
    return list(zip(encoding.tokens, encoding.offsets))


@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        ("한국어", {}, [("한국", (0, 2)), ("##어", (2, 3))]),
        (decomposed("한국어"), {}, [("한국", (0, 6)), ("##어", (6, 8))]),
        ("  한국\u3000\t 나는!", {}, [("한국", (2, 4)), ("나", (7, 8)), ("##는", (8, 9)), ("!", (9, 10))]),
        ("\ufeff한\u200b국어", {}, [("한국", (1, 4)), ("##어", (4, 5))]),
        ("Ｅ É", {"strip_accents": True}, [("[UNK]", (0, 1)), ("e", (2, 3))]),
        ("E\u0301x", {"strip_accents": True}, [("e", (0, 2)), ("##x", (2, 3))]),
        ("E\u0301", {}, [("é", (0, 2))]),
        ("İx", {}, [("i\u0307", (0, 1)), ("##x", (1, 2))]),
        ("İx", {"strip_accents": True}, [("i", (0, 1)), ("##x", (1, 2))]),
        ("모르는 한국", {}, [("[UNK]", (0, 3)), ("한국", (4, 6))]),
        ("가" * 3_000 + "나", {}, [("[UNK]", (0, 3_001))]),
        ("나  나", {"wordpiece_scheme": "end_of_word"}, [("나_", (0, 1)), ("나", (3, 4))]),
        # A mark that is a piece of its own stands for no character; it lies behind the word that it marks.
        ("x  나", {"wordpiece_scheme": "end_of_word"}, [("x", (0, 1)), ("_", (1, 1)), ("나", (3, 4))]),
        (" \u3000", {"wordpiece_scheme": "end_of_word"}, []),
        ("\0\u200b", {}, []),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_offsets_point_into_the_text_as_given(text, settings, expected):
    assert pieces_and_offsets(tokenizer_with(**settings), text)[1:-1] == expected


def test_offsets_of_a_pair_point_into_each_text_of_it():
    assert pieces_and_offsets(tokenizer_with(), " 나", "  한국!") == [
        ("[CLS]", (0, 0)),
        ("나", (1, 2)),
        ("[SEP]", (0, 0)),
        ("한국", (2, 4)),
        ("!", (4, 5)),
        ("[SEP]", (0, 0)),
    ]


@pytest.mark.slow
@hypothesis.settings(max_examples=50)
@given(ANY_TEXT, SETTINGS)
def test_pieces_follow_each_other_and_leave_out_nothing_but_spaces_and_removed_characters(text, settings):
    tokenizer = tokenizer_that_knows([text], **settings)
    encoding = tokenizer.encode(text)
    assert encoding.ids[1:-1] == tokenizer.encode_ids([text])[0].numpy().tolist()
    covered, last = set(), (0, 0)
    for begin, end in encoding.offsets[1:-1]:
        assert last[0] <= begin <= end <= len(text) and last[1] <= end
        covered.update(range(begin, end))
        last = begin, end
    left_out = "".join(character for i, character in enumerate(text) if i not in covered)
    judge = reference.ReferenceTokenizer([], **settings)
    assert judge.normalize(left_out) == ""


# Each becomes the same normalised characters alone as among others.
INDEPENDENT = ["한국어", "값", "ㅋㅠ", "éÉ", "Å", "ñ가각", "Straße", "漢\uf900", "אב", *".,!#_", "\u200b\0", "\u3000\n"]
SEVERAL_FORMS = st.one_of(
    st.sampled_from(INDEPENDENT), st.sampled_from(INDEPENDENT).map(decomposed), st.sampled_from(" \t\u00a0")
)


@pytest.mark.slow
@hypothesis.settings(max_examples=50)
@given(st.lists(SEVERAL_FORMS, max_size=15).map("".join), SETTINGS)
def test_text_that_a_piece_covers_is_that_piece_once_normalised(text, settings):
    encoding = tokenizer_that_knows([text], **settings).encode(text)
    judge = reference.ReferenceTokenizer([], **settings)
    unsqueezed = reference.ReferenceTokenizer([], **{**settings, "squeeze_repeats": False})
    assume(judge.normalize(text) == unsqueezed.normalize(text))  # a piece that stands for a run covers all of it
    for piece, (begin, end) in zip(encoding.tokens[1:-1], encoding.offsets[1:-1]):
        assert judge.normalize(text[begin:end]) == surface(piece, settings["wordpiece_scheme"])


def surface(piece, scheme):
    """Returns the normalised text that a piece stands for."""
    if scheme == "continuation":
        return piece.removeprefix("##")
    return piece.removesuffix("_").replace("\ufffd", "_")


PIECES_OF_TEXT = [*SPECIAL_TOKENS, "서울", "##은", "한국", "##의", "수도", "##다", "."]
TEXT = "서울은  한국의 수도다."
#       0123 4567 8


def encode(*texts):
    return KoreanWordPieceTokenizer(Vocabulary(PIECES_OF_TEXT)).encode(*texts)


@pytest.mark.parametrize(
    ("answer", "pieces"),
    [
        ("서울", ["서울"]),
        ("서울은", ["서울", "##은"]),
        ("은  한", ["##은", "한국"]),  # a part of a piece counts
        (" 한국", ["한국"]),
        ("수도다.", ["수도", "##다", "."]),
        (TEXT, PIECES_OF_TEXT[len(SPECIAL_TOKENS) :]),
    ],
)
def test_pieces_that_hold_a_span(answer, pieces):
    encoding = encode(TEXT)
    begin = TEXT.index(answer)
    first, last = encoding.pieces_of_span(begin, begin + len(answer))
    assert encoding.tokens[first : last + 1] == pieces


def test_pieces_without_characters_hold_no_span():
    offsets = np.array([[0, 0], [1, 3], [3, 3], [3, 4], [3, 4], [6, 8], [8, 8]])
    spans = np.array([[0, 1], [0, 2], [0, 4], [2, 6], [4, 6], [5, 9], [6, 6], [7, 6], [8, 9]])
    firsts, lasts = pieces_of_spans(spans, offsets)
    assert firsts.tolist() == [-1, 1, 1, 1, -1, 5, -1, -1, -1]
    assert lasts.tolist() == [-1, 1, 4, 4, -1, 5, -1, -1, -1]
    assert [values.tolist() for values in pieces_of_spans(spans, np.zeros([0, 2], int))] == [[-1] * 9] * 2


def test_span_of_pieces_reaches_from_the_first_to_the_last():
    encoding = encode(TEXT)
    first, last = encoding.tokens.index("##은"), encoding.tokens.index("##의")
    begin, end = encoding.span_of_pieces(first, last)
    assert TEXT[begin:end] == "은  한국의"


def test_second_text_of_a_pair_has_spans_of_its_own():
    encoding = encode("수도다.", TEXT)
    first, last = encoding.pieces_of_span(5, 7, segment_id=1)
    assert encoding.tokens[first : last + 1] == ["한국"] and encoding.segment_ids[first] == 1
    assert encoding.span_of_pieces(first, last) == (5, 7)
    assert encoding.pieces_of_span(0, 2) == (1, 1)


@pytest.mark.parametrize("span", [(3, 5), (2, 2), (4, 3), (100, 200)], ids=["spaces", "empty", "reversed", "outside"])
def test_spans_without_characters_of_pieces_have_none(span):
    assert encode(TEXT).pieces_of_span(*span) is None


@pytest.mark.parametrize("pieces", [(0, 1), (1, 8), (2, 1), (-1, 1), (1, 99)])
def test_positions_that_are_no_range_of_pieces_are_refused(pieces):
    with pytest.raises(InputError, match=r"first and last must be|hold \[CLS\] or \[SEP\]"):
        encode(TEXT).span_of_pieces(*pieces)


def test_a_range_never_reaches_over_two_texts():
    with pytest.raises(InputError, match="pieces 1 to 3 hold"):
        encode("서울", "한국").span_of_pieces(1, 3)


@pytest.mark.slow
@hypothesis.settings(max_examples=50)
@given(ANY_TEXT, SETTINGS, st.data())
def test_spans_and_pieces_lead_back_to_each_other(text, settings, data):
    encoding = tokenizer_that_knows([text], **settings).encode("", text)
    num_pieces = len(encoding.tokens) - 3
    if num_pieces == 0:
        return
    first = data.draw(st.integers(2, num_pieces + 1))
    last = data.draw(st.integers(first, num_pieces + 1))
    span = encoding.span_of_pieces(first, last)
    found = encoding.pieces_of_span(*span, segment_id=1)
    # Nothing but pieces without characters of their own, or those that share characters, may come or go.
    if found is None:
        assert span[0] == span[1]
        return
    assert encoding.span_of_pieces(*found) == span
    for position in range(first, last + 1):
        begin, end = encoding.offsets[position]
        assert begin == end or found[0] <= position <= found[1]
    for position in {*range(found[0], found[1] + 1)} - {*range(first, last + 1)}:
        begin, end = encoding.offsets[position]
        assert span[0] <= begin and end <= span[1]
