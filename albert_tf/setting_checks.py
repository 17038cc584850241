"""Checks of values that come from Python, where no flag has told their type."""

import collections.abc
import math
import numbers
import typing

from albert_tf.errors import InputError


def check_whole(name: str, value: typing.Any, least: int, most: float = math.inf) -> None:
    """Raises InputError if a setting is no whole number of at least, and at most, so much."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or not least <= value <= most:
        allowed = f"from {least} on" if most == math.inf else f"from {least} to {most}"
        raise InputError(f"`{name}` must be a whole number {allowed}. Received: {value!r}")


def check_number(
    name: str, value: typing.Any, allowed: str, is_allowed: collections.abc.Callable[[float], bool]
) -> None:
    """Raises InputError if a setting is no finite number, or none that is allowed.

    Args:
        name: Of the setting.
        value: Its value.
        allowed: Which numbers are, as it reads after "must be a number".
        is_allowed: Whether a finite one is.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not is_allowed(value):
        raise InputError(f"`{name}` must be a number {allowed}. Received: {value!r}")
