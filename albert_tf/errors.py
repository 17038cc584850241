"""The one error type for input that a user can correct."""

import collections.abc
import itertools
import os
import shlex

# What may be done with a row that can't be used: raise an InputError, or leave it out.
ON_BAD_ROW = ("fail", "skip")

_LONGEST_SHOWN, _MOST_LISTED = 100, 50
# As a terminal would show them, or not.
_SPACES = dict.fromkeys(map(ord, "\t\n\r\x0b\x0c\x1b\x1c\x1d\x1e\x85\u2028\u2029"), " ")

_CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class InputError(ValueError):
    """A file or setting is wrong; the message is one sentence that says which and what to do.

    It names settings in backquotes, as `train_batch_size` or `attention=flash`. Commands print it without a traceback,
    with flags for the settings, and exit with code 1.
    """


def describe(value: object) -> str:
    return f"{quote(value)} ({type(value).__name__})"


def quote(value: object) -> str:
    """Returns the beginning of a value as Python writes it."""
    return shorten(repr(value))


def shorten(text: object) -> str:
    """Returns the beginning of a text in one line; messages repeat what a file holds by way of this, or of `quote`."""
    text = str(text).translate(_SPACES)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def listed(names: collections.abc.Iterable[object], most: int = _MOST_LISTED) -> str:
    """Returns names from a file, shortened, with commas between; the first `most` of many."""
    shown = list(map(shorten, itertools.islice(names, most + 1)))
    return ", ".join(shown[:most] + ["..."] * (len(shown) > most))


def first_line(error: Exception) -> str:
    """Returns the first line of an error's message that says something, or else the error's type."""
    message = getattr(error, "message", None) or str(error)
    headings = ("Graph execution error:", "Detected at node")
    lines = [line.strip() for line in message.splitlines() if line.strip() and not line.startswith(headings)]
    return lines[0] if lines else type(error).__name__


def with_extra(extra: str) -> str:
    """Returns the argument of `pip install` for an extra of this library, quoted for a shell."""
    # pip finds no albert_tf elsewhere, and `make demo` does not install it.
    if os.path.exists(os.path.join(_CHECKOUT, "setup.py")):
        return f"-e {shlex.quote(f'{_CHECKOUT}[{extra}]')}"
    return shlex.quote(f"albert_tf[{extra}]")
