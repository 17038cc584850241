"""Windows of questions and texts: where their pieces and answers stand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from questions import CHARACTERS, character_tokenizer, make_question

from albert_tf.base.errors import InputError
from albert_tf.finetuning.tasks.question_windows import (
    UNKNOWN,
    WindowOptions,
    encode_questions,
    spans_with_most_context,
)
from albert_tf.finetuning.tasks.squad import Answer
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary

TOKENIZER = character_tokenizer()
OPTIONS = WindowOptions()


def pieces(features, row):
    length = features["input_mask"][row].sum()
    return [TOKENIZER.vocabulary.pieces[i] for i in features["input_ids"][row, :length]]


def test_question_and_text_in_one_window():
    features = encode_questions([make_question("가나 다라", "다라")], TOKENIZER, 12, OPTIONS)
    assert pieces(features, 0) == ["[CLS]", "국", "##은", "?", "[SEP]", "가", "##나", "다", "##라", "[SEP]"]
    assert features["segment_ids"].tolist() == [[0] * 5 + [1] * 5 + [0] * 2]
    assert features["input_mask"].tolist() == [[1] * 10 + [0] * 2]
    assert (features["start_positions"].tolist(), features["end_positions"].tolist()) == ([7], [8])
    assert features["context_offsets"][0].tolist() == [[0, 1], [1, 2], [3, 4], [4, 5]]
    assert features["is_on_borders"].tolist() == [True]
    assert {features[name].dtype for name in features} == {np.dtype(np.int32), np.dtype(object), np.dtype(bool)}


def test_long_text_is_read_in_windows_that_overlap():
    features = encode_questions([make_question("가나다라마바사각", "마바")], TOKENIZER, 10, WindowOptions(2, 3))
    parts = [["가", "##나", "##다", "##라"], ["##다", "##라", "##마", "##바"], ["##마", "##바", "##사", "##각"]]
    assert [pieces(features, row)[5:-1] for row in range(3)] == parts
    assert features["start_positions"].tolist() == [0, 7, 5]
    assert features["end_positions"].tolist() == [0, 8, 6]
    assert features["context_begins"].tolist() == [0, 2, 4]
    assert features["question_indices"].tolist() == [0, 0, 0]


def test_stride_is_at_most_half_of_the_room_for_the_text_and_a_long_question_leaves_half_of_the_window():
    features = encode_questions([make_question("가나다라마바사각")], TOKENIZER, 12, WindowOptions(128, 3))
    assert features["context_begins"].tolist() == [0, 3]
    features = encode_questions([make_question("가나", question="가" * 50)], TOKENIZER, 13, OPTIONS)
    assert pieces(features, 0) == ["[CLS]", "가", *["##가"] * 4, "[SEP]", "가", "##나", "[SEP]"]


def test_question_without_answer_points_at_the_first_piece_and_an_unknown_answer_at_none():
    questions = [
        make_question("가나", id="1", is_impossible=True),
        make_question("가나", id="2"),
        make_question("가나", id="3", answers=(Answer("나", 0),)),
        make_question("가 나", id="4", answers=(Answer(" ", 1),)),
    ]
    features = encode_questions(questions, TOKENIZER, 12, OPTIONS)
    assert features["start_positions"].tolist() == [0, UNKNOWN, UNKNOWN, UNKNOWN]
    assert features["end_positions"].tolist() == [0, UNKNOWN, UNKNOWN, UNKNOWN]


def test_text_without_pieces_has_a_window_all_the_same():
    features = encode_questions([make_question(" \n"), make_question("")], TOKENIZER, 12, OPTIONS)
    assert [pieces(features, row)[-2:] for row in range(2)] == [["[SEP]", "[SEP]"]] * 2
    assert [offsets.shape for offsets in features["context_offsets"]] == [(0, 2)] * 2


@pytest.mark.parametrize(
    ("answer", "is_on_borders"), [("한국", True), ("한국의", False), ("국", False), ("한국의의", True)]
)
def test_answer_may_end_within_a_piece(answer, is_on_borders):
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "한국", "##의의", "?"]))
    features = encode_questions([make_question("한국의의", answer, question="?")], tokenizer, 12, OPTIONS)
    assert features["is_on_borders"].tolist() == [is_on_borders]
    first, last = 3, 4 if "의" in answer else 3
    assert (features["start_positions"][0], features["end_positions"][0]) == (first, last)


def test_room_for_nothing_is_refused():
    with pytest.raises(InputError, match=r"max_seq_length must be at least 5\. Received: 4"):
        encode_questions([make_question("가")], TOKENIZER, 4, OPTIONS)


TEXTS = st.text(st.sampled_from(CHARACTERS + CHARACTERS[:20].upper() + "    \n\u3000\u200bＡ한나e\u0301"), max_size=60)


@st.composite
def questions_with_answers(draw):
    """Draws a text, and a span of it that begins and ends with what is part of a piece."""
    context = draw(TEXTS.filter(lambda text: any(character in CHARACTERS for character in text)))
    places = [place for place, character in enumerate(context) if character in CHARACTERS]
    begin = draw(st.sampled_from(places))
    end = 1 + draw(st.sampled_from([place for place in places if place >= begin]))
    return make_question(context, question=draw(TEXTS), answers=(Answer(context[begin:end], begin),))


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(questions_with_answers(), min_size=1, max_size=3), st.integers(8, 40), st.integers(1, 40), st.data())
def test_every_answer_and_every_piece_is_where_it_was(questions, max_seq_length, doc_stride, data):
    max_query_length = data.draw(st.integers(1, 20))
    features = encode_questions(questions, TOKENIZER, max_seq_length, WindowOptions(doc_stride, max_query_length))
    seen = {index: set() for index in range(len(questions))}
    held = dict.fromkeys(seen, False)
    for row, index in enumerate(features["question_indices"].tolist()):
        context, (answer,) = questions[index].context, questions[index].answers
        whole, window = TOKENIZER.encode(context), pieces(features, row)
        position, begin = features["context_positions"][row], features["context_begins"][row]
        offsets = features["context_offsets"][row]
        assert window[0] == "[CLS]" and window[position - 1] == window[-1] == "[SEP]"
        assert window[1 : position - 1] == TOKENIZER.tokenize(questions[index].question)[: position - 2]
        assert window[position:-1] == whole.tokens[1 + begin : 1 + begin + len(offsets)]
        assert offsets.tolist() == [list(span) for span in whole.offsets[1 + begin : 1 + begin + len(offsets)]]
        seen[index].update(range(begin, begin + len(offsets)))
        start, end = features["start_positions"][row], features["end_positions"][row]
        expected = whole.pieces_of_span(answer.begin, answer.end)
        room = max_seq_length - 1 - position
        if start > 0:
            held[index] = True
            assert (start - position + begin + 1, end - position + begin + 1) == expected
            found = context[offsets[start - position, 0] : offsets[end - position, 1]]
            assert answer.text in found
            assert (found == answer.text) == features["is_on_borders"][row]
        held[index] |= expected[1] - expected[0] + 1 > room - max(1, room // 2) + 1
    for index, question in enumerate(questions):
        assert seen[index] == set(range(len(TOKENIZER.tokenize(question.context))))
    assert all(held.values()), "an answer that is not too long is in some window as a whole"


@pytest.mark.slow
@settings(max_examples=50)
@given(st.integers(1, 60), st.integers(2, 20), st.integers(1, 10), st.integers(1, 8))
def test_every_span_counts_in_the_window_with_most_around_it(num_pieces, room, doc_stride, max_answer_length):
    context = "".join(CHARACTERS[number % 10] for number in range(num_pieces))
    features = encode_questions([make_question(context)], TOKENIZER, room + 6, WindowOptions(doc_stride))
    begins = features["context_begins"]
    ends = begins + np.array([len(offsets) for offsets in features["context_offsets"]])
    found = {}
    for row, is_home in enumerate(spans_with_most_context(begins, ends - begins, max_answer_length)):
        for first, more in zip(*np.nonzero(is_home)):
            span = (begins[row] + first, begins[row] + first + more)
            assert span not in found
            found[span] = row
    for first in range(num_pieces):
        for last in range(first, min(first + max_answer_length, num_pieces)):
            context_in = np.minimum(first - begins, ends - 1 - last)
            if context_in.max() >= 0:
                assert context_in[found.pop((first, last))] == context_in.max()
    assert not found
