"""The kinds of examples that may be given in Python: one record each, from the values to the command's file."""

import collections.abc
import functools
import numbers
import typing

import numpy as np

from albert_tf.base.errors import InputError, describe, quote
from albert_tf.base.files import to_json
from albert_tf.finetuning.tasks.multi_label import METRICS as METRICS_OF_SETS
from albert_tf.reading.values import is_missing
from albert_tf.runs.settings.classifier import ClassifierSettings
from albert_tf.runs.settings.finetuning import FinetuningSettings
from albert_tf.runs.settings.ner import NerSettings
from albert_tf.runs.settings.squad import SquadSettings

LISTS = list | tuple | set | frozenset | np.ndarray
NO_NAMES = (
    "the labels are lists of 1 and 0 without names; give each text a list of the names of its labels, or give a "
    "table, and as `labels` a list of its columns of 1 and 0"
)
# What ends a line somewhere, or a column.
_BREAKS = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
# Lines of such a word would be read as something else.
_NO_WORDS = ("## ", "-DOCSTART-")


class GivenKind(typing.NamedTuple):
    """A kind of examples, and the file that they become."""

    learns: str  # how that is told
    check: collections.abc.Callable  # returns the form of a value, given its text and the number messages call it by
    write: collections.abc.Callable  # returns what commands read, given the texts and what `check` made of the values
    ending: str  # of the file for that
    settings: type[FinetuningSettings]
    follow: collections.abc.Callable  # returns settings by name, given texts, values and the columns that are labels
    names: collections.abc.Callable = lambda value: ()  # returns the labels, or types of entities, in a value


def is_flag(value):
    """Whether a value may say that a text has a label, or not."""
    return isinstance(value, numbers.Real | np.bool_) and value in (0, 1)


def is_whole(value):
    """Whether a value is a whole number or a truth value."""
    return isinstance(value, numbers.Integral | np.bool_)


def _label(value, text, number):
    if isinstance(value, bool | np.bool_):
        return str(value).lower()  # as in JSON
    if isinstance(value, str) and value:
        return str(value)
    if isinstance(value, numbers.Real) and np.isfinite(value) and value == int(value):
        return str(int(value))
    wanted = "a string that is not empty, a whole number or a truth value"
    raise InputError(f"labels[{number}] must be {wanted}. Received: {describe(value)}")


def _label_set(value, text, number):
    if isinstance(value, LISTS):
        labels = sorted(value) if isinstance(value, set | frozenset) else list(value)
        if all(isinstance(label, str) and label for label in labels):
            return list(map(str, labels))
        if labels and all(map(is_flag, labels)):
            raise InputError(NO_NAMES)
    raise InputError(f"labels[{number}] must be a list of strings, which may be empty. Received: {describe(value)}")


def _number(value, text, number):
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and np.isfinite(value):
        return float(value)
    raise InputError(f"labels[{number}] must be a number. Received: {describe(value)}")


def _number_or_none(value, text, number):
    if is_missing(value):
        return None
    if not isinstance(text, tuple):
        raise InputError(f"labels[{number}] must be None: to compare vectors by numbers, texts must be tuples of two")
    return _number(value, text, number)


def _entities(value, text, number):
    """Returns the tags of words, or the (begin, end, type) of entities, in order."""
    if isinstance(text, list):
        is_list = isinstance(value, list | tuple | np.ndarray) and len(value) == len(text)
        if is_list and all(isinstance(tag, str) for tag in value):
            return list(map(str, value))
        words = f"{len(text)} words"
        raise InputError(f"labels[{number}] must be a tag for each of the {words}. Received: {describe(value)}")
    if not isinstance(text, str):
        raise InputError(f"texts[{number}] must be a string or a list of words to find entities in")
    if not isinstance(value, list | tuple):
        raise InputError(f"labels[{number}] must be a list of (begin, end, type). Received: {describe(value)}")
    found = list(map(_entity, value))
    if None not in found:
        found.sort()
        borders = [0, *(border for begin, end, _ in found for border in (begin, end)), len(text)]
        if borders == sorted(borders) and all(begin < end for begin, end, _ in found):
            return found
    raise InputError(
        f"labels[{number}] must be a list of (begin, end, type) in characters of the text, none of which overlap. "
        f"Received: {describe(value)}"
    )


def _types_in(entities):
    """Returns the types of entities that are given by their places."""
    return [each[2] for each in entities if not isinstance(each, str)]


def _entity(value):
    """Returns (begin, end, type), None for what is none."""
    if isinstance(value, collections.abc.Mapping):
        value = [value.get(name) for name in ("begin", "end", "type")]
    if not isinstance(value, list | tuple) or len(value) != 3:
        return None
    begin, end, kind = value
    is_right = isinstance(begin, numbers.Integral) and isinstance(end, numbers.Integral) and isinstance(kind, str)
    return (int(begin), int(end), kind) if is_right and kind else None


