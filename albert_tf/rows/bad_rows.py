"""What there is to tell of rows: which can't be used, and what a file's first one holds."""

import collections.abc
import contextlib

from albert_tf.errors import InputError
from albert_tf.verbosity import DETAILS, tell

_told: set[str] = set()


class BadRows:
    """What to do with rows that can't be used: stop at the first, or leave all of them out and tell how many.

    The policy is one of `errors.ON_BAD_ROW`; the units are what is left out is called, one of them and several.
    """

    def __init__(self, policy: str = "fail", units: tuple[str, str] = ("row", "rows")):
        self._skips, self._units = policy == "skip", units
        self._count, self._first = 0, None

    def refuse(self, message: str) -> None:
        """Tells of a row; raises InputError unless such rows are to be left out."""
        if not self._skips:
            raise InputError(f"{message}; correct the row, or pass `on_bad_row=skip` to leave such rows out")
        self._leave_out(message)

    @contextlib.contextmanager
    def leaving_out(self) -> collections.abc.Iterator[None]:
        """Takes the InputErrors of a block, which say by themselves what to correct, as `refuse` takes messages."""
        try:
            yield
        except InputError as error:
            if not self._skips:
                raise InputError(f"{error}; or pass `on_bad_row=skip` to leave such {self._units[1]} out") from error
            self._leave_out(str(error))

    def warn(self) -> None:
        """Prints how many rows were left out, if any."""
        if self._count:
            counted = f"{self._count:,} {self._units[self._count > 1]}"
            tell_once(f"warning: {counted} left out; the first: {self._first}")

    def _leave_out(self, message):
        self._count += 1
        self._first = self._first or message


def tell_once(message: str, level: int = DETAILS) -> None:
    """Tells what there is to know of a file, once in a process: a run reads some files for several purposes."""
    if message not in _told and tell(message, level):
        _told.add(message)


def counted(number: int, what: str) -> str:
    """Returns how many there are of something, as "1 row" or "2,000 rows"."""
    return f"{number:,} {what}{'s' * (number != 1)}"
