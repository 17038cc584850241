"""Multiple-choice questions: folders of RACE, and JSON lines."""

import dataclasses
import json
import os
import string
import typing

import tensorflow as tf

from albert_tf.errors import InputError, quote, shorten
from albert_tf.files import read_text
from albert_tf.finetuning.labelled_text import UNKNOWN_LABELS
from albert_tf.rows.bad_rows import BadRows, counted, tell_once
from albert_tf.rows.read_once import read_once
from albert_tf.rows.row_file import RowFile
from albert_tf.rows.values import load_json
from albert_tf.saved_datasets import is_saved

# RACE's folders in train/, dev/ and test/.
LEVELS = ("middle", "high")
# How the options of a question are called, in order.
LETTERS = string.ascii_uppercase
# All articles of a folder in one file, one a line, as the original wants them.
_ALL_ARTICLES = "all.txt"


@dataclasses.dataclass(frozen=True)
class Question:
    """A question about a passage, with its options.

    Attributes:
        question: The question, or a sentence with "_" where an option goes.
        answer: Index of the right option, None if unknown.
        name: Its id in predictions, or the number of its line.
        level: One of `LEVELS`, None outside RACE.
    """

    passage: str
    question: str
    options: tuple[str, ...]
    answer: int | None
    name: str
    level: str | None = None


@read_once
def read_questions(
    path: str,
    levels: tuple[str, ...] = (),
    num_choices: int | None = None,
    needs_answers: bool = True,
    on_bad_row: str = "fail",
) -> list[Question]:
    """Returns the questions of a file of JSON lines, or with `levels` of one of RACE's folders train, dev and test."""
    # By default each must have as many options as the first one.
    bad_entries = BadRows(on_bad_row, ("entry", "entries"))
    questions = []
    for source, values in _records(path, levels):
        with bad_entries.leaving_out():
            if isinstance(values, InputError):
                raise values
            question = _make_question(source, values)
            if needs_answers and question.answer is None:
                raise InputError(f"{source}: no answer; add it, or leave the question out")
            num_choices = num_choices or len(question.options)
            if len(question.options) != num_choices:
                raise InputError(
                    f"{source}: {len(question.options)} options, but the model chooses from {num_choices}; give "
                    "every question the same number of options"
                )
            questions.append(question)
    bad_entries.warn()
    if not questions:
        raise InputError(f"{path} has no questions")
    first = questions[0]
    shown = f"{shorten(first.question)} {' / '.join(map(shorten, first.options))}"
    tell_once(f"{path}: {counted(len(questions), 'question')} with {num_choices} options each\n  the first: {shown}")
    return questions


def asked_questions(inputs: typing.Any, num_choices: int) -> list[Question]:
    """Returns (passage, question, options) as questions without answers; anything else is refused."""
    questions = []
    for number, value in enumerate(inputs):
        if not isinstance(value, list | tuple) or len(value) != 3 or not _are_options(value[2], num_choices):
            raise InputError(
                f"input {number} must be a passage, a question and a list of {num_choices} options. "
                f"Received: {quote(value)}"
            )
        passage, question, options = value
        source = f"input {number}"
        values = {"passage": passage, "question": question, "options": list(options), "name": str(number)}
        questions.append(_make_question(source, values))
    return questions


def _records(path, levels):
    """Yields (source, values) of each question of a file or folder; an InputError for values that can't be read."""
    if levels:
        for source, text, level in _articles(path, levels):
            try:
                yield from _records_of_article(source, text, level)
            except InputError as error:
                yield source, error
        return
    rows = RowFile(path, is_json=True)
    for row in rows:
        source, values = rows.place(row.number), row.values
        if not row.content.strip():
            continue
        if row.error:
            yield source, InputError(f"{row.error}; correct it")
        elif not isinstance(values, dict):
            yield source, InputError(f"{source}: not a JSON object; correct it")
        else:
            yield source, {**values, "name": str(values.get("id", row.number)), "level": None}


def _articles(path, levels):
    """Yields (source, text, level) of each article in one of RACE's folders."""
    folders = [(level, os.path.join(path, level)) for level in levels]
    folders = [(level, folder) for level, folder in folders if tf.io.gfile.isdir(folder)]
    if not folders and is_saved(path):
        raise InputError(
            f"{path} is a folder that datasets has saved; write JSON lines of passage, question, options and answer, "
            "and choose `task_name=jsonl`"
        )
    if not folders:
        raise InputError(f"{path} has no folder {' or '.join(levels)}; unpack RACE there as it is published")
    for level, folder in folders:
        all_articles = os.path.join(folder, _ALL_ARTICLES)
        if tf.io.gfile.exists(all_articles):
            for number, line in enumerate(read_text(all_articles, "the articles").split("\n"), start=1):
                if line.strip():
                    yield f"{all_articles}, line {number}", line, level
            continue
        for name in sorted(tf.io.gfile.listdir(folder)):
            if name.endswith(".txt") and not name.startswith("."):
                source = os.path.join(folder, name)
                yield source, read_text(source, "the article"), level


def _records_of_article(source, text, level):
    try:
        article = load_json(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{source}: not JSON ({error}); correct it") from error
    if not isinstance(article, dict):
        raise InputError(f"{source}: not a JSON object; correct it")
    for name in ("questions", "options", *(["answers"] if article.get("answers") else [])):
        if not isinstance(article.get(name), list):
            raise InputError(f"{source}: no list of {name}; correct the file")
    questions, options = article["questions"], article["options"]
    answers = article.get("answers") or [None] * len(questions)
    if not len(questions) == len(options) == len(answers):
        raise InputError(
            f"{source}: {len(questions)} questions, {len(options)} lists of options and {len(answers)} answers; "
            "give every question one of each"
        )
    name = article.get("id", os.path.basename(source))
    records = []
    for number, (question, choices, answer) in enumerate(zip(questions, options, answers), start=1):
        values = {"passage": article.get("article"), "question": question, "options": choices, "answer": answer}
        records.append((f"{source}, question {number}", {**values, "name": f"{name}:{number}", "level": level}))
    return records


def _make_question(source, values):
    """Returns a question from the values of its attributes; `answer` may be a letter or an index."""
    for name in ("passage", "question"):
        if not isinstance(values.get(name), str):
            raise InputError(f"{source}: no text of the {name}; add it, or leave the question out")
    options = values.get("options")
    if not _are_options(options):
        raise InputError(f"{source}: options must be a list of 2 to {len(LETTERS)} texts. Received: {quote(options)}")
    answer = _answer_index(source, values.get("answer"), len(options))
    return Question(values["passage"], values["question"], tuple(options), answer, values["name"], values.get("level"))


def _are_options(options, count=None):
    is_list = isinstance(options, list | tuple) and all(isinstance(option, str) for option in options)
    return is_list and 2 <= len(options) <= len(LETTERS) and len(options) == (count or len(options))


def _answer_index(source, answer, num_options):
    """Returns the index that a letter or an index stands for, None for what stands for no answer."""
    if answer is None or answer in UNKNOWN_LABELS:
        return None
    letters = LETTERS[:num_options]
    if isinstance(answer, str) and len(answer) == 1 and answer in letters:
        return letters.index(answer)
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < num_options:
        return answer
    raise InputError(
        f"{source}: the answer must be a letter from A to {letters[-1]} or an index from 0 to {num_options - 1}. "
        f"Received: {quote(answer)}"
    )
