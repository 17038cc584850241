"""Words and pictures of a run: its beginning, the progress line, metrics.jsonl, TensorBoard's files and the plot."""

import io
import json
import re
import sys
import types

import pytest
import tensorflow as tf
from linear_training import start_linear
from tiny_training import TinyRun

from albert_tf.base.console import format_seconds
from albert_tf.modeling.layers import named_variables
from albert_tf.optimization import AdamW, LearningRateSchedule
from albert_tf.training.progress import Progress, describe_run, plot_losses, read_metrics
from albert_tf.training.settings import Phase
from albert_tf.training.train_state import TrainState


def phase(end_step, examples=64, length=128, parts=1, num_examples=None):
    spec = {"input_ids": tf.TensorSpec([examples, length], tf.int32)}
    return Phase(end_step, spec, None, gradient_accumulation_steps=parts, num_examples=num_examples)


def test_run_is_described_by_its_sizes():
    run = TinyRun.start(num_replicas=2)
    parameters = sum(values.size for values in run.weights().values())
    num_bytes = 4 * 3 * parameters + 4 * 2 * 18 + 3 * 8  # weights and moments; sums of metrics; counters
    assert describe_run(run.state, [phase(1000, num_examples=6400)]).splitlines() == [
        f"model: {parameters:,} parameters; with the optimizer {num_bytes / 1e6:,.1f} MB on each of 2 replicas",
        "steps 0 to 1,000: batch 64 = 2 x 32, sequences of 128 pieces, 10.00 epochs over 6,400 examples",
    ]
    assert len(run.state.metric_sums.names) == 18


def test_each_phase_has_its_line():
    run = start_linear(num_replicas=2)
    phases = [phase(9000, 4096, 128), phase(10000, 1024, 512, parts=4, num_examples=2048)]
    assert describe_run(run.state, phases).splitlines()[1:] == [
        "steps 0 to 9,000: batch 4,096 = 2 x 2,048, sequences of 128 pieces",
        "steps 9,000 to 10,000: batch 1,024 = 2 x 512 in 4 parts of 128, sequences of 512 pieces, "
        "500.00 epochs over 2,048 examples",
        "warning: 500 passes over 2,048 examples, which the model will know by heart; train for fewer steps, or on "
        "more data",
    ]


def test_resumed_run_tells_what_is_left():
    run = start_linear()
    phases = [phase(1000, num_examples=6400), phase(2000, length=512)]
    second = "steps 1,000 to 2,000: batch 64, sequences of 512 pieces"
    first = "steps 400 to 1,000: batch 64, sequences of 128 pieces, 6.00 epochs over 6,400 examples"
    for step, expected in (
        (400, [f"continuing from step 400: {first}", second]),
        (1000, [f"continuing from step 1,000: {second}"]),
        (2000, ["already trained to step 2,000 of 2,000; nothing to train"]),
    ):
        run.global_step.assign(step)
        assert describe_run(run.state, phases).splitlines()[1:] == expected


def test_frozen_variables_are_told():
    run = start_linear()
    optimizer = AdamW({"bias": named_variables(run.model)["bias"]}, LearningRateSchedule(0.1, 10))
    state = TrainState.create(run.strategy, run.state.objective, {"model": run.model}, optimizer)
    assert describe_run(state, [phase(10)]).startswith("model: 4 parameters, of which 1 are trained; with ")


def test_averages_take_memory_too():
    sizes = [float(describe_run(TinyRun.start(ema_decay=decay).state, [phase(10)]).split()[6]) for decay in (0.0, 0.9)]
    assert sizes[1] > sizes[0]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def report(folder, steps=(2, 4), start=0, num_train_steps=4, stream=None, flops=0, **options):
    """Reports made-up averages and returns what was printed."""
    stream = stream or io.StringIO()
    progress = Progress(str(folder), "a loss", stream, **options)
    progress.start(start, num_train_steps)
    progress.begin_phase(examples=8, tokens=8 * 16, flops=flops)
    for step in steps:
        progress.update(step, {"loss": 10.0 / step, "gradient_norm": 0.5, "learning_rate": 0.001})
    progress.record(num_train_steps, "held_out", {"loss": 3.25})
    progress.finish(max(steps))
    return stream.getvalue()


