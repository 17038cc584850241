"""--num_trials and --trials: several trainings, compared on held-out data."""

import json
import re

import pytest
from runs import read_results

from albert_tf.training import TrainingRun
from albert_tf.training.stability import DivergedError


@pytest.mark.slow
def test_trials_are_compared_on_the_dev_file(classify, run_script, tmp_path):
    flags_of_trials = {"num_trials": 2, "trials": "learning_rate:1e-3|1e-2", "random_seed": 5, "learning_rate": None}
    result = classify(do_train=True, do_eval=True, **flags_of_trials).finished()
    run = tmp_path / "run"
    names = {"rate_0.001_seed_5", "rate_0.001_seed_6", "rate_0.01_seed_5", "rate_0.01_seed_6"}
    assert {path.name for path in run.iterdir()} == names | {"trials.json", "trials.journal", "eval_results.json"}
    results, trials = read_results(run), json.loads((run / "trials.json").read_text())["trials"]
    of_rate = [trial["results"]["accuracy"] for trial in trials if trial["learning_rate"] == results["learning_rate"]]
    assert results["num_trials"] == len(of_rate) == 2 and results["accuracy"] == pytest.approx(sum(of_rate) / 2)
    assert f"chosen on held-out data: learning_rate={results['learning_rate']:g}; " in result.output
    for name in names:
        assert (run / name / "errors.tsv").exists()
        assert json.loads((run / name / "run_settings.json").read_text())["random_seed"] == int(name[-1])
    best = re.search("its best trial is (.*)\n", result.output)[1]
    named_best = f"name the folder of one, such as {best}\n"
    results = (run / "eval_results.json").read_bytes()
    assert classify(do_train=True, do_eval=True).errors == f"error: {run} holds several trials; {named_best}"
    assert (run / "eval_results.json").read_bytes() == results
    for script, named in (("run_classifier.py", {"output_dir": run, "do_predict": True}), ("export_model.py", {})):
        named = named or {"model_dir": run, "output_dir": tmp_path / "export"}
        refused = run_script(script, **named)
        assert (refused.code, refused.errors) == (1, f"error: {run} holds several trials; {named_best}")


@pytest.mark.slow
def test_rate_at_which_training_diverges_is_left_out(classify, tmp_path, monkeypatch):
    train = TrainingRun.train

    def diverging(self, *arguments):
        if self.settings.learning_rate > 0.1:
            raise DivergedError("the loss was not finite")
        return train(self, *arguments)

    monkeypatch.setattr(TrainingRun, "train", diverging)
    flags = {"do_train": True, "do_eval": True, "num_trials": 2, "learning_rate": None}
    result = classify(**flags, trials="learning_rate:0.5|1e-3").succeeded()
    assert result.output.count("\nwarning: learning_rate=0.5 is left out: the loss was not finite\n") == 1
    trials = json.loads((tmp_path / "run" / "trials.json").read_text())["trials"]
    assert {trial["learning_rate"] for trial in trials} == {1e-3}
    result = classify(**flags, trials="learning_rate:0.5|0.6", output_dir=tmp_path / "other")
    assert (result.code, result.errors) == (1, "error: the loss was not finite\n")
