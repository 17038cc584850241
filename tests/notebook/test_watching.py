"""What notebooks show: bars, plots and clocks."""

import subprocess
import sys

import pytest

pytest.importorskip("IPython", reason="needs ipython; pip install -r requirements-notebooks.txt")

from albert_tf.notebook import watching
from albert_tf.notebook.watching import Bar, Clock, LiveLine, TrainingWatch, without_messages_of_processes


class Shown:
    """Stands for what IPython displays: every version of everything, in order."""

    def __init__(self):
        self.versions = []

    def display(self, value, display_id=False):
        self.versions.append([value])
        handle = type("Handle", (), {"update": lambda _, value, mine=self.versions[-1]: mine.append(value)})
        return handle() if display_id else None


@pytest.fixture
def shown(monkeypatch):
    shown = Shown()
    monkeypatch.setattr("IPython.display.display", shown.display)
    return shown


def test_bar_tells_how_much_is_done(shown):
    bar = Bar("reading", 200)
    bar.update(50, "half of half")
    bar.update(200)
    begin, quarter, end = shown.versions[0]
    assert "0/200 (0%)" in repr(begin) and "50/200 (25%)" in repr(quarter) and "half of half" in repr(quarter)
    assert "left" in repr(quarter) and "left" not in repr(end)
    assert "value='0.2500'" in quarter._repr_html_() and "value='1.0000'" in end._repr_html_()


def test_bar_over_values_yields_them_and_ends_full(shown):
    bar = Bar("reading", 10)
    assert list(bar.over(iter("abc"), lambda: 0.5)) == list("abc")
    assert "10/10 (100%)" in repr(shown.versions[0][-1])


def test_bar_shows_titles_as_text(shown):
    Bar("<b>", 1)
    assert "&lt;b&gt;" in shown.versions[0][0]._repr_html_()


def test_live_line_stays_in_its_place(shown, monkeypatch):
    line = LiveLine()
    assert line.is_due
    line.show("1 of 2")
    assert not line.is_due
    line.show("2 of 2")
    line.finish()
    assert [repr(each) for each in shown.versions[0]] == ["1 of 2", "2 of 2"]


def test_clock_adds_up_its_parts(monkeypatch, capsys):
    now = iter([0.0, 5.0, 10.0, 75.0])
    monkeypatch.setattr(watching.time, "monotonic", lambda: next(now))
    clock = Clock()
    with clock("one"):
        pass
    with clock("two"):
        pass
    assert capsys.readouterr().out == "one: 5 s\ntwo: 1:05\n"
    assert repr(clock.table()).splitlines()[1:] == ["one  5 s", "two  1:05", "total  1:10"]


def test_watch_shows_what_a_run_measures_and_what_it_measured_before(shown, tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 4, "split": "train", "loss": 2.0}\n', encoding="utf-8")
    watch = TrainingWatch(str(tmp_path), 8, ("loss",), "training")
    watch(8, "train", {"loss": 1.25})
    bar, plot = shown.versions
    assert "4/8 (50%)" in repr(bar[1]) and "8/8 (100%)" in repr(bar[-1]) and "loss 1.250" in repr(bar[-1])
    assert len(plot) == 2 and all(image.data.startswith(b"\x89PNG") for image in plot)


def test_messages_of_processes_are_left_out_for_a_while(capfd):
    command = [sys.executable, "-c", "import sys; sys.stderr.write('said')"]
    with without_messages_of_processes():
        subprocess.run(command, check=True)
    assert capfd.readouterr().err == ""
    subprocess.run(command, check=True)
    assert capfd.readouterr().err == "said"
