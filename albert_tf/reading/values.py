"""Values of rows as texts, however the file writes them, and which of them are missing."""

import collections
import collections.abc
import datetime
import decimal
import json
import math
import re
import typing
import uuid

from albert_tf.base.errors import InputError, describe, shorten
from albert_tf.base.files import replace_halves

# How JSON spells the halves of what UTF-16 writes as two.
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
_WHOLE = re.compile(r"(-?\d+)\.0+")


def load_json(text: str) -> typing.Any:
    """Returns a JSON value; half a surrogate pair, which JSON can spell and no UTF-8 file hold, becomes U+FFFD.

    Raises json.JSONDecodeError if it isn't valid, Python can't read it, or an object has a name twice.
    """
    try:
        value = json.loads(text, object_pairs_hook=_object)
        if _HALF_CHARACTER.search(text):
            value = json.loads(replace_halves(json.dumps(value, ensure_ascii=False)))
        return value
    except json.JSONDecodeError:
        raise
    except _RepeatedNameError as error:
        raise json.JSONDecodeError(f'"{shorten(error)}" is there twice', text, 0) from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of brackets
        raise json.JSONDecodeError("too many digits or brackets", text, 0) from error


def one_value(values: collections.abc.Mapping[str, typing.Any], column: str) -> str:
    """Returns a column's value as a text: a string as it is, truth values as in JSON, others as Python writes them.

    Raises InputError, without the place, if it is missing (absent, null, NaN), an object, a list, bytes, or infinite.
    """
    value = values.get(column)
    if isinstance(value, str):
        return value
    if is_missing(value):
        raise InputError(f"nothing under {column}" + ("" if value is None else " but NaN"))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        inner = " or ".join(shorten(f"{column}.{key}") for key in list(value)[:5])
        raise InputError(f"{column} holds an object; name a value in it{f', {inner}' if inner else ''}")
    if isinstance(value, list):
        raise InputError(f"{column} holds a list, not one value; name another column")
    if isinstance(value, bytes):
        raise InputError(f"{column} holds bytes, not text; write it as strings, or name another column")
    if isinstance(value, float) and math.isinf(value):
        raise InputError(f"{column} holds {value}, which is not a number; correct it")
    return str(value)


def one_text(values: collections.abc.Mapping[str, typing.Any], column: str) -> str:
    """Returns the value of a column of texts; like `one_value`, but it refuses truth values, too."""
    if isinstance(values.get(column), bool):
        raise InputError(f"{column} holds {str(values[column]).lower()}, not text; name another column")
    return one_value(values, column)


def json_value(values: collections.abc.Mapping[str, typing.Any], column: str) -> typing.Any:
    """Returns a column's value as JSON can have it: null if missing, dates, decimals and UUIDs as texts, bytes in hex.

    Raises InputError, without the place, if it is infinite, or of a kind that is not known.
    """
    value = values[column]
    if isinstance(value, str | bool | int):
        return value
    if is_missing(value):
        return None
    if isinstance(value, collections.abc.Mapping):
        return {str(name): json_value(value, name) for name in value}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | uuid.UUID | datetime.timedelta):
        return str(value)
    if hasattr(value, "tolist"):  # of NumPy
        return json_value({column: value.tolist()}, column)
    if isinstance(value, list | tuple):
        return [json_value({column: each}, column) for each in value]
    raise InputError(
        f"{shorten(column)} holds {describe(value)}, which can't be written into an answer; leave the column out"
    )


def joined_text(values: collections.abc.Mapping[str, typing.Any], columns: collections.abc.Sequence[str]) -> str:
    """Returns the texts of columns that are there, with spaces between; InputError as of `one_text`, or if none is."""
    there = [column for column in columns if not is_missing(values.get(column))]
    if len(columns) == 1 or not there:
        return one_text(values, " and ".join(columns))
    return " ".join(text for text in (one_text(values, column) for column in there) if text.strip())


def is_missing(value: typing.Any) -> bool:
    """Whether a value stands for none: null, or NaN and pandas' NaT and NA, which tables with gaps have."""
    if value is None or hasattr(value, "__len__"):
        return value is None
    try:
        return bool(value != value)
    except TypeError:  # of NA, which nothing can be compared with
        return True


def plain_labels(labels: list[str | None]) -> list[str | None]:
    """Returns labels without what pandas adds to columns with gaps: "1.0" as "1", "True" as "true" where all are so."""
    known = [label for label in labels if label]
    if known and all(_spelled(label) != label for label in known):
        return [label and _spelled(label) for label in labels]
    return labels


def known_label(label: str, known: collections.abc.Iterable[str]) -> str:
    """Returns the known label that a file means: the same, or the same number or truth value; others as they are."""
    known = tuple(known)
    if label in known:
        return label
    return next((each for each in known if _spelled(each) == _spelled(label)), label)


def _spelled(label):
    """Returns a whole number without a fraction, a truth value as in JSON, and anything else as it is."""
    if whole := _WHOLE.fullmatch(label):
        return whole[1]
    return label.lower() if label in ("True", "False", "TRUE", "FALSE") else label


class _RepeatedNameError(ValueError):
    pass


def _object(pairs):
    values = dict(pairs)
    if len(values) < len(pairs):
        counts = collections.Counter(name for name, _ in pairs)
        raise _RepeatedNameError(next(name for name, count in counts.items() if count > 1))
    return values


# Settings that name the column of a text, or several columns that are one text together.


def columns_of(setting: str, found: collections.abc.Container[str]) -> tuple[str, ...]:
    """Returns the columns that a setting names: `title,text` is two, unless one column has that very name.

    Raises InputError if one of several is empty, or named twice.
    """
    if "," not in setting or setting in found:
        return (setting,)
    names = tuple(name.strip() for name in setting.split(","))
    for name in names:
        if not name or names.count(name) > 1:
            what = f"{name} is there twice" if name else "a name between its commas is missing"
            raise InputError(f'the columns "{setting}": {what}; name each once, as in title,text')
    return names


def describe_columns(texts: collections.abc.Sequence[collections.abc.Sequence[str]]) -> str:
    """Returns the names of one text's columns or of several texts', and "is", or "are" for more than one."""
    names = " and ".join(_names(columns) + ", joined," * (len(columns) > 1) for columns in texts)
    return f"{names} {'are' if sum(map(len, texts)) > 1 else 'is'}"


def _names(columns):
    return " and ".join(filter(None, (", ".join(columns[:-1]), columns[-1])))
