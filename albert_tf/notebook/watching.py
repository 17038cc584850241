"""What a notebook shows while something takes its time: bars, a plot that grows, and how long each part took."""

import collections.abc
import contextlib
import html
import io
import os
import time
import typing

from albert_tf.notebook.tables import Html, Table
from albert_tf.progress_line import format_seconds
from albert_tf.training.progress import read_metrics

_SECONDS_BETWEEN_PLOTS, _SECONDS_BETWEEN_LINES = 2.0, 0.5


class Bar:
    """A bar of progress that stays readable in a saved notebook, which bars of ipywidgets do not.

    Args:
        title: What is under way.
        total: How much there is to do.
    """

    def __init__(self, title: str, total: float):
        from IPython.display import display

        self._title, self._total, self._started_at = title, total, time.monotonic()
        self._handle = display(self._shown(0, ""), display_id=True)

    def update(self, done: float, note: str = "") -> None:
        """Shows how much is done, and a note."""
        if self._handle is not None:  # outside of a notebook there is none
            self._handle.update(self._shown(done, note))

    def over(
        self, values: collections.abc.Iterable, share_done: collections.abc.Callable[[], float]
    ) -> typing.Iterator:
        """Yields values, and shows how far they are.

        Args:
            values: What is gone through.
            share_done: Returns which share of it is done.
        """
        last_at = time.monotonic()
        for value in values:
            if time.monotonic() - last_at >= _SECONDS_BETWEEN_LINES:
                self.update(share_done() * self._total)
                last_at = time.monotonic()
            yield value
        self.update(self._total)

    def _shown(self, done, note):
        share = min(1.0, done / self._total) if self._total else 1.0
        seconds = time.monotonic() - self._started_at
        left = f", {format_seconds(seconds / share - seconds)} left" if 0 < share < 1 else ""
        facts = f"{done:,.0f}/{self._total:,.0f} ({share:.0%}), {format_seconds(seconds)}{left} {note}".strip()
        bar = f"<progress value='{share:.4f}' max='1' style='width:18em'></progress>"
        return Html(f"<div>{bar} {html.escape(self._title)} {html.escape(facts)}</div>", f"{self._title} {facts}")


class LiveLine:
    """A line of progress that is shown anew in its place, where the library asks for a `ProgressLine`."""

    def __init__(self):
        self._handle, self._last_at = None, 0.0

    @property
    def is_due(self) -> bool:
        """Whether the last line is old enough for another one."""
        return time.monotonic() - self._last_at >= _SECONDS_BETWEEN_LINES

    def show(self, line: str) -> None:
        """Shows a line in place of the one before."""
        from IPython.display import display

        shown = Html(f"<div>{html.escape(line)}</div>", line)
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)
        self._last_at = time.monotonic()

    def finish(self) -> None:
        """Leaves the last line where it is."""


class TrainingWatch:
    """Shows a run while it trains, as `on_metrics` of `TrainingRun`: a bar, and plots of what it measures.

    Args:
        output_dir: The run's folder; what an earlier process measured there is shown too.
        num_train_steps: Steps of the whole run.
        panels: Names of metrics, a plot for each.
        title: What is under way.
    """

    def __init__(
        self,
        output_dir: str,
        num_train_steps: int,
        panels: collections.abc.Sequence[str] = ("loss",),
        title: str = "training",
    ):
        from IPython.display import display

        self._output_dir, self._num_train_steps, self._panels = str(output_dir), num_train_steps, panels
        self._bar = Bar(title, num_train_steps)
        self._handle = display(self._plot(), display_id=True)
        self._plotted_at = time.monotonic()
        step = max((row["step"] for row in read_metrics(self._output_dir)), default=0)
        self._bar.update(step)

    def __call__(self, step: int, split: str, values: dict[str, float]) -> None:
        """Shows what was measured; see `TrainingRun`."""
        if split == "train":
            self._bar.update(step, f"loss {values['loss']:.3f}" if "loss" in values else "")
        is_last = step == self._num_train_steps
        if self._handle is not None and (is_last or time.monotonic() - self._plotted_at > _SECONDS_BETWEEN_PLOTS):
            self._handle.update(self._plot())
            self._plotted_at = time.monotonic()

    def _plot(self):
        from IPython.display import Image
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.2 * len(self._panels), 2.9), layout="constrained")
        rows = read_metrics(self._output_dir)
        for axes, name in zip(figure.subplots(1, len(self._panels), squeeze=False)[0], self._panels):
            for split, style in (("train", "-"), ("held_out", "o--")):
                points = sorted((row["step"], row[name]) for row in rows if row["split"] == split and name in row)
                if points:
                    axes.plot(*zip(*points), style, label=split.replace("_", "-"), markersize=4)
            axes.set(title=name.replace("_", " "), xlabel="step", xlim=(0, 1.03 * self._num_train_steps))
            axes.grid(alpha=0.3)
            if axes.has_data():
                axes.legend(fontsize="small")
        return Image(png_of(figure))


def png_of(figure, dpi: int = 80) -> bytes:
    """Returns a matplotlib figure as a PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dpi)
    return file.getvalue()


class Clock:
    """Says how long each part of a notebook takes.

    ```python
    clock = Clock()
    with clock("vocabulary"):
        ...
    clock.table()
    ```
    """

    def __init__(self):
        self._seconds = {}

    @contextlib.contextmanager
    def __call__(self, part: str):
        """Measures what is done inside of it, and prints that in the end."""
        started_at = time.monotonic()
        yield
        self._seconds[part] = time.monotonic() - started_at
        print(f"{part}: {format_seconds(self._seconds[part])}", flush=True)

    def table(self) -> Table:
        """Returns all parts with their times, and their sum."""
        rows = [(part, format_seconds(seconds)) for part, seconds in self._seconds.items()]
        return Table(("", "time"), [*rows, ("total", format_seconds(sum(self._seconds.values())))])


@contextlib.contextmanager
def without_messages_of_processes():
    """Leaves out what processes that are started inside of it, which import TensorFlow, write to standard error."""
    standard_error, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(standard_error, 2)
        os.close(standard_error)
        os.close(nowhere)
