"""What is to be learnt of a text, as Python values: one check for each kind, which returns a value of one form.

Each takes the value, the text and the number that messages call them by.
"""

import collections.abc
import numbers

import numpy as np

from albert_tf.errors import InputError, describe, quote
from albert_tf.finetuning.entities.tags import entities_of, normalize_tag
from albert_tf.rows.values import is_missing

LISTS = list | tuple | set | frozenset | np.ndarray
OF_FLAGS = (
    "the labels are lists of 1 and 0 without names; give each text a list of the names of its labels, or give a "
    "table, and as `labels` a list of its columns of 1 and 0"
)


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
            raise InputError(OF_FLAGS)
    raise InputError(f"labels[{number}] must be a list of strings, which may be empty. Received: {describe(value)}")


def _number(value, text, number):
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and np.isfinite(value):
        return float(value)
    raise InputError(f"labels[{number}] must be a number. Received: {describe(value)}")


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


def text_of_characters(characters: list[str], tags: list[str]) -> tuple[str, list[tuple[int, int, str]]]:
    """Returns the text of characters, and the (begin, end, type) of its entities; tags of blanks say nothing.

    Raises:
        InputError: A tag is none.
    """
    places = [place for place, character in enumerate(characters) if not character.isspace()]
    try:
        found = entities_of([normalize_tag(tags[place]) for place in places])
    except ValueError as error:
        raise InputError(f"{quote(str(error))} is not a tag such as B-PER, PER-B, I-PER or O; correct it") from error
    return "".join(characters), [(places[each.begin], places[each.end - 1] + 1, each.type) for each in found]


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
        answers, begins = (_as_list(value[name]) for name in ("text", "answer_start"))
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
            raise InputError(
                f"labels[{number}]: {quote(answer)} is not in the text at {begin}; correct the answer or its position"
            )
    return [(answer, int(begin)) for answer, begin in pairs]


def _as_list(value):
    """Returns what SQuAD has for all answers of a question, or somebody for its only one, as a list."""
    if is_missing(value):
        return []
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]


# By kind.
CHECKS = {
    "labels": _label,
    "multi_label": _label_set,
    "numbers": _number,
    "entities": _entities,
    "answers": _answers,
}