def begun(folder, stream, num_train_steps=9, **options):
    """Returns progress that has begun its only phase."""
    progress = Progress(str(folder), "", stream, **options)
    progress.start(0, num_train_steps)
    progress.begin_phase(examples=8, tokens=16)
    return progress


@pytest.fixture
def clock(monkeypatch):
    """Lets each look at the clock find the next of these times."""

    def set_times(*times):
        monotonic = iter(times).__next__
        monkeypatch.setattr("albert_tf.training.progress.time", types.SimpleNamespace(monotonic=monotonic))

    return set_times


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_log_has_a_line_and_the_file_a_row_for_each_update(tmp_path):
    first, second, last = report(tmp_path).splitlines()
    line = r"step {}/4 loss {} learning_rate 0\.001 \| [\d,]+ examples/s [\d,]+ tokens/s ETA \d+ s"
    assert re.fullmatch(line.format(2, 5), first)
    assert re.fullmatch(line.format(4, r"2\.5"), second)
    assert re.fullmatch(r"trained 4 steps in \d+ s", last)
    first, second, held_out = rows(tmp_path)
    assert [(row["step"], row["split"], row["loss"]) for row in (first, second)] == [(2, "train", 5), (4, "train", 2.5)]
    assert held_out == {"step": 4, "split": "held_out", "loss": 3.25}
    assert first["gradient_norm"] == 0.5
    assert first["tokens_per_second"] == pytest.approx(16 * first["examples_per_second"])


def test_terminal_has_one_line_that_is_rewritten(tmp_path):
    printed = report(tmp_path, stream=Terminal())
    assert printed.count("\r\033[Kstep ") == 2
    assert printed.count("\n") == 2  # after the last rewriting, and after "trained ..."


def test_rate_and_time_left_are_of_the_steps_since_the_last_report(tmp_path, clock):
    clock(100.0, 102.0, 107.0, 107.0)
    printed = report(tmp_path, steps=(12, 14), start=10, num_train_steps=20).splitlines()
    # 2 steps of 8 examples in 2 s, then in 5 s; 8 and then 6 steps are left.
    assert [row["examples_per_second"] for row in rows(tmp_path)[:2]] == pytest.approx([8.0, 3.2])
    assert printed[0].endswith("8 examples/s 128 tokens/s ETA 8 s")
    assert printed[1].endswith("3 examples/s 51 tokens/s ETA 15 s")
    assert printed[2] == "trained 4 steps in 7 s"


def test_what_the_clock_is_restarted_after_is_left_out_of_the_rate(tmp_path, clock):
    clock(100.0, 150.0, 152.0, 160.0)
    progress = begun(tmp_path, stream := io.StringIO())
    progress.restart_clock(1)  # compilation took 50 s, and a step
    progress.update(5, {"loss": 1.0})
    progress.finish(5)
    assert rows(tmp_path)[0]["examples_per_second"] == pytest.approx(4 * 8 / 2)
    assert stream.getvalue().endswith("trained 5 steps in 1:00\n"), "the whole time"


def test_a_few_steps_tell_how_long_the_rest_takes(tmp_path, clock):
    clock(100.0, 150.0, 152.0)
    progress = begun(tmp_path, stream := io.StringIO(), 9000)
    progress.restart_clock(6)
    progress.tell_pace(16)
    assert stream.getvalue() == "0.2 s a step: 8,984 steps more in about 29:57\n"