def _answers(value, text, number):
    """Returns the right answers of a question, each as (text, begin); none if it has no answer."""
    if not isinstance(text, tuple):
        raise InputError(f"texts[{number}] must be a tuple of a question and the text that answers it")
    if is_missing(value):
        return []
    context, pairs = text[1], None
    if isinstance(value, collections.abc.Mapping) and set(value) >= {"text", "answer_start"}:
        answers, begins = (_list_of(value[name]) for name in ("text", "answer_start"))
        pairs = list(zip(answers, begins)) if len(answers) == len(begins) else None
    elif isinstance(value, list | tuple) and len(value) == 2 and all(map(is_whole, value)):
        begin, end = map(int, value)
        pairs = [(context[begin:end], begin)] if 0 <= begin < end <= len(context) else None
    if pairs is None or not all(isinstance(a, str) and isinstance(b, numbers.Integral) for a, b in pairs):
        raise InputError(
            f'labels[{number}] must be the (begin, end) of the answer in the text, an object of "text" and '
            f'"answer_start", or None. Received: {describe(value)}'
        )
    for answer, begin in pairs:
        if not answer or begin < 0 or context[begin : begin + len(answer)] != answer:
            raise InputError(f"labels[{number}]: {quote(answer)} is not in the text at {begin}; correct one of them")
    return [(answer, int(begin)) for answer, begin in pairs]


def _list_of(value):
    """Returns SQuAD's list of all answers of a question, or the only one that somebody gives, as a list."""
    if is_missing(value):
        return []
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]


def _rows(texts, labels):
    rows = []
    for text, label in zip(texts, labels):
        row = dict(zip(("text", "text_pair"), text if isinstance(text, tuple) else (text,)))
        rows.append(to_json({**row, "label": label}) + "\n")
    return "".join(rows)


def _tagged(texts, labels):
    """Returns words with their tags, a word a line; or characters, where entities are given by their places."""
    blocks = []
    for number, (text, label) in enumerate(zip(texts, labels)):
        units = list(zip(text, label)) if isinstance(text, list) else _tagged_characters(text, label)
        for unit, _ in units:
            is_word = isinstance(text, list)
            if _BREAKS.intersection(unit) or (is_word and (unit != unit.strip() or not unit)):
                raise InputError(
                    f"texts[{number}]: {quote(unit)} can't be written to a file of entities; replace each tab or "
                    "line break by one space, which moves no other character, and leave no spaces at the "
                    "borders of words"
                )
            if is_word and (unit == "##" or unit.startswith(_NO_WORDS)):
                raise InputError(f"texts[{number}]: {quote(unit)} is not a word in files of entities; leave it out")
        blocks.append("".join(f"{unit}\t{tag}\n" for unit, tag in units))
    return "\n".join(blocks)


def _tagged_characters(text, entities):
    tags = ["O"] * len(text)
    for begin, end, kind in entities:
        tags[begin:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - begin - 1)]
    return list(zip(text, tags))


def _questions(texts, labels):
    paragraphs = []
    for number, ((question, context), answers) in enumerate(zip(texts, labels)):
        written = [{"text": text, "answer_start": begin} for text, begin in answers]
        entry = {"id": str(number), "question": question, "answers": written, "is_impossible": not answers}
        paragraphs.append({"context": context, "qas": [entry]})
    return to_json({"version": "given", "data": [{"paragraphs": paragraphs}]}) + "\n"


def _rows_follow(texts, labels, label_columns, **of_kind):
    """Returns the settings of texts with labels or numbers."""
    # Labels have a column each where there are columns and examples have no other ones.
    found = {label for each in labels for label in each} if label_columns else set()
    named = tuple(sorted(label_columns)) if found and found <= set(label_columns) else None
    pair_column = "text_pair" if isinstance(texts[0], tuple) else None
    columns = {"text_column": "text", "text_pair_column": pair_column, "labels": named}
    return {"task_name": "jsonl", **columns, "regression": False, "multi_label": False, "metrics": None, **of_kind}


def _vectors_follow(texts, labels, label_columns):
    """Returns the settings of texts whose vectors are to be alike, as far as numbers, pairs or nothing says so."""
    count = sum(label is None for label in labels)
    if 0 < count < len(labels):
        raise InputError(f"{count:,} of {len(labels):,} labels are None; give a number for each pair, or for none")
    learns_from = "numbers" if not count else "pairs" if isinstance(texts[0], tuple) else "texts"
    of_numbers = {"regression": True, "metrics": ("spearman", "pearson")} if not count else {}
    return _rows_follow(texts, labels, label_columns, vectors=learns_from, **of_numbers)


def _tags_follow(texts, labels, label_columns):
    return {"task_name": "conll" if isinstance(texts[0], list) else "klue_ner"}


def _answers_follow(texts, labels, label_columns):
    return {"version_2_with_negative": not all(labels)}


_ROWS = (_rows, "jsonl", ClassifierSettings)
_SETS_FOLLOW = functools.partial(_rows_follow, multi_label=True, metrics=tuple(METRICS_OF_SETS))
_NUMBERS_FOLLOW = functools.partial(_rows_follow, regression=True, metrics=("spearman", "pearson"))
_TAGS, _QUESTIONS = (_tagged, "tsv", NerSettings, _tags_follow), (_questions, "json", SquadSettings, _answers_follow)
KINDS = {
    "labels": GivenKind("labels, one a text", _label, *_ROWS, _rows_follow, lambda label: [label]),
    "multi_label": GivenKind("labels, any number a text", _label_set, *_ROWS, _SETS_FOLLOW, lambda labels: labels),
    "numbers": GivenKind("numbers, one a text", _number, *_ROWS, _NUMBERS_FOLLOW),
    "vectors": GivenKind("vectors of texts", _number_or_none, *_ROWS, _vectors_follow),
    "entities": GivenKind("the entities in a text", _entities, *_TAGS, _types_in),
    "answers": GivenKind("where a text answers a question", _answers, *_QUESTIONS),
}
