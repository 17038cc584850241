"""run_race.py and run_squad.py with a teacher, which says of choices and answers what is learnt beside them."""

import json
import shutil

import pytest
import varied_data as data
from runs import assert_same_variables, read_results

pytestmark = pytest.mark.slow


def choices(folder):
    """Returns the script, flags of its data, and a file without answers."""
    lines = {"task_name": "jsonl", "data_dir": data.write_choices(folder / "lines")}
    return "run_race.py", lines, folder / "lines" / "test.jsonl"


def questions(folder, **flags):
    """Returns the same of questions some of which have no answer."""
    train, dev, more = (
        data.write_questions(folder / f"{name}.json", count, has_impossible=True)
        for name, count in (("train", 12), ("dev", 4), ("more", 5))
    )
    files = {"train_file": train, "predict_file": dev, "version_2_with_negative": True, "doc_stride": 8}
    return "run_squad.py", {**files, **flags}, more


def independent(folder):
    """Returns the same with the other head."""
    return questions(folder, head="independent")


@pytest.fixture
def run_with(run_script, checkpoint, tmp_path):
    """Runs a script of a case; flags may be added, replaced or, with None, left out."""
    usual = {
        "init_checkpoint": checkpoint,
        "output_dir": tmp_path / "run",
        "max_seq_length": 40,
        "num_train_steps": 3,
        "save_checkpoints_steps": 1,
        "train_batch_size": 4,
        "learning_rate": 0.01,
        "do_train": True,
    }

    def run(script, **changes):
        given = {name: value for name, value in {**usual, **changes}.items() if value is not None}
        return run_script(script, **given)

    return run


@pytest.mark.parametrize(
    ("case", "measure", "num_texts"),
    [(choices, "accuracy", 3), (questions, "f1", 5), (independent, "f1", 5)],
)
def test_teacher_is_told_beside_and_the_run_goes_on_as_if_never_stopped(run_with, tmp_path, case, measure, num_texts):
    script, files, unlabelled = case(tmp_path)
    result = run_with(script, **files, output_dir=tmp_path / "teacher", random_seed=1)
    assert (result.code, result.errors) == (0, "")
    flags = {**files, "teacher": tmp_path / "teacher", "unlabelled_file": unlabelled}
    result = run_with(script, **flags, do_eval=True)
    assert (result.code, result.errors) == (0, "")
    assert f"{num_texts} texts of {unlabelled} are added to the training" in result.output
    results = read_results(tmp_path / "run")
    assert f"the teacher: {measure} {results[f'teacher_{measure}']:.4f}\n" in result.output
    again = shutil.copytree(tmp_path / "run", tmp_path / "again")
    for path in [*again.glob("model.ckpt-3*"), *again.glob("best*")]:
        path.unlink()
    result = run_with(script, **flags, output_dir=again)
    assert result.code == 0 and f"restored {again}/model.ckpt-2\n" in result.output
    assert_same_variables(again / "model.ckpt-3", tmp_path / "run" / "model.ckpt-3")


def test_teacher_of_another_kind_is_refused(run_with, assert_refused, tmp_path):
    script, files, _ = choices(tmp_path)
    rows = [json.loads(line) for line in (files["data_dir"] / "train.jsonl").read_text().splitlines()]
    (tmp_path / "two").mkdir()
    lines = "".join(json.dumps({**row, "options": row["options"][:2], "answer": 0}) + "\n" for row in rows)
    (tmp_path / "two" / "train.jsonl").write_text(lines)
    flags = {**files, "data_dir": tmp_path / "two", "output_dir": tmp_path / "teacher", "num_train_steps": 1}
    assert run_with(script, **flags).code == 0
    told = assert_refused(lambda: run_with(script, **files, teacher=tmp_path / "teacher"), tmp_path)
    assert told.endswith(
        "chooses from 2 options, but here there are 3; name a teacher that was fine-tuned for the same"
    )
    script, files, _ = questions(tmp_path)
    assert run_with(script, **files, head="independent", output_dir=tmp_path / "other", num_train_steps=1).code == 0
    told = assert_refused(lambda: run_with(script, **files, teacher=tmp_path / "other"), tmp_path)
    assert "was fine-tuned for QuestionAnswering, but the task here is ConditionalQuestionAnswering; name a" in told
