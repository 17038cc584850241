"""The samples are whole: every row is read, and every answer stands where its file says."""

import pathlib

import pytest

from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.tasks.labelled_text import read_examples
from albert_tf.finetuning.tasks.squad import read_questions
from albert_tf.finetuning.tasks.tagged_text import entities_of, read_tagged, types_of
from albert_tf.tokenization import load_tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUESTIONS, ENTITIES, REVIEWS = (ROOT / "samples" / folder for folder in ("questions", "entities", "reviews"))


@pytest.mark.parametrize(("part", "least"), [("train", 60), ("dev", 20)])
def test_questions_have_their_answers_where_they_say(part, least):
    questions = read_questions(str(QUESTIONS / f"{part}.json"))
    assert len(questions) >= least
    for question in questions:
        (answer,) = question.answers
        assert question.context[answer.begin : answer.begin + len(answer.text)] == answer.text
        assert question.question.endswith("?")


@pytest.mark.parametrize(("part", "least"), [("train", 150), ("dev", 40)])
def test_every_sentence_of_entities_is_read(part, least):
    path = ENTITIES / f"{part}.tsv"
    sentences = read_tagged(str(path), "words", needs_tags=True, on_bad_row="fail")
    assert len(sentences) == len(path.read_text(encoding="utf-8").splitlines()) >= least
    assert sum(len(entities_of(list(sentence.tags))) for sentence in sentences) > len(sentences)


def test_entities_have_the_same_types_in_both_files():
    train, dev = (types_of(str(ENTITIES / f"{part}.tsv"), "words") for part in ("train", "dev"))
    assert train == dev == ["DAT", "LOC", "ORG", "PER"]


def test_no_text_is_in_both_files():
    train, dev = (
        {question.context for question in read_questions(str(QUESTIONS / f"{part}.json"))} for part in ("train", "dev")
    )
    assert not train & dev
    train, dev = (
        {sentence.text for sentence in read_tagged(str(ENTITIES / f"{part}.tsv"), "words", needs_tags=True)}
        for part in ("train", "dev")
    )
    assert not train & dev


def test_reviews_to_learn_from_are_there_to_be_read_without_labels_and_no_others():
    train, dev = (
        [review.text for review in read_examples(str(REVIEWS / f"{part}.tsv"), DATASETS["tsv"], needs_label=True)]
        for part in ("train", "dev")
    )
    assert (REVIEWS / "texts_of_train.txt").read_text(encoding="utf-8").splitlines() == train
    assert not set(train) & set(dev)


def test_the_model_that_comes_along_reads_each_question_with_its_text_at_once():
    tokenizer = load_tokenizer(ROOT / "models" / "albert_ko_small")
    for part in ("train", "dev"):
        for question in read_questions(str(QUESTIONS / f"{part}.json")):
            assert len(tokenizer.encode(question.question, question.context).tokens) <= 128
