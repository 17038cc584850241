"""Answers of the head that chooses first pieces, then last ones for each, and whether there is an answer at all."""

import numpy as np
import pytest
import tensorflow as tf
from questions import character_tokenizer, make_question
from tiny_config import tiny_config

from albert_tf.finetuning import ConditionalQuestionAnswering
from albert_tf.finetuning.question_answering.windows import SpanOptions

TOKENIZER = character_tokenizer()
CONFIG = tiny_config(len(TOKENIZER.vocabulary))


def found_spans(starts, ends, start_log_probs, end_log_probs, null_logits):
    """Returns what a search of one window found, as arrays."""
    return {
        "start_positions": np.array([starts], np.int32),
        "end_positions": np.array([ends], np.int32),
        "start_log_probs": np.array([start_log_probs], np.float32),
        "end_log_probs": np.array([end_log_probs], np.float32),
        "null_logits": np.array([null_logits], np.float32),
    }


def conditional(outputs, question, **options):
    task = ConditionalQuestionAnswering(CONFIG, **options)
    (prediction,) = task.predict([question], task.encode([question], TOKENIZER, 20), outputs)
    return prediction


def test_conditional_head_chooses_the_most_probable_span():
    question = make_question("가 나 다 라")  # at positions 5 to 8
    # The better first piece has the worse last ones.
    outputs = found_spans([5, 6], [[5, 8], [8, 6]], [-0.5, -1.0], [[-2.0, -3.0], [-0.1, -0.3]], -4.0)
    prediction = conditional(outputs, question)
    assert [each["text"] for each in prediction["nbest"]] == ["나 다 라", "나", "가", "가 나 다 라"]
    assert (prediction["text"], prediction["begin"], prediction["end"]) == ("나 다 라", 2, 7)
    assert prediction["nbest"][0]["score"] == pytest.approx(-1.1)


@pytest.mark.parametrize(("threshold", "text"), [(0.0, ""), (1.0, "가")])
def test_conditional_head_says_by_itself_that_there_is_no_answer(threshold, text):
    outputs = found_spans([5], [[5]], [-0.1], [[-0.1]], 0.5)
    prediction = conditional(outputs, make_question("가"), may_be_unanswerable=True, null_threshold=threshold)
    assert (prediction["text"], prediction["null_odds"]) == (text, 0.5)


def test_what_a_search_did_not_find_is_no_span():
    """Too few spans, outputs that were filled up with 0, [SEP], a last piece before the first, and a long answer."""
    outputs = found_spans(
        [5, 5, 0, 9, 7, 5], [[5], [6], [0], [9], [6], [8]], [-0.1, -1e30, 0.0, -0.2, -0.3, -0.4], [[-0.1]] * 6, 0.0
    )
    prediction = conditional(outputs, make_question("가 나 다 라"), span_options=SpanOptions(max_answer_length=3))
    assert [each["text"] for each in prediction["nbest"]] == ["가"]


@pytest.mark.slow
def test_conditional_head_finds_spans_of_the_text_in_batches_of_several_lengths():
    tf.keras.utils.set_random_seed(0)
    task = ConditionalQuestionAnswering(CONFIG, span_options=SpanOptions(start_n_top=30, end_n_top=30, n_best_size=500))
    model = task.make_model()
    questions = [make_question("가나"), make_question("다라마바사각 한국의 가나")]
    features = task.encode(questions, TOKENIZER, 40)
    outputs = []
    for row, length in ((0, 8), (1, 24)):
        names = ("input_ids", "input_mask", "segment_ids")
        batch = {name: tf.constant(features[name][row : row + 1, :length]) for name in names}
        outputs.append({name: values.numpy() for name, values in task.outputs(batch, model).items()})
    filled = {
        name: np.concatenate(
            [
                np.pad(short[name], [(0, to - at) for to, at in zip((1, *long[name].shape[1:]), short[name].shape)]),
                long[name],
            ]
        )
        for short, long in [outputs]
        for name in short
    }
    first, second = task.predict(questions, features, filled)
    assert {each["text"] for each in first["nbest"]} == {"가", "나", "가나"}
    num_pieces = len(TOKENIZER.tokenize(questions[1].context))
    spans = {(each["begin"], each["end"]) for each in second["nbest"]}
    assert len(spans) == num_pieces * (num_pieces + 1) / 2
