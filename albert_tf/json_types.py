"""The types of values that are written as JSON and read again, so that a changed or foreign file is found out."""

import collections.abc
import types
import typing

from albert_tf.errors import InputError, describe

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", type(None): "null"}


def check_types(
    values: typing.Any,
    expected: collections.abc.Mapping[str, typing.Any],
    source: str,
    required: collections.abc.Collection[str] = (),
) -> dict:
    """Returns a JSON object after checking the types of its values; names that are not expected may hold anything.

    A type is bool, int, float (which a whole number is, too), str, None, a union, `list[type]`, `dict[str, type]`, or
    a mapping of this kind for an object inside. Errors name the source, which is a file.
    """
    if not isinstance(values, dict):
        raise InputError(f"{source} must hold a JSON object. Received: {describe(values)}")
    missing = next((name for name in required if name not in values), None)
    if missing is not None:
        raise InputError(f'{source}: "{missing}" is missing; the file was changed, or another program wrote it')
    for name, kind in expected.items():
        if name not in values:
            continue
        if isinstance(kind, collections.abc.Mapping):
            check_types(values[name], kind, f'{source}, "{name}"')
        elif not _is_of(values[name], kind):
            raise InputError(
                f'{source}: "{name}" must be {_describe_type(kind)}. Received: {describe(values[name])}; the '
                "file was changed, or another program wrote it"
            )
    return values


def _is_of(value, kind):
    if kind is typing.Any:
        return True
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(_is_of(value, each) for each in arguments)
    if origin in (list, tuple):
        return isinstance(value, list) and all(_is_of(each, arguments[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_is_of(each, arguments[1]) for each in value.values())
    if kind in (None, type(None)):
        return value is None
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _describe_type(kind):
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_describe_type, arguments))
    if origin in (list, tuple):
        return "a list"
    if origin is dict or kind is dict:
        return "an object"
    return _WORDS.get(type(None) if kind is None else kind, "a list" if kind is list else str(kind))
