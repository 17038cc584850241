"""Several trainings of one task: medians, spread, and the rate that the dev file chooses."""

import pytest

from albert_tf.finetuning.trials import Trial, best_rate, best_trial, describe, summarize


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
        "--learning_rate=0.0001: accuracy 0.7100 in the median of 0.7000, 0.9000, 0.7100",
        "--learning_rate=0.0003: accuracy 0.8000 in the median of 0.8000, 0.5000, 0.8100",
        "chosen on the dev file: --learning_rate=0.0003; its best trial is run/rate_0.0003_seed_2",
    ]
