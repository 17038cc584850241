"""What is to be learnt of a text, as Python values: one check for each kind, which returns a value of one form.

Each takes the value, the text and the number that messages call them by.
"""

import collections.abc
import numbers

import numpy as np

from albert_tf.errors import InputError, describe
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
    if isinstance(value, bool | np.bool_) or (isinstance(value, str) and value):
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


def _entity(value):
    """Returns (begin, end, type), None for what is none."""
    if isinstance(value, collections.abc.Mapping):
        value = [value.get(name) for name in ("begin", "end", "type")]
    if not isinstance(value, list | tuple) or len(value) != 3:
        return None
    begin, end, kind = value
    is_right = isinstance(begin, numbers.Integral) and isinstance(end, numbers.Integral) and isinstance(kind, str)
    return (int(begin), int(end), kind) if is_right and kind else None


def _answer(value, text, number):
    """Returns (text, begin) of an answer, None for none."""
    if not isinstance(text, tuple):
        raise InputError(f"texts[{number}] must be a tuple of a question and the text that answers it")
    if is_missing(value):
        return None
    context = text[1]
    if isinstance(value, collections.abc.Mapping):
        answer, begin = (_first(value.get(name)) for name in ("text", "answer_start"))
        if answer is None and begin is None and set(value) >= {"text", "answer_start"}:
            return None
    elif isinstance(value, list | tuple) and len(value) == 2 and all(map(is_whole, value)):
        begin, end = map(int, value)
        answer = context[begin:end] if 0 <= begin < end <= len(context) else None
    else:
        answer = begin = None
    if not isinstance(answer, str) or not isinstance(begin, numbers.Integral):
        raise InputError(
            f'labels[{number}] must be the (begin, end) of the answer in the text, an object of "text" and '
            f'"answer_start", or None. Received: {describe(value)}'
        )
    if not answer or begin < 0 or context[begin : begin + len(answer)] != answer:
        raise InputError(
            f"labels[{number}]: {answer[:40]!r} is not in the text at {begin}; correct the answer or its position"
        )
    return answer, int(begin)


def _first(value):
    """Returns the first of several answers, as SQuAD has them; None of none."""
    if isinstance(value, list | tuple | np.ndarray):
        return value[0] if len(value) else None
    return value


# By kind.
CHECKS = {
    "labels": _label,
    "multi_label": _label_set,
    "numbers": _number,
    "entities": _entities,
    "answers": _answer,
}
