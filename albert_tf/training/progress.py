"""Reports of a run: a description before it starts, a progress line, TensorBoard scalars, metrics.jsonl and a plot.

Others are told what is measured, too: Weights & Biases, MLflow, or whatever takes numbers by name.
"""

import collections.abc
import json
import math
import os
import pkgutil
import sys
import time

import tensorflow as tf

from albert_tf.base.console import DETAILS, RESULTS, ProgressLine, format_seconds, tell, tells
from albert_tf.base.errors import InputError, describe, first_line
from albert_tf.base.files import read_text, replacing, to_json, write_text
from albert_tf.training.settings import Phase
from albert_tf.training.train_state import TrainState, learnt_variables

# Called with the step, what was measured on ("train" or "held_out"), and values by name. Where it has a method `begin`,
# that is called with the folder of each training before its first values; a method `end`, without arguments, behind the
# last ones.
Tracker = collections.abc.Callable[[int, str, dict[str, float]], None]

# Functions, which can't tell one training from another, by the folder of the training that they were told of first.
_told_of: list[tuple[Tracker, str]] = []


def load_tracker(name: str) -> Tracker:
    """Returns the function that "module:function" names, or an object of the class, also out of the current folder."""
    if not all(name.partition(":")):
        raise InputError(f"`trackers={name}` must be module:function, such as wandb_hook:log")
    sys.path.insert(0, os.getcwd())
    try:
        function = pkgutil.resolve_name(name)
        function = function() if isinstance(function, type) else function
    except Exception as error:  # whatever the module does when it is imported
        raise InputError(f"`trackers={name}`: can't import it ({first_line(error)})") from error
    finally:
        sys.path.remove(os.getcwd())
    if not callable(function):
        raise InputError(f"`trackers={name}` is not a function")
    return function


class Trackers:
    """Several trackers, called one after the other; one that fails is left out from then on, for training goes on."""

    def __init__(self, functions: collections.abc.Iterable[Tracker], log: collections.abc.Callable[[str], None]):
        functions = [functions] if callable(functions) else list(functions)
        for function in functions:
            if not callable(function):
                raise InputError(f"`trackers` must be functions. Received: {describe(function)}")
        self._functions, self._log = functions, log

    def begin(self, output_dir: str) -> None:
        """Tells each of them that the training in a folder begins."""
        for function in list(self._functions):
            if hasattr(function, "begin"):
                self._call(function, function.begin, "as training began", output_dir)
                continue
            before = next((folder for known, folder in _told_of if known is function), None)
            if before is None:
                _told_of.append((function, output_dir))
            elif before != output_dir:
                self._log(
                    f"warning: the tracker {_name(function)} is told of {output_dir} after {before}, and can't tell "
                    "the two apart; give an object that has the methods begin(output_dir) and end()"
                )

    def __call__(self, step: int, split: str, values: dict[str, float]) -> None:
        for function in list(self._functions):
            self._call(function, function, f"at step {step:,}", step, split, dict(values))

    def end(self) -> None:
        """Tells each of them that the training that began last has ended, or was stopped."""
        for function in list(self._functions):
            if hasattr(function, "end"):
                self._call(function, function.end, "as training ended")

    def _call(self, function, method, when, *what):
        try:
            method(*what)
        except Exception as error:  # a service may be out of reach
            self._functions.remove(function)
            self._log(f"warning: the tracker {_name(function)} failed {when}, and is left out: {first_line(error)}")


def _name(function):
    return getattr(function, "__name__", type(function).__name__)


PLOT_FILE = "loss.png"
# What is measured of the training and is no score.
_NO_SCORES = ("learning_rate", "gradient_norm", "examples_per_second", "tokens_per_second", "model_flop_utilisation")
_STYLES = {"train": "-", "held_out": "--"}


