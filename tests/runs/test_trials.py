"""Several trainings of one command: medians, spread, and the settings that held-out data choose."""

import json

import pytest

from albert_tf.base.errors import InputError
from albert_tf.runs.trials import Search, Trial, best_trial, describe, run_trials, summarize
from albert_tf.training.stability import DivergedError


def trial(rate, seed, accuracy, loss):
    results = {"accuracy": accuracy, "loss": loss}
    return Trial(rate, seed, f"run/rate_{rate:g}_seed_{seed}", results, {"learning_rate": rate})


TRIALS = [
    *(trial(1e-4, seed, accuracy, 0.5) for seed, accuracy in enumerate((0.7, 0.9, 0.71))),
    *(trial(3e-4, seed, accuracy, 0.6) for seed, accuracy in enumerate((0.8, 0.5, 0.81))),
]


def test_settings_of_the_best_median_are_chosen_not_those_of_the_best_trial():
    assert best_trial(TRIALS, "accuracy").folder == "run/rate_0.0003_seed_2"
    assert best_trial(TRIALS, "loss").learning_rate == 1e-4
    tied = [trial(3e-4, 1, 0.8, 0.5), trial(1e-4, 1, 0.8, 0.5)]
    assert best_trial(tied, "accuracy").learning_rate == 1e-4


def test_equal_settings_are_all_of_them_and_not_the_rate_alone():
    tried = [
        Trial(1e-4, seed, "", {"accuracy": accuracy}, {"num_train_epochs": epochs, "pooling": "mean"})
        for epochs, accuracies in ((2.0, (0.9, 0.1, 0.1)), (4.0, (0.5, 0.6, 0.5)))
        for seed, accuracy in enumerate(accuracies)
    ]
    assert summarize(tried, "accuracy") == {
        "accuracy": 0.5,
        "accuracy_min": 0.5,
        "accuracy_max": 0.6,
        "learning_rate": 1e-4,
        "num_train_epochs": 4.0,
        "num_trials": 3,
    }


def test_summary_has_medians_and_spread():
    assert summarize(TRIALS, "accuracy") == pytest.approx(
        {
            "accuracy": 0.8,
            "loss": 0.6,
            "accuracy_min": 0.5,
            "accuracy_max": 0.81,
            "learning_rate": 3e-4,
            "num_trials": 3,
        }
    )


def test_what_is_told_has_a_line_for_each_trial_and_marks_the_best():
    assert describe(TRIALS, "accuracy", [{"learning_rate": 0.5}]) == [
        "learning_rate  random_seed  accuracy  median",
        "0.0003         0            0.8000    0.8000",
        "0.0003         1            0.5000    0.8000",
        "0.0003         2            0.8100    0.8000  best",
        "0.0001         0            0.7000    0.7100",
        "0.0001         1            0.9000    0.7100",
        "0.0001         2            0.7100    0.7100",
        "0.5                         diverged",
        "chosen on held-out data: learning_rate=0.0003; its best trial is run/rate_0.0003_seed_2",
    ]
    assert describe([Trial(1e-4, 7, "run/seed_7", {"loss": 0.5})], "loss") == [
        "learning_rate  random_seed  loss",
        "0.0001         7            0.5000  best",
        "chosen on held-out data: learning_rate=0.0001; its best trial is run/seed_7",
    ]


def accuracy_of(changes, folder):
    return "accuracy", changes["learning_rate"], {"accuracy": changes["learning_rate"] * 100}


def rates(*values, num_trials=1, random_seed=7):
    optuna = pytest.importorskip("optuna")
    return Search({"learning_rate": optuna.distributions.CategoricalDistribution(values)}, num_trials, random_seed)


def test_each_trial_has_a_folder_that_says_what_is_changed(tmp_path):
    seen, said = [], []

    def run_once(changes, folder):
        seen.append(folder)
        if changes["learning_rate"] == 0.5 and changes["random_seed"] == 1234568:
            raise DivergedError("the loss was not finite")
        return accuracy_of(changes, folder)

    run_trials(str(tmp_path), rates(0.5, 1e-3, num_trials=2, random_seed=1234567), run_once, said.append)
    folders = [str(tmp_path / f"rate_{rate:g}_seed_{seed}") for seed in (1234567, 1234568) for rate in (0.5, 1e-3)]
    assert seen == folders
    assert "warning: learning_rate=0.5 is left out: the loss was not finite" in said
    written = json.loads((tmp_path / "trials.json").read_text())
    assert [trial["folder"] for trial in written["trials"]] == folders[1::2]
    assert written["best"] == "rate_0.001_seed_1234567" and written["left_out"] == [{"learning_rate": 0.5}]


def test_another_search_in_the_same_folder_is_refused_and_a_longer_one_goes_on(tmp_path):
    run_trials(str(tmp_path), rates(0.5, 1e-3), accuracy_of)
    before = (tmp_path / "trials.json").read_bytes()
    for other in (rates(0.5, 1e-3, random_seed=8), Search({}, 2, 7), rates(0.5)):
        with pytest.raises(
            InputError, match=r"^`output_dir=.*` holds trials of learning_rate:0.5\|0.001 from `random_se"
        ):
            run_trials(str(tmp_path), other, accuracy_of)
    assert (tmp_path / "trials.json").read_bytes() == before
    run_trials(str(tmp_path), rates(0.5, 1e-3, num_trials=2), accuracy_of)
    assert len(json.loads((tmp_path / "trials.json").read_text())["trials"]) == 4


def test_of_several_processes_one_writes(tmp_path):
    seeds, other = Search({}, 2, 7, {"learning_rate": 0.5}), Search({}, 2, 8, {"learning_rate": 0.5})
    run_trials(str(tmp_path), seeds, accuracy_of, is_chief=False)
    assert not list(tmp_path.iterdir())
    run_trials(str(tmp_path), seeds, accuracy_of)
    with pytest.raises(InputError, match="holds trials of"):
        run_trials(str(tmp_path), other, accuracy_of, is_chief=False)


def test_trials_that_all_diverge_write_no_results(tmp_path):
    def diverge(changes, folder):
        raise DivergedError("not finite")

    for name, search in (("search", rates(0.5, 1e-3, num_trials=2)), ("seeds", Search({}, 2, 7))):
        with pytest.raises(DivergedError, match="not finite"):
            run_trials(str(tmp_path / name), search, diverge)
        assert "eval_results.json" not in {path.name for path in (tmp_path / name).iterdir()}
