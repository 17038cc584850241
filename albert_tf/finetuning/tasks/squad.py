"""SQuAD 1.1 and 2.0, KorQuAD 1.0 and KLUE-MRC: questions from their JSON files, and the rules that score answers."""

import collections
import collections.abc
import dataclasses
import difflib
import re
import string
import typing

import numpy as np

from albert_tf.base.errors import InputError, quote, shorten
from albert_tf.base.files import read_json
from albert_tf.reading.rows import BadRows, counted, read_once, tell_once
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


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_KORQUAD_SEPARATORS = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))


def normalize_squad(text: str) -> str:
    """Returns a text as SQuAD compares it: in lower case, without punctuation and articles, with single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def normalize_korquad(text: str) -> str:
    """Returns a text as KorQuAD compares it: quotation marks and brackets as spaces, else as `normalize_klue`."""
    return normalize_klue(text.translate(_KORQUAD_SEPARATORS))


def normalize_klue(text: str) -> str:
    """Returns a text as KLUE-MRC compares it: in lower case, without ASCII punctuation, with single spaces."""
    # KLUE's own script means to take quotation marks and brackets such as 《》 out too, but its pattern finds only five
    # marks in a row that no text has. Scores are to be comparable, so they stay here as well.
    return " ".join(text.lower().translate(_WITHOUT_PUNCTUATION).split())


def word_f1(prediction: str, answer: str) -> float:
    """Returns the F1 of the words of two normalised texts, from 0 to 1."""
    return _f1(prediction.split(), answer.split())


def character_f1(prediction: str, answer: str) -> float:
    """Returns the F1 of the characters of two normalised texts, spaces left out, from 0 to 1."""
    return _f1("".join(prediction.split()), "".join(answer.split()))


def rouge_w(prediction: str, answer: str) -> float:
    """Returns KLUE's ROUGE-W of two normalised texts, from 0 to 1: the F1 of their longest common run of characters."""
    if not answer or not prediction:
        return float(prediction == answer)
    # The class that KLUE uses: in answers of 200 characters and more it passes over characters that are frequent.
    matcher = difflib.SequenceMatcher(None, prediction, answer)
    common = matcher.find_longest_match(0, len(prediction), 0, len(answer)).size
    return 2 * common / (len(prediction) + len(answer))


def _f1(prediction, answer):
    common = (collections.Counter(prediction) & collections.Counter(answer)).total()
    return 2 * common / (len(prediction) + len(answer)) if common else 0.0


@dataclasses.dataclass(frozen=True)
class Metrics:
    """The rules of one data set: how texts are compared, and what the second measure is.

    Scores are in percent, as the official scripts say them. Normalised texts are compared exactly and by what they have
    in common; of several true answers the one counts that fits best.

    SQuAD 1.1 and 2.0 (Rajpurkar et al., 2016 and 2018): case, ASCII punctuation and the articles a, an and the don't
    count; F1 is that of words.
    KorQuAD 1.0 (Lim et al., 2019): quotation marks and brackets separate words, case and ASCII punctuation don't count;
    F1 is that of characters without spaces, so that a particle too many costs little.
    KLUE-MRC (Park et al., 2021): case and ASCII punctuation don't count; ROUGE-W is made of the longest run of
    characters that both have in common.
    """

    normalize: collections.abc.Callable[[str], str]
    overlap_name: str
    overlap: collections.abc.Callable[[str, str], float]  # Of two normalised texts, from 0 to 1.
    # Whether an answer of which nothing is left once normalised counts, where there may be none.
    counts_empty_answers: bool = False

    def compare(self, prediction: str, answers: list[str], may_be_unanswerable: bool) -> tuple[float, float]:
        """Returns exact match and overlap of a prediction, each from 0 to 1, each the best over the answers."""
        # An empty prediction is no answer. Where questions may have none, as in SQuAD 2.0, it is right if no answer
        # counts.
        prediction, answers = self.normalize(prediction), [self.normalize(answer) for answer in answers]
        if may_be_unanswerable:
            answers = [answer for answer in answers if answer or self.counts_empty_answers]
            if not answers:
                return float(not prediction), float(not prediction)
        exact = max(float(prediction == answer) for answer in answers)
        return exact, max(self.overlap(prediction, answer) for answer in answers)


METRICS = {
    "squad": Metrics(normalize_squad, "f1", word_f1),
    "korquad": Metrics(normalize_korquad, "f1", character_f1),
    "klue": Metrics(normalize_klue, "rouge_w", rouge_w, counts_empty_answers=True),
}


# Whose rules hold where nothing says so.
DEFAULT_METRICS = "korquad"

# How published files are called, and call themselves. Where SQuAD is in the middle of a name, it is the form alone.
_NAMES = {"klue": "klue", "korquad": "korquad|squad_kor", "squad": r"^squad|^(train|dev)-v(1\.1|2\.0)\b"}
_VERSIONS_OF_SQUAD = ("1.1", "v2.0")


def rules_named_by(version: typing.Any, file_name: str) -> tuple[str, str] | None:
    """Returns the rules that a file names by its "version", else its name, and what says so; None if nothing does."""
    # What the questions say doesn't count, so that a part of a file goes by the rules of the whole.
    version = str(version)
    for said in (version, file_name):
        for rules, pattern in _NAMES.items():
            if re.search(pattern, said, re.IGNORECASE):
                return rules, said
    return ("squad", version) if version in _VERSIONS_OF_SQUAD else None


def best_threshold(scores: np.ndarray, has_answer: np.ndarray, null_odds: np.ndarray) -> tuple[float, float]:
    """Returns the best mean score that a threshold of no answer can give, in percent, and the threshold."""
    # Of Q questions: what each scores if it is answered, from 0 to 1, whether it can be, and its odds of no answer; it
    # is answered where these are not above the threshold, which is 0 where it is best to answer nothing, as in SQuAD's
    # script.
    order = np.argsort(null_odds, kind="stable")
    unanswered = np.count_nonzero(~has_answer)
    # To answer one question more gains its score, and loses what no answer scores.
    totals = unanswered + np.cumsum((scores - ~has_answer)[order])
    best = int(totals.argmax())
    if totals[best] <= unanswered:
        return 100.0 * unanswered / len(scores), 0.0
    return 100.0 * float(totals[best]) / len(scores), float(null_odds[order[best]])
