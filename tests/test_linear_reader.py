"""The linear model that benchmarks/fine_tuning.py compares answers to questions with."""

import pytest
from tiny_config import tiny_config

from albert_tf.finetuning import QuestionAnswering
from albert_tf.finetuning.tasks.squad import Answer, Question
from benchmarks.linear_reader import answer, linear_reader

pytest.importorskip("sklearn")


def test_answers_are_found_by_what_stands_around_them():
    def ask(person, year):
        context = f"{person}은 화가이다. {person}은 서울에서 {year}년에 태어났다. 강은 바다로 흐른다."
        begin = context.index(f"{year}년")
        return Question(person, f"{person}은 언제 태어났나?", context, (Answer(f"{year}년", begin),))

    train = [ask(f"{name}수", 1900 + number) for number, name in enumerate("가나다라마바사아자차")]
    dev = [ask("민하", 1850), ask("철호", 2001)]
    task = QuestionAnswering(tiny_config())
    assert task.score(dev, linear_reader(task).predict(train, dev)) == {"exact_match": 100.0, "f1": 100.0}
    # Nothing to read, and nothing to learn.
    assert answer(train, [Question("1", "언제?", "")]) == [""]
    assert answer([Question("1", "언제?", "가")], dev) == ["", ""]