def plot_losses(output_dir: str, title: str, rows: list[dict]) -> str:
    """Draws losses over the steps, and beside them scores, as loss.png; returns a line if it can't, or "".

    Scores that are no shares, such as bits of a character, have a panel of their own. Scores that equal a loss, as the
    only part of a sum does, and panels without two points are left out.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return f"no {PLOT_FILE} or other pictures: they need matplotlib, which is not installed; pip install matplotlib"
    curves = _curves(rows)
    losses = _without_repeated({name: curves[name] for name in curves if name[0].endswith("loss")})
    measured = {name for row in rows if row["split"] == "held_out" for name in row if not name.endswith("loss")}
    scores = {name: curves[name] for name in curves if name[0] in measured.difference(_NO_SCORES)}
    scores = {name: points for name, points in scores.items() if points not in losses.values()}
    large = {name for (name, _), points in scores.items() if any(abs(value) > 1 for _, value in points)}
    shares = {name: scores[name] for name in scores if name[0] not in large}
    others = {name: scores[name] for name in scores if name[0] in large}
    panels = [(losses, title, "loss (nats)"), (shares, "scores", ""), (others, "other scores", "")]
    panels = [panel for panel in panels if any(len(points) > 1 for points in panel[0].values())]
    if not panels:
        return ""
    figure = Figure(figsize=(8 if len(panels) == 1 else 6 * len(panels), 5), layout="constrained")
    for axes, (drawn, name, unit) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        _draw(axes, drawn)
        axes.set(title=name, xlabel="step", ylabel=unit)
    with replacing(os.path.join(output_dir, PLOT_FILE)) as file:
        figure.savefig(file, format="png", dpi=120)
    return ""


def _curves(rows):
    """Returns the points of each curve, (step, value), by (name, split), the losses' sum first."""
    names = sorted({name for row in rows for name in row}, key=lambda name: (name != "loss", name))
    curves = {}
    for split in _STYLES:
        for name in names:
            points = sorted((row["step"], row[name]) for row in rows if row["split"] == split and name in row)
            if points and name not in ("step", "split"):
                curves[name, split] = points
    return curves


def _without_repeated(curves):
    kept = {}
    for (name, split), points in curves.items():
        if points not in [other for (_, of), other in kept.items() if of == split]:
            kept[name, split] = points
    return kept


def _draw(axes, curves):
    names = list(dict.fromkeys(name for name, _ in curves))
    for (name, split), points in curves.items():
        marker = "o" if split == "held_out" or len(points) == 1 else ""
        label = f"{name.replace('_', ' ')} ({split.replace('_', '-')})"
        axes.plot(
            *zip(*points), _STYLES[split], marker=marker, color=f"C{names.index(name)}", label=label, markersize=4
        )
    axes.grid(alpha=0.3)
    # Below, where no curve is.
    axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)


METRICS_FILE = "metrics.jsonl"
# After so many passes over its examples a model knows them by heart, whatever they are.
_MANY_PASSES = 100


