"""The line that is rewritten in a terminal, whatever its width, and written whole into a log."""

import io

import pytest

from albert_tf.progress_line import ProgressLine, with_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("columns", "expected"), [(80, "step 1/20"), (10, "step 1/20"), (9, "step 1/2")])
def test_line_is_cut_to_the_width_of_the_terminal(monkeypatch, columns, expected):
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal = Terminal()
    ProgressLine(terminal).show("step 1/20")
    assert terminal.getvalue() == f"\r\033[K{expected}"


def test_log_gets_whole_lines():
    log = io.StringIO()
    line = ProgressLine(log)
    line.show("말" * 200)
    line.finish()
    assert log.getvalue() == "말" * 200 + "\n"


def test_long_work_shows_how_many_batches_are_done(capsys, monkeypatch):
    seconds = iter(range(0, 1000, 6))
    monkeypatch.setattr("albert_tf.progress_line.time.monotonic", lambda: next(seconds))
    assert list(with_progress("abc", 3, "evaluating")) == ["a", "b", "c"]
    first, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("evaluating: batch 1 of 3, ETA ")
    monkeypatch.setattr("albert_tf.progress_line.time.monotonic", lambda: 0.0)
    assert list(with_progress("abc", 3, "evaluating")) == ["a", "b", "c"] and not capsys.readouterr().out
