"""A line of progress: rewritten in place in a terminal, printed now and then in a log."""

import shutil
import sys
import time

_SECONDS_BETWEEN_LINES = {True: 0.2, False: 10.0}  # in a terminal, and in a log


class ProgressLine:
    """Shows progress."""

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
            # The last column is left free, for some terminals go on to the next row after it.
            shown = line[: shutil.get_terminal_size().columns - 1]
            print(f"\r\033[K{shown}", end="", file=self._stream, flush=True)
            self._is_open = True
        else:
            print(line, file=self._stream, flush=True)
        self._last_at = time.monotonic()

    def finish(self) -> None:
        """Leaves the last line where it is."""
        if self._is_open:
            print(file=self._stream, flush=True)
        self._is_open = False


def format_seconds(seconds: float) -> str:
    """Returns "45 s", "12:05" (minutes) or "3:07:05" (hours)."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