class Progress:
    """Reports to the terminal, to TensorBoard (under `output_dir`/logs) and to metrics.jsonl, on the chief alone.

    The progress line is rewritten in a terminal, and plain lines in a log; `on_metrics` shows the metrics in its place.
    The peak is of all replicas together, to report the share that is used; None to leave it out.
    """

    def __init__(
        self, output_dir, title, stream=None, peak_flops_per_second=None, is_chief=True, on_metrics=None, trackers=()
    ):
        self.output_dir = output_dir
        self._on_metrics, self._trackers = on_metrics, Trackers(trackers, self.log)
        self._title, self._stream = title, stream or sys.stdout
        self._peak, self._is_chief = peak_flops_per_second, is_chief
        self._line = ProgressLine(self._stream)
        self._writers = {}

    def start(self, step: int, num_train_steps: int) -> None:
        """Starts the clock at a step, and forgets later reports, of a run that was killed or had other settings."""
        self._num_train_steps = num_train_steps
        self.restart_clock(step)
        self._started_at, self._started_step = self._last_at, step
        if self._is_chief:
            tf.io.gfile.makedirs(self.output_dir)
            _forget_later_rows(os.path.join(self.output_dir, METRICS_FILE), step)
            self._trackers.begin(self.output_dir)

    def begin_phase(self, examples: int, tokens: int, flops: int = 0) -> None:
        """Sets what each step takes from now on, over all replicas: examples, pieces, and operations if known."""
        self._examples, self._tokens, self._flops = examples, tokens, flops

    def restart_clock(self, step: int) -> None:
        """Leaves what came before this step, such as compilation or evaluation, out of the next rate."""
        self._last_at, self._last_step = time.monotonic(), step

    def update(self, step: int, averages: dict[str, float]) -> None:
        """Tells the averages of the steps since the last call."""
        now = time.monotonic()
        steps_per_second = (step - self._last_step) / max(now - self._last_at, 1e-9)
        rates = {
            "examples_per_second": steps_per_second * self._examples,
            "tokens_per_second": steps_per_second * self._tokens,
        }
        utilisation = ""
        if self._peak and self._flops:
            rates["model_flop_utilisation"] = steps_per_second * self._flops / self._peak
            utilisation = f" {rates['model_flop_utilisation']:.1%} of peak"
        remaining = (self._num_train_steps - step) / steps_per_second
        self.record(step, "train", {**averages, **rates})
        shown = " ".join(
            f"{name} {value:.4g}"
            for name, value in _without_second_name(averages).items()
            if name != "gradient_norm" and not name.startswith("trust_ratio/")
        )
        if self._is_chief and self._on_metrics is None and (tells(DETAILS) or self._line.is_due):
            self._line.show(
                f"step {step:,}/{self._num_train_steps:,} {shown} | {rates['examples_per_second']:,.0f} examples/s "
                f"{rates['tokens_per_second']:,.0f} tokens/s{utilisation} ETA {format_seconds(remaining)}"
            )
        self._last_at, self._last_step = now, step

    def tell_pace(self, step: int) -> None:
        """Tells how long training will take, by the few steps since the clock was restarted."""
        seconds = (time.monotonic() - self._last_at) / max(step - self._last_step, 1)
        left = self._num_train_steps - step
        if self._on_metrics is None:
            self.log(f"{seconds:.2g} s a step: {left:,} steps more in about {format_seconds(seconds * left)}", RESULTS)

    def show(self, line: str) -> None:
        """Shows what is done that takes long, in place of the progress."""
        if self._is_chief and self._on_metrics is None and tells(DETAILS):
            self._line.show(line)

    def log(self, line: str, level: int = DETAILS) -> None:
        """Tells a line of its own."""
        if self._is_chief:
            tell(line, level, self._stream)

    def tell_held_out(self, step: int, results: dict[str, float]) -> None:
        """Prints a line that tells what held-out data gave, where there are progress lines."""
        if self._on_metrics is None:
            found = " ".join(f"{name} {value:.4f}" for name, value in _without_second_name(results).items())
            self.log(f"held-out at step {step:,}: {found}")

    def record(self, step: int, split: str, values: dict[str, float]) -> None:
        """Writes values to metrics.jsonl and TensorBoard, and tells them to trackers."""
        if not self._is_chief:
            return
        tf.io.gfile.makedirs(self.output_dir)
        # JSON has no NaN: what is not a number is left out.
        row = {"step": step, "split": split, **{name: value for name, value in values.items() if math.isfinite(value)}}
        with tf.io.gfile.GFile(os.path.join(self.output_dir, METRICS_FILE), "a") as file:
            file.write(to_json(row) + "\n")
        if split not in self._writers:
            self._writers[split] = tf.summary.create_file_writer(os.path.join(self.output_dir, "logs", split))
        with self._writers[split].as_default(step=step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        self._writers[split].flush()
        if self._on_metrics is not None:
            self._on_metrics(step, split, values)
        self._trackers(step, split, values)

    def finish(self, step: int) -> None:
        """Ends the progress line at the last step that was trained, and draws the plot."""
        if not self._is_chief:
            return
        self._line.finish()
        elapsed = time.monotonic() - self._started_at
        steps = step - self._started_step
        if steps > 0:
            tell(f"trained {steps:,} steps in {format_seconds(elapsed)}", stream=self._stream)
        lacking = plot_losses(self.output_dir, self._title, read_metrics(self.output_dir))
        if lacking:
            tell(lacking, stream=self._stream)
        self._trackers.end()


def _without_second_name(values):
    """Returns values by name, the loss once where it is all of one thing that is learnt."""
    of_parts = [name for name in values if name.endswith("_loss")]
    is_whole = (
        len(of_parts) == 1 and "loss" in values and math.isclose(values["loss"], values[of_parts[0]], rel_tol=1e-5)
    )
    return {name: value for name, value in values.items() if not is_whole or name != of_parts[0]}


def _forget_later_rows(path, step):
    """Leaves the rows that a run had written when it had saved at a step; the rest, also half a row, comes again."""
    if not tf.io.gfile.exists(path):
        return
    text = read_text(path, "the metrics")
    kept = []
    for line in text.splitlines(keepends=True):
        row = _row_of(line)
        if step and row and row["step"] <= step:
            kept.append(line)
    if "".join(kept) != text:
        write_text(path, "".join(kept))


def _row_of(line):
    """Returns the row that a line holds; None for half a row, which a full disk may leave, also before another."""
    try:
        row = json.loads(line) if line.endswith("\n") else None
        split, *values = row.pop("split"), *row.values()
        is_ours = isinstance(split, str) and type(row["step"]) is int and all(map(math.isfinite, values))
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError):
        return None
    return {**row, "split": split} if is_ours else None


