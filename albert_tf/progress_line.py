"""A line of progress: rewritten in place in a terminal, printed now and then in a log."""

import os
import sys
import time
import unicodedata

_SECONDS_BETWEEN_LINES = {True: 0.2, False: 10.0}  # in a terminal, and in a log


class ProgressLine:
    """Shows progress.

    Args:
        stream: Where the line goes, by default standard output.
    """

    def __init__(self, stream=None):
        self._stream = stream or sys.stdout
        self._is_terminal = self._stream.isatty()
        self._is_open = False
        self._last_at = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the last line is old enough for another one."""
        return time.monotonic() - self._last_at >= _SECONDS_BETWEEN_LINES[self._is_terminal]

    def show(self, line: str) -> None:
        """Shows a line; in a terminal in place of the one before, and no more of it than fits into one row."""
        if self._is_terminal:
            print(f"\r\033[K{_cut(line, _columns_of(self._stream) - 1)}", end="", file=self._stream, flush=True)
            self._is_open = True
        else:
            print(line, file=self._stream, flush=True)
        self._last_at = time.monotonic()

    def finish(self) -> None:
        """Leaves the last line where it is."""
        if self._is_open:
            print(file=self._stream, flush=True)
        self._is_open = False


def _columns_of(stream):
    """Returns the width of a terminal; 80 if it is unknown."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80


def _cut(line, columns):
    """Returns as much of a line as fits into the columns; Korean and other wide characters take two."""
    # Composed, because conjoining jamo take no column of their own.
    composed = unicodedata.normalize("NFC", line)
    for index, character in enumerate(composed):
        if unicodedata.category(character) not in ("Mn", "Me", "Cf"):
            columns -= 2 if unicodedata.east_asian_width(character) in "FW" else 1
        if columns < 0:
            return composed[:index]
    return composed


def format_seconds(seconds: float) -> str:
    """Returns "45 s", "12:05" (minutes) or "3:07:05" (hours)."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