def test_share_of_the_peak_is_reported_where_both_are_known(tmp_path, clock):
    clock(100.0, 102.0, 107.0, 107.0)
    printed = report(tmp_path / "known", flops=5e9, peak_flops_per_second=20e9).splitlines()
    # 2 steps of 5e9 operations in 2 s, then in 5 s.
    found = [row["model_flop_utilisation"] for row in rows(tmp_path / "known") if row["split"] == "train"]
    assert found == pytest.approx([0.25, 0.1])
    assert " tokens/s 25.0% of peak ETA " in printed[0] and " tokens/s 10.0% of peak ETA " in printed[1]


@pytest.mark.parametrize("known", [{"flops": 5e9}, {"peak_flops_per_second": 20e9}])
def test_share_of_an_unknown_peak_or_model_is_left_out(tmp_path, known):
    assert "of peak" not in report(tmp_path, **known)
    assert not any("model_flop_utilisation" in row for row in rows(tmp_path))


def test_trust_ratios_are_in_the_file_and_not_in_the_line(tmp_path):
    progress = begun(tmp_path, stream := io.StringIO())
    progress.update(2, {"loss": 1.0, "trust_ratio/kernel": 3.0, "gradient_norm": 2.0})
    assert "step 2/9 loss 1 | " in stream.getvalue()
    assert rows(tmp_path)[0]["trust_ratio/kernel"] == 3.0


def test_one_of_several_processes_alone_reports(tmp_path):
    assert report(tmp_path / "run", is_chief=False) == ""
    assert not list(tmp_path.iterdir())


def test_line_of_its_own_does_not_break_the_progress_line(tmp_path):
    progress = begun(tmp_path, stream := Terminal())
    progress.update(2, {"loss": 1.0})
    progress.log("warning: something")
    assert stream.getvalue().endswith("\nwarning: something\n")


def test_tensorboard_files_hold_the_same_values(tmp_path):
    report(tmp_path)
    found = {}
    for path in (tmp_path / "logs").glob("*/events.out.tfevents.*"):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found[path.parent.name, event.step, value.tag] = float(tf.make_ndarray(value.tensor))
    expected = {
        (row["split"], row["step"], name): value
        for row in rows(tmp_path)
        for name, value in row.items()
        if name not in ("step", "split")
    }
    assert found == pytest.approx(expected)


def test_resumed_run_replaces_the_steps_it_repeats(tmp_path):
    report(tmp_path, steps=(2, 4), num_train_steps=8)
    report(tmp_path, steps=(3, 4, 8), start=2, num_train_steps=8)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 9, "split": "tr')  # a run that was killed while it wrote
    assert [row["step"] for row in read_metrics(str(tmp_path)) if row["split"] == "train"] == [2, 3, 4, 8]
    report(tmp_path, steps=(10,), start=8, num_train_steps=10)
    assert [row["step"] for row in rows(tmp_path) if row["split"] == "train"] == [2, 3, 4, 8, 10]


def test_half_a_row_before_another_is_left_out(tmp_path):
    report(tmp_path)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "split": "tr')
    Progress(str(tmp_path), "", io.StringIO()).record(4, "held_out", {"loss": 2.0})  # as evaluation alone does
    expected = [("train", 2), ("train", 4), ("held_out", 4)]
    assert [(row["split"], row["step"]) for row in read_metrics(str(tmp_path))] == expected
    report(tmp_path, steps=(6,), start=4, num_train_steps=6)
    assert [(row["split"], row["step"]) for row in rows(tmp_path)] == [*expected, ("train", 6), ("held_out", 6)]


def test_start_that_forgets_nothing_leaves_the_file_alone(tmp_path):
    report(tmp_path)
    before = (tmp_path / "metrics.jsonl").stat()
    Progress(str(tmp_path), "", io.StringIO()).start(4, 4)
    assert (tmp_path / "metrics.jsonl").stat() == before


@pytest.fixture
def figures(monkeypatch):
    """The drawing: for each figure, for each panel, the points of each line by its label."""
    from matplotlib.figure import Figure

    drawn = []

    def lines_of(axes):
        return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines}

    monkeypatch.setattr(
        Figure,
        "savefig",
        lambda figure, *_, **__: drawn.append({axes.get_title(): lines_of(axes) for axes in figure.axes}),
    )
    return drawn


