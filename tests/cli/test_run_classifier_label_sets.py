"""run_classifier.py --multi_label: texts with any number of labels."""

import json

import pytest
from runs import read_results, read_rows

import albert_tf


@pytest.fixture
def topics(reviews):
    """The sample's reviews with made-up label sets, one of them empty."""
    sets = ("film,good", "", "good", "film")
    for name in ("train", "dev", "test"):
        header, *lines = (reviews / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
        column = header.split("\t").index("label")
        rows = [line.split("\t") for line in lines]
        for number, row in enumerate(rows):
            row[column] = sets[number % 4]
        (reviews / f"{name}.tsv").write_text("\n".join([header, *map("\t".join, rows)]) + "\n", encoding="utf-8")
    return reviews


@pytest.mark.slow
def test_label_sets_are_learnt_decided_by_thresholds_and_predicted(classify, topics, tmp_path):
    flags = {"multi_label": True, "do_eval": True, "do_predict": True}
    result = classify(do_train=True, **flags)
    assert (result.code, result.errors) == (0, "")
    run = tmp_path / "run"
    results, rows = read_results(run), read_rows(run / "predictions.tsv")
    assert list(results)[2:6] == ["blind_micro_f1", "linear_micro_f1", "micro_f1", "macro_f1"]
    thresholds = json.loads((run / "thresholds.json").read_text())
    assert list(thresholds) == ["film", "good"]

    # The folder knows labels and thresholds: the same is predicted in Python, and by a command that trains nothing.
    predictions = albert_tf.load(run).predict([row["text"] for row in rows])
    assert [",".join(each["labels"]) for each in predictions] == [row["prediction"] for row in rows]
    for each in predictions:
        given = [label for label, share in each["probabilities"].items() if share >= thresholds[label]]
        assert each["labels"] == given
    before = {name: (run / name).read_bytes() for name in ("predictions.tsv", "eval_results.json", "thresholds.json")}
    for name in ("predictions.tsv", "eval_results.json"):
        (run / name).unlink()
    assert classify(init_checkpoint=None, task_name=None, **{**flags, "multi_label": None}).code == 0
    assert {name: (run / name).read_bytes() for name in before} == before

    # Other data are judged by the run's thresholds.
    (topics / "dev.tsv").write_bytes((topics / "test.tsv").read_bytes())
    assert classify(init_checkpoint=None, do_eval=True).code == 0
    assert (run / "thresholds.json").read_bytes() == before["thresholds.json"]
    assert classify(init_checkpoint=None, do_train=True, multi_label=False).code == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"regression": True},
            "--regression is for texts with one label each, and can't be used with --multi_label",
        ),
        ({"class_weights": "balanced"}, "--class_weights is for texts with one label each"),
        ({"metrics": "accuracy"}, "--metrics=accuracy is not a metric of --multi_label: micro_f1, macro_f1"),
        ({"label_separator": ""}, "--label_separator must be one or more characters"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(classify, topics, changes, message):
    result = classify(do_train=True, multi_label=True, **changes)
    assert result.code == 1 and message in result.errors
