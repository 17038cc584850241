"""The samples are whole: every row is read, and every answer stands where its file says."""

import pathlib

from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.tasks.labelled_text import read_examples
from albert_tf.finetuning.tasks.squad import read_questions
from albert_tf.finetuning.tasks.tagged_text import read_tagged, types_of
from albert_tf.tokenization import load_tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUESTIONS, ENTITIES, REVIEWS = (ROOT / "samples" / folder for folder in ("questions", "entities", "reviews"))


def test_questions_have_their_answers_where_they_say_and_are_read_at_once_by_the_model_that_comes_along():
    tokenizer, contexts = load_tokenizer(ROOT / "models" / "albert_ko_small"), []
    for part, least in (("train", 60), ("dev", 20)):
        questions = read_questions(str(QUESTIONS / f"{part}.json"))
        assert len(questions) >= least
        for question in questions:
            (answer,) = question.answers
            assert question.context[answer.begin : answer.begin + len(answer.text)] == answer.text
            assert len(tokenizer.encode(question.question, question.context).tokens) <= 128
        contexts.append({question.context for question in questions})
    assert not contexts[0] & contexts[1]


def test_sentences_of_entities_are_read_and_have_the_same_types_in_both_files():
    texts = []
    for part, least in (("train", 150), ("dev", 40)):
        path = ENTITIES / f"{part}.tsv"
        sentences = read_tagged(str(path), "words", needs_tags=True, on_bad_row="fail")
        assert len(sentences) == len(path.read_text(encoding="utf-8").splitlines()) >= least
        assert types_of(str(path), "words") == ["DAT", "LOC", "ORG", "PER"]
        texts.append({sentence.text for sentence in sentences})
    assert not texts[0] & texts[1]


def test_reviews_to_learn_from_are_there_to_be_read_without_labels_and_no_others():
    train, dev = (
        [review.text for review in read_examples(str(REVIEWS / f"{part}.tsv"), DATASETS["tsv"], needs_label=True)]
        for part in ("train", "dev")
    )
    assert (REVIEWS / "texts_of_train.txt").read_text(encoding="utf-8").splitlines() == train
    assert not set(train) & set(dev)
