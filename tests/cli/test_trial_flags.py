"""The trials that --trials asks for, and the sentences on those that it can't."""

import json
import re
import sys

import pytest

pytest.importorskip("optuna")

EVALUATED = {"do_train": True, "do_eval": True, "data_dir": "nowhere", "task_name": "nsmc"}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (
            "learning_rate",
            " must be a setting, a colon and its values, such as learning_rate:1e-4..1e-3 or num_train_ep",
        ),
        ("lerning_rate:1e-3..1e-2", ": lerning_rate is not a setting that can be searched; these can: beta_2, "),
        ("output_dir:a|b", ": output_dir is not a setting that can be searched; these can: beta_2, "),
        ("random_seed:1|2", ": random_seed is not a setting that can be searched"),
        ("learning_rate:1e-2..1e-2", " is an empty range; the lower end comes first"),
        ("learning_rate:0..1e-3", ": --learning_rate must be a number above 0. Received: 0"),
        ("weight_decay:0..0.1", ": weight_decay is drawn by its logarithm, so that the range must begin above 0"),
        ("learning_rate:1e-3..", ": --learning_rate must be a number above 0. Received: nothing"),
        ("learning_rate:nan|0.1", ": --learning_rate must be a number above 0. Received: nan"),
        ("train_batch_size:16..32.5", ": --train_batch_size must be a whole number, at least 1. Received: 32.5"),
        ("pooling:mean|most", ": --pooling must be one of first, mean, last, aligned. Received: most"),
        ("bias_correction:true|perhaps", ": --bias_correction must be true or false. Received: perhaps"),
        ("optimizer:adamw..lamb", ": a range is of numbers; list the values of optimizer, as optimizer:adamw|..."),
        ("num_train_epochs:2|2.0", ": a value is there twice; name each once"),
        ("num_train_epochs:2..4", " is a range; say how many trainings to draw from it with --num_trials"),
    ],
)
def test_mistake_is_named_with_the_part_of_the_flag(run_script, assert_refused, tmp_path, part, message):
    refused = lambda: run_script("run_classifier.py", **EVALUATED, trials=part, output_dir=tmp_path)  # noqa: E731
    assert assert_refused(refused, tmp_path).startswith(f"--trials={part}{message}")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"trials": "dropout:0|0.1,dropout:0.2"},
            "--trials=dropout:0.2: dropout is there twice; name each setting once",
        ),
        (
            {"trials": "dropout:0|0.1", "dropout": 0.2},
            "--trials=dropout:0|0.1: --dropout=0.2 is fixed; leave one of them",
        ),
        (
            {"trials": "num_train_steps:10|20", "num_train_epochs": 2},
            "--trials=num_train_steps: the number of steps follows from num_train_epochs; leave one out",
        ),
        (
            {"trials": "dropout:0|0.1", "output_dir": "gs://bucket/run"},
            "--trials needs one machine with --output_dir on its own disk; --num_trials alone does not",
        ),
    ],
)
def test_flags_that_do_not_go_together_are_refused(run_script, assert_refused, tmp_path, given, message):
    flags = {**EVALUATED, "output_dir": tmp_path, **given}
    assert assert_refused(lambda: run_script("run_classifier.py", **flags), tmp_path).startswith(message)


def test_missing_optuna_is_told_and_seeds_do_not_need_it(run_script, assert_refused, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    flags = {**EVALUATED, "output_dir": tmp_path}
    message = assert_refused(lambda: run_script("run_classifier.py", **flags, trials="dropout:0|0.1"), tmp_path)
    assert message.startswith("--trials needs Optuna, which is not installed; pip install ")
    assert "trial 1 of 2" in run_script("run_classifier.py", **flags, num_trials=2).output


@pytest.mark.slow
def test_search_over_any_setting(classify, run_script, assert_refused, tmp_path):
    flags = {"do_train": True, "do_eval": True, "num_trials": 2, "train_step": None, "warmup_step": None}
    flags |= {"learning_rate": None, "num_train_epochs": None}
    searched = "learning_rate:1e-3..1e-2,num_train_epochs:0.5|1,pooling:mean,optimizer:adamw|lamb"
    result = classify(**flags, trials=searched).finished()
    written = json.loads((tmp_path / "run" / "trials.json").read_text())
    assert written["search"]["settings"] == {
        "learning_rate": "0.001..0.01",
        "num_train_epochs": "0.5|1",
        "pooling": "mean",
        "optimizer": "adamw|lamb",
    }
    assert len(written["trials"]) == 2 and re.search(
        r"^learning_rate +num_train_epochs +pooling +opt", result.output, re.M
    )
    for trial in written["trials"]:
        kept = json.loads((tmp_path / "run" / trial["folder"] / "run_settings.json").read_text())
        for name in ("learning_rate", "pooling", "optimizer"):
            assert kept[name] == trial["settings"][name]
        steps = trial["settings"]["num_train_epochs"] * kept["train_file"]["examples"] / kept["train_batch_size"]
        assert kept["num_train_steps"] == max(1, round(steps))
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").glob("*.json")}
    assert classify(**flags, trials=searched).code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").glob("*.json")} == before
    other = searched.replace("|lamb", "")
    message = assert_refused(lambda: classify(**flags, trials=other), tmp_path / "run")
    assert message.startswith(
        f"--output_dir={tmp_path}/run holds trials of learning_rate:0.001..0.01,num_train_epochs:0"
    )
    # None of the trials is the model; the best is named.
    best = re.search("its best trial is (.*)\n", result.output)[1]
    refusal = f"error: {tmp_path}/run holds several trials; name the folder of one, such as {best}\n"
    assert classify(do_train=True, do_eval=True).errors == refusal
    export = {"model_dir": tmp_path / "run", "output_dir": tmp_path / "export"}
    assert run_script("export_model.py", **export).errors == refusal


@pytest.mark.slow
def test_pre_training_is_searched_by_its_held_out_loss(pretrain, tmp_path):
    searched = {"trials": "learning_rate:1e-3|1e-2", "learning_rate": None}
    pretrain(**searched, num_train_steps=2).finished()
    written = json.loads((tmp_path / "run" / "trials.json").read_text())
    assert written["metric"] == "loss" and [trial["learning_rate"] for trial in written["trials"]] == [1e-3, 1e-2]
    losses = {trial["results"]["loss"]: trial["folder"] for trial in written["trials"]}
    assert losses[min(losses)].endswith(written["best"])
    result = pretrain(**searched, do_eval=False)
    assert result.errors.startswith("error: --num_trials and --trials need --do_train and --do_eval")
