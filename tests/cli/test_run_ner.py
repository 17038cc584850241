"""run_ner.py from flags to scores and predictions."""

import json
import re

import pytest
from runs import read_results

TRAIN = "서울에 간 김철수 씨가 웃었다\tLOC-B O PER-B PER-I O\n영화가 좋다\tO O\n부산에서 이영희가 왔다\tLOC-B PER-B O\n"


@pytest.fixture
def tag(run_script, checkpoint, tmp_path):
    """Runs the script for three steps; flags may be added, replaced or, with None, left out."""
    folder = tmp_path / "tagged"
    folder.mkdir()
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text(TRAIN)
    (folder / "test.tsv").write_text("대전에 간 사람\n")
    flag_values = {
        "task_name": "naver_ner",
        "data_dir": folder,
        "init_checkpoint": checkpoint,
        "output_dir": tmp_path / "run",
        "train_step": 3,
        "train_batch_size": 2,
        "learning_rate": 0.01,
    }

    def run(**changes):
        given = {name: value for name, value in {**flag_values, **changes}.items() if value is not None}
        return run_script("run_ner.py", **given)

    return run


@pytest.mark.slow
def test_entities_are_learnt_measured_and_predicted(tag, run_script, tmp_path):
    result = tag(do_train=True, do_eval=True, do_predict=True)
    assert result.code == 0, result.errors
    assert "3 sentences in " in result.output and "with 4 entities of 2 types" in result.output
    results = read_results(tmp_path / "run")
    assert {"entity_f1", "entity_precision", "entity_recall", "tag_accuracy", "tag_loss"} <= results.keys()
    assert (tmp_path / "run" / "errors.tsv").read_text().startswith("line\tmissed\twrong\ttext\n")
    (row,) = (json.loads(line) for line in (tmp_path / "run" / "predictions.jsonl").read_text().splitlines())
    assert row["text"] == "대전에 간 사람" and len(row["tags"]) == 3

    # The folder knows everything but the flag that asks.
    (tmp_path / "run" / "eval_results.json").unlink()
    again = run_script("run_ner.py", output_dir=tmp_path / "run", do_eval=True)
    assert again.code == 0 and read_results(tmp_path / "run") == pytest.approx(results, rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"do_train": True, "task_name": None}, "--task_name is missing; see --help"),
        ({"do_train": True, "types": "LOC"}, ".*train.tsv, line 1: the tag B-PER is of none of the types LOC; "),
        ({"do_train": True, "metrics": "accuracy"}, "--metrics=accuracy is none of entity_f1, "),
        ({"do_train": True, "task_name": "klue_ner"}, ".*train.tsv, line 1: not one character, a tab and its tag; "),
        ({"do_train": True, "data_dir": "nowhere"}, "--data_dir=nowhere: there is no such folder"),
    ],
)
def test_mistake_costs_one_sentence(tag, assert_refused, tmp_path, changes, message):
    assert re.match(message, assert_refused(lambda: tag(**changes), tmp_path / "run"))
