"""run_classifier.py with a teacher: what it says is learnt beside the labels, and of texts without labels alone."""

import json
import shutil

import pytest
from runs import assert_same_variables, read_results, read_rows, stopped_copy

import albert_tf

pytestmark = pytest.mark.slow


@pytest.fixture
def teacher(classify, folder_of_run):
    """The folder of a classifier whose labels stand in another order; not to be changed."""
    if not folder_of_run.exists():
        assert classify(do_train=True, labels="1,0", output_dir=folder_of_run).code == 0
    return folder_of_run


@pytest.fixture
def unlabelled(reviews, tmp_path):
    """A file of texts without labels."""
    texts = [row["document"] for row in read_rows(reviews / "test.tsv")]
    (tmp_path / "unlabelled.tsv").write_text("\n".join(["document", *texts]) + "\n", encoding="utf-8")
    return tmp_path / "unlabelled.tsv"


def test_teacher_is_told_beside_and_the_run_goes_on_with_it_alone(classify, teacher, unlabelled, tmp_path):
    taught = {"teacher": teacher, "unlabelled_file": unlabelled, "teacher_weight": 1.0}
    flags = {**taught, "do_train": True, "do_eval": True, "labels": "0,1", "save_checkpoints_steps": 1}
    result = classify(**flags).succeeded()
    assert "5 texts of " in result.output and "are added to the training" in result.output
    assert "are also in" not in result.output
    results = read_results(tmp_path / "run")
    assert f"the teacher: accuracy {results['teacher_accuracy']:.4f}\n" in result.output
    assert results["num_examples"] == 7
    settings = json.loads((tmp_path / "run" / "run_settings.json").read_text())
    assert settings["train_file"]["examples"] == 12 and settings["unlabelled_files"]["name"] == "unlabelled.tsv"
    assert albert_tf.load(tmp_path / "run").predict(["좋아요"])[0]["probabilities"].keys() == {"0", "1"}

    again = stopped_copy(tmp_path / "run", tmp_path / "again", 3)
    result = classify(do_train=True, do_eval=True, output_dir=again, data_dir=None, init_checkpoint=None)
    assert result.code == 0 and f"restored {again}/model.ckpt-2\n" in result.output
    assert_same_variables(again / "model.ckpt-3", tmp_path / "run" / "model.ckpt-3")
    result = classify(**{**flags, "teacher_weight": 0.5}, output_dir=again)
    assert result.code == 1 and "--teacher_weight is 0.5, and was 1.0" in result.errors
    unlabelled.write_text("document\n다른 글\n", encoding="utf-8")
    result = classify(**flags, output_dir=again)
    assert result.code == 1 and "the content of its training data is not what it was (unlabelled.tsv)" in result.errors


def test_teacher_of_another_config_is_another_one(classify, teacher, reviews, without_training, tmp_path):
    other = shutil.copytree(teacher, tmp_path / "teacher")
    flags = {"teacher": other, "unlabelled_file": reviews / "dev.tsv", "do_train": True, "do_eval": True}
    result = classify(**flags)
    assert result.code == 0 and f"warning: 7 of them are also in {reviews}/dev.tsv, so if the" in result.output
    # A block that is shared is applied twice: the weights are the same.
    path = other / "albert_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "num_hidden_layers": 2}))
    result = classify(**flags)
    assert result.code == 1 and "the config, tokenizer or labels of its teacher have changed since" in result.errors


def test_texts_that_the_teacher_reads_the_beginning_of_are_told(classify, teacher, without_training, tmp_path):
    other = shutil.copytree(teacher, tmp_path / "teacher")
    path = other / "run_settings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "max_seq_length": 4}))
    result = classify(teacher=other, do_train=True)
    assert result.code == 0 and f" texts that --teacher={other} reads are cut: " in result.output
    assert "; max_seq_length is 4, and can be raised to " in result.output


def test_checkpoint_that_would_not_be_the_teacher_is_refused(
    classify, teacher, without_training, assert_refused, tmp_path
):
    other = shutil.copytree(teacher, tmp_path / "teacher")
    newest = sorted(other.glob("model.ckpt-*.index"))[-1]
    for path in other.glob(f"{newest.stem}.*"):
        shutil.copy(path, other / path.name.replace(newest.stem, "model.ckpt-1"))
    flags = {"teacher": other / "model.ckpt-1", "do_train": True}
    told = assert_refused(lambda: classify(**flags), tmp_path)
    assert told.startswith(f"--teacher={other}/model.ckpt-1: the teacher would be {other / newest.stem}, the best")
    assert classify(teacher=other / newest.stem, do_train=True).code == 0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"teacher": "nowhere"}, "nowhere: there is no such folder; name the folder of a model"),
        ({"labels": "0,1,2"}, "has the labels 1, 0, but here they are 0, 1, 2; name a teacher that was fine-tuned for"),
        ({"regression": True}, "was fine-tuned for Classification, but the task here is Regression; name a teacher"),
        ({"teacher": None, "teacher_weight": 0.5}, "--teacher_weight has an effect only with a teacher; name one with"),
        ({"teacher_temperature": 0.0}, "--teacher_temperature must be a number above 0. Received: 0"),
        ({"unlabelled_file": "nowhere.tsv"}, "can't read nowhere.tsv"),
        ({"do_train": False, "do_eval": True}, "--teacher has an effect only in training; add --do_train, or leave"),
    ],
)
def test_what_can_not_teach_is_one_sentence(classify, teacher, assert_refused, tmp_path, changes, sentence):
    flags = {"teacher": teacher, "do_train": True, **changes}
    assert sentence in assert_refused(lambda: classify(**flags), tmp_path)
