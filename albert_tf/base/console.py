"""The words of a command at work: how many of them, and how far it is."""

import collections.abc
import contextlib
import shutil
import sys
import time
import typing

# How much is said, by `fit(verbose=...)` too: warnings alone; what a training came to, and how far it is; all that
# commands say.
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


_SECONDS_BETWEEN_LINES = {True: 0.2, False: 10.0}  # in a terminal, and in a log
_SECONDS_IN_A_BRIEF_LOG = 30.0
_SECONDS_BEFORE_THE_FIRST = 3.0


class ProgressLine:
    """Shows progress, in place in a terminal and now and then in a log, unless only warnings are to be said."""

    def __init__(self, stream=None):
        self._stream = stream or sys.stdout
        self._is_terminal = self._stream.isatty()
        self._last_at = time.monotonic()

    @property
    def is_due(self) -> bool:
        is_brief = not self._is_terminal and not tells(DETAILS)
        between = _SECONDS_IN_A_BRIEF_LOG if is_brief else _SECONDS_BETWEEN_LINES[self._is_terminal]
        return time.monotonic() - self._last_at >= between

    def show(self, line: str) -> None:
        """Shows a line, or in a terminal as much of it as fits into one row, in place of the one before."""
        if not tells(RESULTS):
            return
        if self._is_terminal:
            # The last column is left free, for some terminals go on to the next row after it.
            rewrite_row(self._stream, line[: shutil.get_terminal_size().columns - 1])
        else:
            print(line, file=self._stream, flush=True)
        self._last_at = time.monotonic()

    def finish(self, is_kept: bool = True) -> None:
        """Leaves the last line in the terminal, or takes it away."""
        end_row(self._stream, is_kept)


def with_progress(
    batches: collections.abc.Iterable[typing.Any], count: int, what: str
) -> collections.abc.Iterator[typing.Any]:
    """Yields batches, and shows how many of `count` (below 0 if nobody knows) are done where that takes long."""
    line, begin = ProgressLine(), time.monotonic()
    try:
        for number, batch in enumerate(batches):
            spent = time.monotonic() - begin
            if number and spent >= _SECONDS_BEFORE_THE_FIRST and line.is_due:
                left = f" of {count:,}, ETA {format_seconds(spent * (count - number) / number)}" if count > 0 else ""
                line.show(f"{what}: batch {number:,}{left}")
            yield batch
    finally:
        line.finish(is_kept=False)


def format_seconds(seconds: float) -> str:
    """Returns "45 s", "12:05" (minutes) or "3:07:05" (hours)."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
