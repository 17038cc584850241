"""The line that is rewritten in a terminal, whatever its width, and written whole into a log."""

import io
import os

import pytest

from albert_tf.progress_line import ProgressLine


class Terminal(io.StringIO):
    """A terminal that tells its width, or raises what asking for it raises.

    Args:
        columns: The width; None for a stream that has no file behind it.
    """

    def __init__(self, columns):
        super().__init__()
        self.columns = columns

    def isatty(self):
        return True

    def fileno(self):
        return super().fileno() if self.columns is None else 99


@pytest.fixture
def shown(monkeypatch):
    """Returns what a terminal of a width shows of a line."""

    def show(line, columns):
        terminal = Terminal(columns)
        monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((columns, 24)))
        ProgressLine(terminal).show(line)
        begin, text = terminal.getvalue().split("\033[K")
        assert begin == "\r"
        return text

    return show


@pytest.mark.parametrize(
    ("line", "columns", "expected"),
    [
        ("step 1/20", 80, "step 1/20"),
        ("step 1/20", 10, "step 1/20"),
        ("step 1/20", 9, "step 1/2"),  # the last column is left free, for some terminals go on to the next row after it
        ("말뭉치.txt", 11, "말뭉치.txt"),
        ("말뭉치.txt", 10, "말뭉치.tx"),
        ("말뭉치.txt", 6, "말뭉"),
        ("말뭉치.txt", 5, "말뭉"),
        ("ｆｕｌｌ", 6, "ｆｕ"),
        ("cafe\u0301 x", 7, "café x"),
        ("a\u0337b\u200dc", 4, "a\u0337b\u200dc"),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", 4, "한"),  # the way a Mac writes the name of a file
        ("길", 1, ""),
    ],
)
def test_line_is_cut_to_the_width_of_the_terminal(shown, line, columns, expected):
    assert shown(line, columns) == expected


@pytest.mark.parametrize("columns", [None, 0])
def test_terminal_that_does_not_tell_its_width_has_80_columns(shown, columns):
    if columns is None:
        terminal = Terminal(None)
        ProgressLine(terminal).show("x" * 200)
        assert terminal.getvalue().endswith("K" + "x" * 79)
    else:
        assert shown("x" * 200, columns) == "x" * 79


def test_log_gets_whole_lines():
    log = io.StringIO()
    line = ProgressLine(log)
    line.show("말" * 200)
    line.finish()
    assert log.getvalue() == "말" * 200 + "\n"
