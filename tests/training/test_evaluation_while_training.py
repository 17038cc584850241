"""Evaluation while training goes on: when, what becomes of the best checkpoint, and what a resumed run makes of it."""

import dataclasses
import json

import pytest
from linear_training import StopAt, make_linear_examples, start_linear
from tiny_training import loop_settings

from albert_tf.base.checkpoint_files import find_checkpoints
from albert_tf.training.progress import read_metrics

pytestmark = pytest.mark.slow

BATCH_SIZE, NUM_TRAIN_STEPS = 4, 12
EXAMPLES = make_linear_examples(5 * BATCH_SIZE)
HELD_OUT = make_linear_examples(2 * BATCH_SIZE, seed=1)
# What is learnt makes these worse from the first step on.
CONTRARY = {**HELD_OUT, "targets": -HELD_OUT["targets"]}
OPTIONS = loop_settings(iterations_per_loop=3, save_checkpoints_steps=4, eval_every_steps=4)


def train(folder, run=None, options=OPTIONS, num_train_steps=NUM_TRAIN_STEPS, **more):
    """Trains, with evaluation, and returns the run and how it ended."""
    run = run or start_linear()
    more = {"held_out": HELD_OUT, **more}
    return run, run.train(folder, EXAMPLES, BATCH_SIZE, num_train_steps, options, **more)


