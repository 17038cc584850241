"""How much is said: what a training tells goes through `tell`, so that `fit(verbose=...)` holds for all of it."""

import collections.abc
import contextlib
import typing

# Warnings alone; what a training came to, and how far it is; all that commands say.
WARNINGS, RESULTS, DETAILS = range(3)
_WARNING = "warning: "

_most = DETAILS


@contextlib.contextmanager
def at_most(level: int) -> collections.abc.Iterator[None]:
    """Says no more than a level for a while, in this process."""
    global _most
    before, _most = _most, level
    try:
        yield
    finally:
        _most = before


def tells(level: int) -> bool:
    """Whether what is of a level is said."""
    return level <= _most


def told_of(text: str, level: int) -> list[str]:
    """Returns the lines of a text that `tell` prints."""
    return [line for line in text.splitlines() if tells(level) or line.startswith(_WARNING)]


def tell(text: str, level: int = DETAILS, stream: typing.TextIO | None = None) -> bool:
    """Prints what is of a level, and lines that are warnings in any case; returns whether there was such."""
    lines = told_of(text, level)
    if lines:
        print(*lines, sep="\n", file=stream, flush=True)
    return bool(lines)
