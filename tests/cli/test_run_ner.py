"""run_ner.py from flags to scores and predictions."""

import json
import re

import pytest
from runs import metrics_without_rates, read_results, stopped_copy

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
    return lambda **changes: run_script("run_ner.py", **{**flag_values, **changes})


@pytest.mark.slow
def test_entities_are_learnt_measured_and_predicted(tag, run_script, tmp_path):
    result = tag(do_train=True, do_eval=True, do_predict=True).finished()
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
        ({"do_train": True, "types": "LOC"}, ".*train.tsv, line 1: the tag B-PER belongs to none of the types LOC; "),
        ({"do_train": True, "metrics": "accuracy"}, "--metrics=accuracy is not one of entity_f1, "),
    ],
)
def test_mistake_costs_one_sentence(tag, assert_refused, tmp_path, changes, message):
    assert re.match(message, assert_refused(lambda: tag(**changes), tmp_path / "run"))


@pytest.mark.slow
def test_run_that_was_looked_at_while_it_stood_ends_as_one_that_was_not(tag, run_script, tmp_path):
    flags = {"do_train": True, "do_eval": True, "eval_every_steps": 2, "train_step": 4, "early_stopping": 2}
    flags |= {"learning_rate": 1e-6, "save_checkpoints_steps": 1}
    whole = tmp_path / "whole"
    assert tag(output_dir=whole, **flags).code == 0
    looked_at = stopped_copy(whole, tmp_path / "looked_at", 4)
    assert run_script("run_ner.py", output_dir=looked_at, do_eval=True, eval_checkpoint="latest").code == 0
    assert tag(output_dir=looked_at, **flags).code == 0
    assert metrics_without_rates(whole) == metrics_without_rates(looked_at)
    for name in ("best_checkpoint.json", "eval_results.json"):
        assert (looked_at / name).read_bytes() == (whole / name).read_bytes()
