"""How much is said: a training prints through `tell`, so that `fit(verbose=...)` holds for all of it."""

import collections.abc
import contextlib
import sys
import typing

# Warnings alone; what a training came to, and how far it is; all that commands say.
WARNINGS, RESULTS, DETAILS = range(3)
_WARNING = "warning: "

_most = DETAILS
_spell: collections.abc.Callable[[str], str] = str
_rewritten: typing.TextIO | None = None  # the terminal whose last row a line of progress is in
_CLEAR = "\r\033[K"


@contextlib.contextmanager
def at_most(level: int) -> collections.abc.Iterator[None]:
    """Limits what is said to a level for a while, in this process."""
    global _most
    before, _most = _most, level
    try:
        yield
    finally:
        _most = before


def spell_settings(spell: collections.abc.Callable[[str], str]) -> None:
    """Spells settings in backquotes otherwise in all that is said, as commands call their flags."""
    global _spell
    _spell = spell


def tells(level: int) -> bool:
    return level <= _most


def tell(text: str, level: int = DETAILS, stream: typing.TextIO | None = None) -> bool:
    """Prints a text if its level is said, and warnings in it in any case; returns whether anything was printed."""
    lines = [line for line in _spell(text).splitlines() if tells(level) or line.startswith(_WARNING)]
    if lines:
        end_row(stream or sys.stdout)
        print(*lines, sep="\n", file=stream, flush=True)
    return bool(lines)


def rewrite_row(stream: typing.TextIO, line: str) -> None:
    """Shows a line in the last row of a terminal, in place of the one shown there before."""
    global _rewritten
    _rewritten = stream
    print(f"{_CLEAR}{line}", end="", file=stream, flush=True)


def end_row(stream: typing.TextIO, is_kept: bool = True) -> None:
    """Leaves the line of `rewrite_row` where it is, or takes it away."""
    global _rewritten
    if stream is _rewritten:
        print(end="\n" if is_kept else _CLEAR, file=stream, flush=True)
        _rewritten = None
