"""Spans of a text to pieces and back, as question answering and entity recognition need them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_strategies import ANY_TEXT, SETTINGS, SPECIAL_TOKENS, tokenizer_that_knows

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.base import pieces_of_spans

PIECES = [*SPECIAL_TOKENS, "서울", "##은", "한국", "##의", "수도", "##다", "."]
TEXT = "서울은  한국의 수도다."
#       0123 4567 8


def encode(*texts):
    return KoreanWordPieceTokenizer(Vocabulary(PIECES)).encode(*texts)


@pytest.mark.parametrize(
    ("answer", "pieces"),
    [
        ("서울", ["서울"]),
        ("서울은", ["서울", "##은"]),
        ("은  한", ["##은", "한국"]),  # a part of a piece counts
        (" 한국", ["한국"]),
        ("수도다.", ["수도", "##다", "."]),
        (TEXT, PIECES[len(SPECIAL_TOKENS) :]),
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
