"""Settings that name the column of a text, or several columns that are one text together."""

import collections.abc

from albert_tf.errors import InputError


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
