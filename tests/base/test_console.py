"""How much is said follows one setting; the line of progress, in a terminal of any width and in a log."""

import contextlib
import io
import itertools
import types

import pytest

from albert_tf.base.console import DETAILS, RESULTS, WARNINGS, ProgressLine, at_most, tell, with_progress
from albert_tf.reading.rows import tell_once


@pytest.mark.parametrize(
    ("most", "told"),
    [
        (WARNINGS, ["warning: a"]),
        (RESULTS, ["warning: a", "a result", "half"]),
        (DETAILS, ["a detail", "warning: a", "a result", "half"]),
    ],
)
def test_less_is_said_if_asked_for(capsys, most, told):
    with at_most(most):
        tell("a detail\nwarning: a")
        tell("a result", RESULTS)
        ProgressLine().show("half")
    assert capsys.readouterr().out.splitlines() == told
    tell("a detail again")
    assert capsys.readouterr().out == "a detail again\n"


def test_what_is_told_once_is_told_later_if_it_was_not_before(capsys):
    with at_most(WARNINGS):
        tell_once("of a file that is read twice")
    tell_once("of a file that is read twice")
    tell_once("of a file that is read twice")
    assert capsys.readouterr().out == "of a file that is read twice\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_line_is_cut_to_the_width_of_a_terminal_alone(monkeypatch):
    for columns, expected in ((10, "step 1/20"), (9, "step 1/2")):
        monkeypatch.setenv("COLUMNS", str(columns))
        terminal = Terminal()
        ProgressLine(terminal).show("step 1/20")
        assert terminal.getvalue() == f"\r\033[K{expected}"
    log = io.StringIO()
    line = ProgressLine(log)
    line.show("말" * 200)
    line.finish()
    assert log.getvalue() == "말" * 200 + "\n"


@pytest.fixture
def on_terminal(monkeypatch):
    """Returns what is seen in the end on a terminal, on which seconds go by whenever somebody looks at the clock."""
    clock = itertools.count(step=5).__next__
    monkeypatch.setattr("albert_tf.base.console.time", types.SimpleNamespace(monotonic=clock))

    @contextlib.contextmanager
    def rows():
        seen = []
        with contextlib.redirect_stdout(Terminal()) as terminal:
            yield seen
        seen += [row.rpartition("\r\033[K")[2] for row in terminal.getvalue().split("\n")]

    return rows


def test_work_that_is_done_leaves_no_row_behind(on_terminal):
    with on_terminal() as rows:
        line = ProgressLine()
        line.show("step 1/2")
        assert list(with_progress(range(3), 3, "evaluating")) == [0, 1, 2]
        line.finish()
        print("held-out at step 1")
    assert rows == ["held-out at step 1", ""]


def test_work_that_is_given_up_leaves_no_row_behind(on_terminal):
    with on_terminal() as rows:
        for number in with_progress(range(9), 9, "evaluating"):
            if number == 2:
                break
        print("stopped by Ctrl-C")
    assert rows == ["stopped by Ctrl-C", ""]


def test_work_that_takes_long_tells_how_far_it_is(on_terminal, monkeypatch, capsys):
    with on_terminal() as rows:
        work = with_progress(range(3), 3, "evaluating")
        assert [next(work), next(work)] == [0, 1]
    assert rows[0].startswith("evaluating: batch 1 of 3, ETA ")
    monkeypatch.setattr("albert_tf.base.console.time.monotonic", lambda: 0.0)
    assert list(with_progress("abc", 3, "evaluating")) == ["a", "b", "c"] and not capsys.readouterr().out


def test_what_is_said_has_a_row_of_its_own_and_what_is_not_said_has_none(on_terminal):
    with on_terminal() as rows, at_most(RESULTS):
        for step in (1, 2):
            ProgressLine().show(f"step {step}/2")
            tell("a detail")
        tell("warning: something")
    assert rows == ["step 2/2", "warning: something", ""]
