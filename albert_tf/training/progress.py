"""What a run tells while it works: a progress line, TensorBoard scalars, metrics.jsonl and a plot of the loss."""

import json
import os
import sys
import time

import tensorflow as tf

from albert_tf.files import read_text, write_text
from albert_tf.progress_line import ProgressLine, format_seconds

METRICS_FILE = "metrics.jsonl"
PLOT_FILE = "loss.png"


class Progress:
    """Reports to the terminal, to TensorBoard (under `output_dir`/logs) and to metrics.jsonl.

    Args:
        output_dir: The run's folder.
        examples_per_step: Global batch size.
        tokens_per_example: Sequence length.
        title: What the plot is called.
        stream: Where the progress line goes, by default standard output; one line that is rewritten in a terminal,
            plain lines in a log.
    """

    def __init__(self, output_dir, examples_per_step, tokens_per_example, title, stream=None):
        self._output_dir = output_dir
        self._examples_per_step, self._tokens_per_example = examples_per_step, tokens_per_example
        self._title, self._stream = title, stream or sys.stdout
        self._line = ProgressLine(self._stream)
        self._writers = {}
        tf.io.gfile.makedirs(output_dir)
        _drop_half_line(os.path.join(output_dir, METRICS_FILE))

    def start(self, step: int, num_train_steps: int) -> None:
        """Starts the clock at a step."""
        self._num_train_steps = num_train_steps
        self._started_at = self._last_at = time.monotonic()
        self._started_step = self._last_step = step

    def update(self, step: int, averages: dict[str, float]) -> None:
        """Tells the averages of the steps since the last call."""
        now = time.monotonic()
        examples_per_second = (step - self._last_step) * self._examples_per_step / max(now - self._last_at, 1e-9)
        rates = {
            "examples_per_second": examples_per_second,
            "tokens_per_second": examples_per_second * self._tokens_per_example,
        }
        # The first loop compiles the step: the time that is left is judged by what came after it, once there is any.
        remaining = (self._num_train_steps - step) * self._examples_per_step / examples_per_second
        self.record(step, "train", {**averages, **rates})
        shown = " ".join(f"{name} {value:.4g}" for name, value in averages.items() if name != "gradient_norm")
        line = (
            f"step {step:,}/{self._num_train_steps:,} {shown} | {examples_per_second:,.0f} examples/s "
            f"{rates['tokens_per_second']:,.0f} tokens/s ETA {format_seconds(remaining)}"
        )
        self._line.show(line)
        self._last_at, self._last_step = now, step

    def record(self, step: int, split: str, values: dict[str, float]) -> None:
        """Writes values to metrics.jsonl and TensorBoard.

        Args:
            step: The step they belong to.
            split: "train", "held_out", ...
            values: By name.
        """
        with tf.io.gfile.GFile(os.path.join(self._output_dir, METRICS_FILE), "a") as file:
            file.write(json.dumps({"step": step, "split": split, **values}) + "\n")
        if split not in self._writers:
            self._writers[split] = tf.summary.create_file_writer(os.path.join(self._output_dir, "logs", split))
        with self._writers[split].as_default(step=step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        self._writers[split].flush()

    def finish(self) -> None:
        """Ends the progress line and draws the plot."""
        self._line.finish()
        elapsed = time.monotonic() - self._started_at
        steps = self._last_step - self._started_step
        if steps:
            print(f"trained {steps:,} steps in {format_seconds(elapsed)}", file=self._stream)
        plot_losses(self._output_dir, self._title)


def _drop_half_line(path):
    """Removes what a run that was killed while it wrote left behind the last whole line."""
    if tf.io.gfile.exists(path):
        text = read_text(path, "the metrics")
        if not text.endswith("\n"):
            write_text(path, text[: text.rfind("\n") + 1])


def read_metrics(output_dir: str) -> list[dict]:
    """Returns what metrics.jsonl holds; where a resumed run repeated a step, what it wrote last."""
    path = os.path.join(output_dir, METRICS_FILE)
    if not tf.io.gfile.exists(path):
        return []
    with tf.io.gfile.GFile(path) as file:
        rows = [json.loads(line) for line in file if line.endswith("\n")]
    return list({(row["split"], row["step"]): row for row in rows}.values())


def plot_losses(output_dir: str, title: str) -> None:
    """Draws every loss that metrics.jsonl holds over the steps, as loss.png; does nothing without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    rows = read_metrics(output_dir)
    losses = sorted({name for row in rows for name in row if name.endswith("loss")})
    for split, style in (("train", "-"), ("held_out", "o--")):
        for index, name in enumerate(losses):
            points = sorted((row["step"], row[name]) for row in rows if row["split"] == split and name in row)
            if points:
                label = f"{name.replace('_', ' ')} ({split.replace('_', '-')})"
                axes.plot(*zip(*points), style, color=f"C{index}", label=label, markersize=4)
    axes.set(title=title, xlabel="step", ylabel="loss (nats)")
    axes.grid(alpha=0.3)
    if axes.has_data():
        axes.legend(fontsize="small")
    with tf.io.gfile.GFile(os.path.join(output_dir, PLOT_FILE), "wb") as file:
        figure.savefig(file, format="png", dpi=120)
