"""Several trainings of one task: medians, spread, and the rate that the dev file chooses."""

import dataclasses
import json
from unittest import mock

import pytest

from albert_tf.finetuning.trials import Trial, best_rate, best_trial, describe, run_trials, summarize
from albert_tf.training.stability import DivergedError


def trial(rate, seed, accuracy, loss):
    return Trial(rate, seed, f"run/rate_{rate:g}_seed_{seed}", {"accuracy": accuracy, "loss": loss})


TRIALS = [
    *(trial(1e-4, seed, accuracy, 0.5) for seed, accuracy in enumerate((0.7, 0.9, 0.71))),
    *(trial(3e-4, seed, accuracy, 0.6) for seed, accuracy in enumerate((0.8, 0.5, 0.81))),
]


def test_rate_of_the_best_median_is_chosen_not_that_of_the_best_trial():
    assert best_rate(TRIALS, "accuracy") == 3e-4
    assert best_rate(TRIALS, "loss") == 1e-4
    assert best_trial(TRIALS, "accuracy").folder == "run/rate_0.0003_seed_2"


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


def test_what_is_told_names_every_rate_and_the_best_trial():
    assert describe(TRIALS, "accuracy") == [
        "learning_rate=0.0001: accuracy 0.7100 in the median of 0.7000, 0.9000, 0.7100",
        "learning_rate=0.0003: accuracy 0.8000 in the median of 0.8000, 0.5000, 0.8100",
        "chosen on the dev file: learning_rate=0.0003; its best trial is run/rate_0.0003_seed_2",
    ]


@dataclasses.dataclass(frozen=True)
class Settings:
    output_dir: str
    random_seed: int = 7
    learning_rate: float | None = None


def test_each_trial_is_a_changed_copy_in_a_folder_of_its_own(tmp_path, capsys):
    seen, settings = [], Settings(str(tmp_path))
    rates, seeds = (0.5, 1e-3), (1234567, 1234568)

    def run_once(copy):
        seen.append(copy)
        if copy.learning_rate == 0.5 and copy.random_seed == seeds[1]:
            raise DivergedError("the loss was not finite")
        return "accuracy", Trial(copy.learning_rate, copy.random_seed, copy.output_dir, {"accuracy": 0.5})

    variants = [{"learning_rate": rate, "random_seed": seed} for rate in rates for seed in seeds]
    run_trials(settings, variants, run_once)
    folders = [str(tmp_path / f"rate_{rate:g}_seed_{seed}") for rate in rates for seed in seeds]
    assert [copy.output_dir for copy in seen] == folders and settings == Settings(str(tmp_path))
    assert "warning: learning_rate=0.5 is left out: the loss was not finite\n" in capsys.readouterr().out
    written = json.loads((tmp_path / "trials.json").read_text())
    assert [trial["folder"] for trial in written["trials"]] == folders[2:]
    assert written["best"] == "rate_0.001_seed_1234567"


def test_trials_that_are_stopped_or_all_diverge_write_nothing(tmp_path):
    variants = [{"random_seed": 1}, {"random_seed": 2}]
    run_trials(Settings(str(tmp_path)), variants, lambda copy: None)
    with pytest.raises(DivergedError):
        run_trials(Settings(str(tmp_path)), variants, mock.Mock(side_effect=DivergedError("not finite")))
    assert not list(tmp_path.iterdir())
