"""Questions about texts from JSON files in the form of SQuAD 1.1 and 2.0, KorQuAD 1.0 and KLUE-MRC."""

import dataclasses
import typing

from albert_tf.base.errors import InputError, quote, shorten
from albert_tf.base.files import read_json
from albert_tf.reading.bad_rows import BadRows, counted, read_once, tell_once
from albert_tf.reading.tables import TABLE_ENDINGS, is_saved

# What to do with questions in a table, as the hub has SQuAD and KorQuAD.
_OF_TABLE = (
    'in Python, albert_tf.fit(table, "answers", text_columns=("question", "context")) learns those of a table of '
    "datasets or pandas"
)


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer, as a file gives it, and where it begins in the context, in characters."""

    text: str
    begin: int

    @property
    def end(self) -> int:
        """Where it ends; this character is not part of it."""
        return self.begin + len(self.text)


@dataclasses.dataclass(frozen=True)
class Question:
    """A question about a text.

    Attributes:
        id: Its name in the files of predictions.
        context: The text that holds the answer.
        answers: The true answers; empty where there is none, or where the file doesn't tell.
        is_impossible: Whether the context holds no answer.
        title: The title of the context's source; empty if unknown.
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    is_impossible: bool = False
    title: str = ""

    @property
    def has_misplaced_answer(self) -> bool:
        """Whether its first answer, which a model is trained on, is not at the place that the file names."""
        if not self.answers:
            return False
        first = self.answers[0]
        return first.begin < 0 or not first.text or self.context[first.begin : first.end] != first.text


@read_once
def read_questions(path: str, needs_answers: bool = True, on_bad_row: str = "fail") -> list[Question]:
    """Reads every question of a file; messages name the question, or the place in the file."""
    # `needs_answers`: each question must have an answer or be marked as impossible to answer.
    questions, places = [], {}
    bad_entries = BadRows(on_bad_row, ("entry", "entries"))
    if is_saved(path) or path.lower().endswith(TABLE_ENDINGS):
        raise InputError(f"{path} is a table, not a JSON file in the form of SQuAD; {_OF_TABLE}")
    content = read_json(path, "the questions")
    for context, title, entry, entry_place in _entries(content, path, bad_entries):
        with bad_entries.leaving_out():
            question = _read_question(entry, context, title, path, entry_place, needs_answers)
            if question.id in places:
                raise InputError(
                    f"{entry_place}: {places[question.id]} has the id {shorten(question.id)} too; give each its own"
                )
            places[question.id] = entry_place.removeprefix(f"{path}, ")
            questions.append(question)
    bad_entries.warn()
    if not questions:
        raise InputError(f"{path} contains no questions")
    texts, impossible = len({question.context for question in questions}), sum(q.is_impossible for q in questions)
    without = f", {impossible:,} of them without an answer" if impossible else ""
    first = questions[0]
    answer = f" -> {shorten(first.answers[0].text)}" if first.answers else ""
    tell_once(
        f"{path}: {counted(len(questions), 'question')} about {counted(texts, 'text')}{without}\n"
        f"  the first: {shorten(first.question)}{answer}"
    )
    return questions


def read_version(path: str) -> typing.Any:
    """Returns the "version" of a file, by which published sets name themselves; None if it has none."""
    content = read_json(path, "the questions")
    return content.get("version") if isinstance(content, dict) else None


def _entries(content, path, bad_entries):
    """Yields (context, title, entry, place) of each question of a file."""
    for number, article in enumerate(_take(content, "data", list, path)):
        place, paragraphs = f"{path}, data[{number}]", []
        title = article.get("title", "") if isinstance(article, dict) else ""
        with bad_entries.leaving_out():
            paragraphs = _take(article, "paragraphs", list, place)
        for index, paragraph in enumerate(paragraphs):
            paragraph_place, context, entries = f"{place}.paragraphs[{index}]", "", []
            with bad_entries.leaving_out():
                context = _take(paragraph, "context", str, paragraph_place)
                entries = _take(paragraph, "qas", list, paragraph_place)
            for each, entry in enumerate(entries):
                yield context, title, entry, f"{paragraph_place}.qas[{each}]"


def _read_question(entry, context, title, path, place, needs_answers):
    name = "guid" if isinstance(entry, dict) and "id" not in entry and "guid" in entry else "id"  # as KLUE has it
    question_id = _take(entry, name, str, place)
    place = f"{path}, question {shorten(question_id)}"
    text = _take(entry, "question", str, place)
    is_impossible = _take({"is_impossible": False, **entry}, "is_impossible", bool, place)
    answers = _read_answers(entry, place) if not is_impossible and entry.get("answers") is not None else ()
    if needs_answers and not answers and not is_impossible:
        raise InputError(f"{place} has no answers; add them, or mark it as is_impossible")
    return Question(question_id, text, context, answers, is_impossible, title if isinstance(title, str) else "")


def _read_answers(entry, place):
    answers = _take(entry, "answers", list, place)
    return tuple(
        Answer(_take(answer, "text", str, place), _take(answer, "answer_start", int, place)) for answer in answers
    )


_KINDS = {list: "a list", str: "a string", int: "a whole number", bool: "true or false"}


def _take(values: typing.Any, name: str, kind: type, place: str) -> typing.Any:
    """Returns a value of a JSON object, which must be there and of the kind."""
    if not isinstance(values, dict) or name not in values:
        raise InputError(f'{place}: "{name}" is missing; the file must be in the form of SQuAD')
    value = values[name]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InputError(f'{place}: "{name}" must be {_KINDS[kind]}. Received: {quote(value)}')
    return value