def rows_of(folder, *splits):
    """Returns the rows of metrics.jsonl as they stand there, without what a clock tells."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [
        {name: value for name, value in row.items() if not name.endswith("_per_second")}
        for row in rows
        if row["split"] in (splits or ("train", "held_out"))
    ]


def evaluated_steps(folder):
    return [row["step"] for row in rows_of(folder, "held_out")]


def best(folder):
    return json.loads((folder / "best_checkpoint.json").read_text())


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The folder of a run."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    train(folder)
    return folder


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"eval_every_steps": 5}, [5, 8]),
        ({"eval_every_steps": None}, [8]),
        ({"eval_every_steps": 100, "evaluates_first": True}, [0, 8]),
    ],
)
def test_evaluation_comes_at_its_steps_and_at_the_end(tmp_path, options, expected):
    options = loop_settings(iterations_per_loop=100, save_checkpoints_steps=100, **options)
    run, result = train(tmp_path, options=options, num_train_steps=8)
    assert evaluated_steps(tmp_path) == expected
    # Each goes with a checkpoint, so that the best can be kept.
    saved = [int(path.rsplit("-", 1)[1]) for path in find_checkpoints(str(tmp_path))]
    assert saved == [step for step in expected if step]
    assert result.held_out == {
        name: value for name, value in rows_of(tmp_path, "held_out")[-1].items() if name not in ("step", "split")
    }
    assert run.printed.count("held-out at step ") == len(expected)


def test_nothing_is_evaluated_without_held_out_data(tmp_path):
    _, result = train(tmp_path, held_out=None)
    assert result.is_finished and result.held_out is None
    assert not evaluated_steps(tmp_path)
    assert not (tmp_path / "best_checkpoint.json").exists()


@pytest.mark.parametrize(
    ("held_out", "selection_metric", "expected", "kept"),
    [
        (HELD_OUT, "loss", 12, [8, 12]),  # the best so far goes when the next one is saved
        (CONTRARY, "loss", 4, [4, 12]),
        (HELD_OUT, "absolute_error", 4, [4, 12]),
    ],
    ids=["lowest loss", "lowest loss, early", "highest of another metric"],
)
def test_best_checkpoint_is_named_and_kept(tmp_path, held_out, selection_metric, expected, kept):
    run = start_linear(selection_metric=selection_metric)
    train(tmp_path, run, held_out=held_out, keep_checkpoint_max=1)
    rows = rows_of(tmp_path, "held_out")
    choose = min if selection_metric == "loss" else max
    row = choose(rows, key=lambda row: row[selection_metric])
    assert row["step"] == expected
    assert best(tmp_path) == {
        "checkpoint": f"model.ckpt-{expected}",
        "step": expected,
        "metric": selection_metric,
        "value": row[selection_metric],
    }
    assert find_checkpoints(str(tmp_path)) == [f"{tmp_path}/model.ckpt-{step}" for step in kept]


def test_best_checkpoint_that_a_kill_left_without_a_name_is_named_when_resumed(tmp_path, monkeypatch):
    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("albert_tf.training.train_loop.write_json", kill)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "killed", held_out=CONTRARY)
    assert evaluated_steps(tmp_path / "killed") == [4]
    assert not (tmp_path / "killed" / "best_checkpoint.json").exists()
    for folder in (tmp_path / "killed", tmp_path / "uninterrupted"):
        train(folder, held_out=CONTRARY, keep_checkpoint_max=1)
        assert find_checkpoints(str(folder)) == [f"{folder}/model.ckpt-{step}" for step in (4, 12)]
    assert best(tmp_path / "killed") == best(tmp_path / "uninterrupted")


def test_evaluation_that_a_kill_prevented_is_made_up_for(tmp_path, uninterrupted):
    train(tmp_path, num_train_steps=8)
    path = tmp_path / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    assert '"held_out"' in lines[-1]
    path.write_text("".join(lines[:-1]))
    train(tmp_path)
    assert evaluated_steps(tmp_path) == [4, 8, 12]
    assert rows_of(tmp_path) == rows_of(uninterrupted)


def test_evaluation_that_was_made_is_not_repeated(tmp_path):
    train(tmp_path, num_train_steps=8)
    run, _ = train(tmp_path)
    assert evaluated_steps(tmp_path) == [4, 8, 12]
    assert "held-out at step 8" not in run.printed
    rows = rows_of(tmp_path)
    finished, result = train(tmp_path)
    assert "held-out" not in finished.printed and result.held_out is None, "`TrainingRun.evaluate` evaluates the best"
    assert rows_of(tmp_path) == rows


# What no sum over batches gives: best at the second of three evaluations.
SCORES = {4: 0.5, 8: 0.75, 12: 0.25}


def train_scored(folder, **more):
    """Trains a run whose best checkpoint is chosen by the scores above; returns it and how it ended."""
    run = start_linear(selection_metric="score")

    def score(compute_outputs):
        return {"other_score": 1.0, "score": SCORES[int(run.global_step.numpy())]}

    return train(folder, run, score_held_out=score, **more)


@pytest.mark.parametrize("options", [OPTIONS, dataclasses.replace(OPTIONS, early_stopping=1)])
def test_scores_select_come_first_and_select_the_same_when_a_finished_run_is_repeated(tmp_path, options):
    run, result = train_scored(tmp_path, options=options)
    assert list(result.held_out) == ["score", "other_score", "loss", "squared_error", "absolute_error"]
    assert "held-out at step 8: score 0.7500 other_score 1.0000 loss " in run.printed
    assert (best(tmp_path)["step"], best(tmp_path)["value"]) == (8, 0.75)
    files = {name: (tmp_path / name).read_bytes() for name in ("best_checkpoint.json", "metrics.jsonl")}
    for _ in range(2):
        train_scored(tmp_path, options=options)
        assert {name: (tmp_path / name).read_bytes() for name in files} == files


def test_last_row_without_the_score_that_selects_is_made_up_for(tmp_path):
    train_scored(tmp_path)
    path = tmp_path / "metrics.jsonl"
    *others, last = rows_of(tmp_path)
    others.append({name: value for name, value in last.items() if name != "score"})
    path.write_text("".join(json.dumps(row) + "\n" for row in others))
    train_scored(tmp_path)
    assert [row.get("score") for row in rows_of(tmp_path, "held_out")] == [0.5, 0.75, None, 0.25]


@pytest.mark.parametrize("stop_at_step", [3, 9])
def test_killed_run_leaves_the_rows_of_one_that_was_not(tmp_path, uninterrupted, stop_at_step):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, stop_at_step=stop_at_step)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 7, "split": "tr')
    assert rows_before(tmp_path)[-1] == stop_at_step
    resumed, _ = train(tmp_path)
    assert rows_of(tmp_path) == rows_of(uninterrupted)
    assert [row["step"] for row in rows_of(tmp_path, "train")] == [3, 4, 6, 8, 9, 12]
    assert resumed.global_step.numpy() == NUM_TRAIN_STEPS


def rows_before(folder):
    """Returns the steps of the whole rows, in the order of the file."""
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    return [json.loads(line)["step"] for line in lines if line.endswith("\n")]


@pytest.mark.parametrize(("num_replicas", "stop_at_step"), [(1, 1), (2, 5)])
def test_run_stopped_in_the_middle_of_a_loop_leaves_the_rows_of_one_that_was_not(
    tmp_path, monkeypatch, num_replicas, stop_at_step
):
    options = loop_settings(iterations_per_loop=6, save_checkpoints_steps=12, eval_every_steps=12)
    train(tmp_path / "uninterrupted", start_linear(num_replicas), options)
    run, folder = start_linear(num_replicas), tmp_path / "stopped"
    with monkeypatch.context() as patch:
        patch.setattr("albert_tf.training.train_loop.StopRequest", StopAt(run.global_step, stop_at_step))
        _, result = train(folder, run, options)
    assert not result.is_finished and result.held_out is None
    assert run.global_step.numpy() == stop_at_step
    assert f"stopped by SIGTERM; saved at step {stop_at_step}; repeat the command to go on" in run.printed
    assert find_checkpoints(str(folder)) == [f"{folder}/model.ckpt-{stop_at_step}"]
    assert not any(row["step"] == stop_at_step for row in read_metrics(str(folder)))
    train(folder, start_linear(num_replicas, seed=1), options)
    # What the steps before the stop measured is part of the next row, through the checkpoint.
    assert rows_of(folder) == rows_of(tmp_path / "uninterrupted")
    assert [row["step"] for row in rows_of(folder, "train")] == [6, 12]


def test_run_stopped_while_it_evaluates_evaluates_when_resumed(tmp_path, monkeypatch, uninterrupted):
    run = start_linear()
    stop = StopAt(run.global_step, 100)
    monkeypatch.setattr("albert_tf.training.train_loop.StopRequest", stop)
    evaluate = "albert_tf.training.evaluation.Evaluator.evaluate"
    with monkeypatch.context() as patch:
        patch.setattr(evaluate, lambda evaluator, dataset, is_to_stop: None)
        _, result = train(tmp_path, run)
    assert not result.is_finished
    assert run.global_step.numpy() == 4 and not evaluated_steps(tmp_path)
    monkeypatch.undo()
    train(tmp_path)
    assert rows_of(tmp_path) == rows_of(uninterrupted)


@pytest.mark.parametrize(("patience", "ended_at"), [(1, 8), (3, 12)])
def test_early_stopping_ends_training_after_evaluations_that_were_no_better(tmp_path, patience, ended_at):
    options = dataclasses.replace(OPTIONS, early_stopping=patience)
    run, result = train(tmp_path, options=options, held_out=CONTRARY)
    assert result.is_finished
    assert run.global_step.numpy() == ended_at
    assert (f"ended early at step {ended_at}, of 12; best on held-out data" in run.printed) == (ended_at < 12)
    assert f"best on held-out data: {tmp_path}/model.ckpt-4," in run.printed


def test_run_that_ended_early_ends_there_again_and_goes_on_when_it_may(tmp_path):
    options = dataclasses.replace(OPTIONS, early_stopping=1)
    train(tmp_path, options=options, held_out=CONTRARY)
    rows = rows_of(tmp_path)
    again, result = train(tmp_path, options=options, held_out=CONTRARY)
    assert result.is_finished
    assert again.global_step.numpy() == 8
    assert rows_of(tmp_path) == rows

    resumed, _ = train(tmp_path, held_out=CONTRARY)
    assert resumed.global_step.numpy() == NUM_TRAIN_STEPS
    assert evaluated_steps(tmp_path) == [4, 8, 12]


def test_overfitting_is_told_once_with_what_to_do(tmp_path):
    run, _ = train(tmp_path, held_out=CONTRARY, num_train_steps=16)
    assert run.printed.count("the run learns its text by heart") == 1
    assert "warning: the held-out loss rose from" in run.printed and "which early stopping saves" in run.printed
