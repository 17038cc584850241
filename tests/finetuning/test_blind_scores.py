"""What rules score that read no text: what a model is worth is what it is above them."""

import math

import pytest
from tiny_config import tiny_config

from albert_tf.finetuning import Classification, Entities, MultipleChoice, QuestionAnswering, Regression
from albert_tf.finetuning.datasets import DATASETS, DataFiles
from albert_tf.finetuning.ner.tagged_text import TaggedText
from albert_tf.finetuning.question_answering.squad import Answer, Question
from albert_tf.finetuning.texts.labelled_text import LabelledText
from albert_tf.finetuning.texts.multiple_choice import Question as Choice

CONFIG = tiny_config()


def labelled(*labels):
    return [LabelledText("글", None, label, line) for line, label in enumerate(labels)]


def test_most_frequent_label():
    task = Classification(CONFIG, ("0", "1"), DataFiles(metrics=("macro_f1", "accuracy")))
    rule, scores = task.blind_scores(labelled("1", "0", "1", "1"))
    assert rule == "always '1', the most frequent label"
    assert scores == {"accuracy": 0.75, "macro_f1": pytest.approx((2 * 3 / (4 + 3)) / 2)}


def test_mean_of_the_numbers_correlates_with_nothing():
    rule, scores = Regression(CONFIG, DATASETS["klue_sts"]).blind_scores(labelled("1.0", "5.0", "4.5"))
    assert rule == "always the mean" and scores["pearson"] == 0.0
    assert scores["squared_error"] == pytest.approx((2.5**2 + 1.5**2 + 1) / 3)
    assert all(math.isfinite(score) for score in scores.values())


def test_most_frequent_place_of_the_answer():
    questions = [Choice("글", "물음", ("가", "나"), answer, str(answer)) for answer in (1, 0, 1)]
    assert MultipleChoice(CONFIG, 2).blind_scores(questions) == ("always B", {"accuracy": pytest.approx(2 / 3)})


def test_no_entity():
    text = TaggedText("서울에 간다", ((0, 3), (4, 6)), ("B-LOC", "O"), 1)
    assert Entities(CONFIG, ("LOC",)).blind_scores([text]) == ("never an entity", {"entity_f1": 0.0})


@pytest.mark.parametrize(("may_be_unanswerable", "expected"), [(False, 0.0), (True, 50.0)])
def test_no_answer(may_be_unanswerable, expected):
    questions = [Question("1", "누구?", "이순신", (Answer("이순신", 0),)), Question("2", "누구?", "이순신", (), True)]
    task = QuestionAnswering(CONFIG, may_be_unanswerable=may_be_unanswerable)
    rule, scores = task.blind_scores(questions if may_be_unanswerable else questions[:1])
    assert rule == "always no answer" and scores["exact_match"] == expected