def read_metrics(output_dir: str) -> list[dict]:
    """Returns the rows of metrics.jsonl, one for each split and step.

    Of several rows of one step each value is the last of its name: earlier versions wrote a second one without scores.
    """
    path = os.path.join(output_dir, METRICS_FILE)
    if not tf.io.gfile.exists(path):
        return []
    with tf.io.gfile.GFile(path) as file:
        rows = list(filter(None, map(_row_of, file)))
    merged = {}
    for row in rows:
        merged.setdefault((row["split"], row["step"]), {}).update(row)
    return list(merged.values())


def describe_run(state: TrainState, phases: list[Phase]) -> str:
    """Returns lines about the size of the model, and the batches, steps and epochs, in a resumed run those left."""
    named = state.named_variables()
    sizes = {name: math.prod(variable.shape) for name, variable in named.items()}
    learnt = learnt_variables(state.objective, state.models)
    parameters = sum(math.prod(variable.shape) for variable in learnt.values())
    trained = sum(math.prod(variable.shape) for variable in state.optimizer.trained_variables.values())
    num_bytes = sum(sizes[name] * variable.dtype.size for name, variable in named.items())
    frozen = "" if trained == parameters else f", of which {trained:,} are trained"
    replicas = state.strategy.num_replicas_in_sync
    done = int(state.global_step.numpy())
    where = f" on each of {replicas} replicas" if replicas > 1 else ""
    lines = [f"model: {parameters:,} parameters{frozen}; with the optimizer {num_bytes / 1e6:,.1f} MB{where}"]
    last_step = phases[-1].end_step
    if done >= last_step:
        return "\n".join([*lines, f"already trained to step {done:,} of {last_step:,}; nothing to train"])
    begin, going_on = done, f"continuing from step {done:,}: " if done else ""
    for phase in phases:
        if phase.end_step <= begin:
            continue
        batch, steps, examples = phase.examples, phase.end_step - begin, phase.num_examples
        parts = phase.gradient_accumulation_steps
        shares = f" = {replicas} x {batch // replicas:,}" if replicas > 1 else ""
        micro = "" if parts == 1 else f" in {parts} parts of {batch // replicas // parts:,}"
        pieces = f", sequences of {phase.sequence_length:,} pieces" if phase.sequence_length else ""
        epochs = "" if not examples else f", {steps * batch / examples:,.2f} epochs over {examples:,} examples"
        lines.append(f"{going_on}steps {begin:,} to {phase.end_step:,}: batch {batch:,}{shares}{micro}{pieces}{epochs}")
        if examples and (passes := steps * batch / examples) > _MANY_PASSES:
            lines.append(
                f"warning: {passes:,.0f} passes over {examples:,} examples, which the model will know by heart; train "
                "for fewer steps, or on more data"
            )
        begin, going_on = phase.end_step, ""
    return "\n".join(lines)
