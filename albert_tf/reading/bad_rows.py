"""Rows that can't be used, and remarks on a file that are made once."""

import collections.abc
import contextlib
import contextvars
import functools

from albert_tf.base.console import DETAILS, tell
from albert_tf.base.errors import InputError

_told: set[str] = set()


class BadRows:
    """Stops at the first row that can't be used, or leaves all out; units are the word for one, and for several."""

    def __init__(self, policy: str = "fail", units: tuple[str, str] = ("row", "rows")):
        self._skips, self._units = policy == "skip", units
        self._count, self._first = 0, None

    def refuse(self, message: str) -> None:
        """Leaves a row out; raises InputError where the policy is to fail."""
        if not self._skips:
            raise InputError(f"{message}; correct the row, or pass `on_bad_row=skip` to leave such rows out")
        self._leave_out(message)

    @contextlib.contextmanager
    def leaving_out(self) -> collections.abc.Iterator[None]:
        """Treats InputErrors of a block, which say by themselves what to correct, as `refuse` treats messages."""
        try:
            yield
        except InputError as error:
            if not self._skips:
                raise InputError(f"{error}; or pass `on_bad_row=skip` to leave such {self._units[1]} out") from error
            self._leave_out(str(error))

    def warn(self) -> None:
        if self._count:
            counted = f"{self._count:,} {self._units[self._count > 1]}"
            tell_once(f"warning: {counted} left out; the first: {self._first}")

    def _leave_out(self, message):
        self._count += 1
        self._first = self._first or message


def tell_once(message: str, level: int = DETAILS) -> None:
    """Prints a remark on a file once in a process: a run reads some files for several purposes."""
    if message not in _told and tell(message, level):
        _told.add(message)


def counted(number: int, what: str) -> str:
    """Returns a count in words, as "1 row" or "2,000 rows"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


# Files that are read once, though a run needs them for several purposes: labels, lengths, and to learn from.

_kept: contextvars.ContextVar[dict | None] = contextvars.ContextVar("kept", default=None)


@contextlib.contextmanager
def reading_once() -> collections.abc.Iterator[None]:
    """Keeps the results of functions that `read_once` decorates, until its end."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def read_once(read: collections.abc.Callable[..., list]) -> collections.abc.Callable[..., list]:
    """Decorates a function that reads a file; within `reading_once`, it reads once for the same arguments."""

    @functools.wraps(read)
    def wrapped(*arguments, **options):
        kept, key = _kept.get(), (read, arguments, tuple(options.items()))
        if kept is None:
            return read(*arguments, **options)
        if key not in kept:
            kept[key] = read(*arguments, **options)
        return list(kept[key])

    return wrapped