def test_plot_draws_train_and_held_out_losses(tmp_path, figures):
    report(tmp_path)
    assert figures == [{"a loss": {"loss (train)": ([2, 4], [5.0, 2.5]), "loss (held-out)": ([4], [3.25])}}]


def test_plot_leaves_out_what_is_there_already_and_draws_scores_beside(tmp_path, figures):
    values = {"loss": 3.0, "a_loss": 3.0, "accuracy": 0.5, "bits_per_character": 4.0, "learning_rate": 0.1}
    rows = [{"step": step, "split": split, **values} for step in (1, 2) for split in ("train", "held_out")]
    plot_losses(str(tmp_path), "a loss", rows)
    assert list(figures[0])[:2] == ["a loss", "scores"]
    names = ("loss", "accuracy", "bits per character")
    drawn = [[f"{name} ({split})" for split in ("train", "held-out")] for name in names]
    assert [list(lines) for lines in figures[0].values()] == drawn, "what is no share has a panel of its own"
    figures.clear()
    plot_losses(str(tmp_path), "two losses", [{**row, "b_loss": 1.0, "a_loss": 2.0} for row in rows])
    names = [f"{name} ({split})" for split in ("train", "held-out") for name in ("loss", "a loss", "b loss")]
    assert list(figures[0]["two losses"]) == names


def test_nothing_is_drawn_of_single_points(tmp_path, figures):
    rows = [{"step": 2, "split": split, "loss": 3.0, "accuracy": 0.5} for split in ("train", "held_out")]
    plot_losses(str(tmp_path), "a loss", rows)
    assert figures == [] and not list(tmp_path.iterdir())


def test_plot_without_matplotlib_or_metrics_is_no_error(tmp_path, monkeypatch):
    assert plot_losses(str(tmp_path), "nothing yet", []) == ""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    output = report(tmp_path / "run")
    assert not (tmp_path / "run" / "loss.png").exists()
    assert output.splitlines()[-1] == (
        "no loss.png or other pictures: they need matplotlib, which is not installed; pip install matplotlib"
    )


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, "0 s"), (59.4, "59 s"), (59.6, "1:00"), (3599.7, "1:00:00"), (360000, "100:00:00")]
)
def test_times_are_written_for_people(seconds, expected):
    assert format_seconds(seconds) == expected


def test_metrics_go_to_whoever_shows_them_in_place_of_lines(tmp_path):
    shown = []
    printed = report(tmp_path, on_metrics=lambda *metrics: shown.append(metrics))
    assert [(step, split, values["loss"]) for step, split, values in shown] == [
        (2, "train", 5.0),
        (4, "train", 2.5),
        (4, "held_out", 3.25),
    ]
    assert re.fullmatch(r"trained 4 steps in \d+ s\n", printed)
    assert [row["step"] for row in rows(tmp_path)] == [2, 4, 4]  # the file is written as without


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({"accuracy": 0.5, "loss": 2.0, "tag_loss": 2.0}, "accuracy 0.5000 loss 2.0000"),
        ({"loss": 2.0, "tag_loss": 1.0}, "loss 2.0000 tag_loss 1.0000"),
        ({"loss": 2.0, "tag_loss": 2.0, "b_loss": 0.0}, "loss 2.0000 tag_loss 2.0000 b_loss 0.0000"),
    ],
)
def test_held_out_loss_is_told_under_one_name_with_the_other_lines_alone(tmp_path, values, shown):
    for on_metrics, expected in ((None, f"held-out at step 4: {shown}\n"), (lambda *_: None, "")):
        stream = io.StringIO()
        Progress(str(tmp_path), "a loss", stream, on_metrics=on_metrics).tell_held_out(4, values)
        assert stream.getvalue() == expected
