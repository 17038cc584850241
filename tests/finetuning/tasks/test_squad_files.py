"""Files of questions in their forms, and mistakes in them."""

import json
import re

import pytest
from questions import entry, make_question, write_squad

from albert_tf.base.errors import InputError
from albert_tf.finetuning.tasks.squad import Answer, Question, read_questions

CONTEXT = "이순신은 1545년에 태어났다."


def test_questions_of_squad_korquad_and_klue_are_read(tmp_path):
    plausible = {"plausible_answers": [{"text": "이순신", "answer_start": 0}]}
    klue = {**entry("", "이순신"), "guid": "klue-1", "question_type": 1, "is_impossible": False}
    del klue["id"]
    entries = [entry("1", "1545년", 5), entry("2", None, is_impossible=True, **plausible), klue]
    assert read_questions(write_squad(tmp_path / "a.json", [(CONTEXT, entries), ("글", [])])) == [
        Question("1", "누구?", CONTEXT, (Answer("1545년", 5),), False, "제목"),
        Question("2", "누구?", CONTEXT, (), True, "제목"),
        Question("klue-1", "누구?", CONTEXT, (Answer("이순신", 0),), False, "제목"),
    ]


def test_file_to_predict_needs_no_answers(tmp_path):
    without = {"id": "1", "question": "누구?"}
    path = write_squad(tmp_path / "a.json", [(CONTEXT, [without, {**without, "id": "2", "answers": None}])])
    assert [question.answers for question in read_questions(path, needs_answers=False)] == [(), ()]
    with pytest.raises(InputError, match=r"a\.json, question 1 has no answers; add them, or mark it as is_impossible"):
        read_questions(path)


@pytest.mark.parametrize(
    ("answer", "begin", "is_misplaced"),
    [
        ("이순신", 0, False),
        ("이순신", 1, True),
        ("태어났다.", 12, False),
        (".", -1, True),
        ("다. ", 15, True),
        ("", 0, True),
    ],
)
def test_place_of_an_answer_is_compared_with_its_text(answer, begin, is_misplaced):
    assert make_question(CONTEXT, answers=(Answer(answer, begin),)).has_misplaced_answer == is_misplaced


def changed(**changes):
    """Returns what a file holds whose only question has other or, with None, fewer fields."""
    fields = {name: value for name, value in {**entry("1", "이순신"), **changes}.items() if value is not None}
    return {"data": [{"paragraphs": [{"context": CONTEXT, "qas": [fields]}]}]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, r'a\.json: "data" is missing; the file must be in the form of SQuAD'),
        ({"data": []}, r"a\.json contains no questions"),
        ({"data": ["x"]}, r'a\.json, data\[0\]: "paragraphs" is missing'),
        ({"data": [{"paragraphs": {}}]}, r'data\[0\]: "paragraphs" must be a list. Received: {}'),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, r'data\[0\]\.paragraphs\[0\]: "context" is missing'),
        (changed(id=None), r'data\[0\]\.paragraphs\[0\]\.qas\[0\]: "id" is missing'),
        (changed(id=7), r'qas\[0\]: "id" must be a string. Received: 7'),
        (changed(question=None), r'question 1: "question" is missing'),
        (changed(is_impossible="no"), r'question 1: "is_impossible" must be true or false. Received: \'no\''),
        (changed(answers={}), r'question 1: "answers" must be a list. Received: {}'),
        (changed(answers=[{"text": "이순신"}]), r'question 1: "answer_start" is missing'),
        (changed(answers=[{"text": "이순신", "answer_start": True}]), r'"answer_start" must be a whole number'),
        (changed(answers=[{"text": None, "answer_start": 0}]), r'question 1: "text" must be a string'),
    ],
)
def test_mistake_in_a_file_is_named(tmp_path, content, message):
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        read_questions(str(tmp_path / "a.json"))


def test_what_can_not_be_used_may_be_left_out(tmp_path, capsys):
    good = entry("1", "이순신")
    content = {
        "data": [
            {"paragraphs": [{"context": CONTEXT, "qas": [good, {**good, "id": 7}, good, {**good, "id": "2"}]}, {}]},
            "no article",
            {"paragraphs": [{"context": CONTEXT, "qas": [{**good, "id": "3", "answers": []}]}]},
        ]
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"must be a string\. Received: 7; or pass `on_bad_row=skip` to leave such"):
        read_questions(str(path))
    assert [question.id for question in read_questions(str(path), on_bad_row="skip")] == ["1", "2"]
    place = f"{path}, data[0].paragraphs[0].qas[1]"
    told = f'warning: 5 entries left out; the first: {place}: "id" must be a string. Received: 7\n'
    assert capsys.readouterr().out.startswith(told)
    path.write_text(json.dumps({"data": ["no article"]}))
    with pytest.raises(InputError, match="contains no questions"):
        read_questions(str(path), on_bad_row="skip")


def test_two_questions_of_one_id_are_refused(tmp_path):
    path = write_squad(tmp_path / "a.json", [(CONTEXT, [entry("1", "이순신"), entry("1", "이순신")])])
    message = f"{path}, data[0].paragraphs[0].qas[1]: data[0].paragraphs[0].qas[0] has the id 1 too; "
    message += "give each its own"
    with pytest.raises(InputError, match=re.escape(message)):
        read_questions(path)


def test_questions_in_a_table_are_refused_with_what_reads_them(tmp_path):
    (tmp_path / "saved" / "train").mkdir(parents=True)
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    (tmp_path / "saved" / "train" / "state.json").write_text("{}")
    (tmp_path / "train.parquet").write_bytes(b"PAR1")
    for name in ("saved", "saved/train", "train.parquet"):
        with pytest.raises(InputError, match=r'is a table, not a JSON .*albert_tf.fit\(table, "answers"'):
            read_questions(str(tmp_path / name))
