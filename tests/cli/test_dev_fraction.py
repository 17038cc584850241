"""--dev_fraction: evaluation on a share of the training file, in a run and on its finished folder."""

import json
import re

import pytest
from runs import read_results, read_rows
from test_run_ner import tag  # noqa: F401
from test_run_race import lines_folder, race, race_folder  # noqa: F401
from test_run_squad import squad, squad_flags  # noqa: F401

from albert_tf.reading.rows import RowFile


@pytest.fixture
def only_training(reviews):
    """Leaves nothing but train.tsv in the folder of reviews: 21 of 20 texts, of which one is there twice."""
    lines = [(reviews / f"{name}.tsv").read_text().splitlines() for name in ("train", "dev")]
    for name in ("dev", "test"):
        (reviews / f"{name}.tsv").unlink()
    (reviews / "train.tsv").write_text("\n".join([*lines[0], *lines[1][1:], lines[0][1], "99\t\t1"]) + "\n")
    return reviews


@pytest.mark.slow
def test_file_is_read_once_for_its_labels_the_length_both_shares_and_the_answers(
    classify, only_training, without_training, monkeypatch
):
    read = []

    def counting(path, *arguments):
        read.append(path)
        return RowFile(path, *arguments)

    monkeypatch.setattr("albert_tf.finetuning.tasks.labelled_text.RowFile", counting)
    given = {"do_train": True, "do_eval": True, "dev_fraction": 0.25, "class_weights": "balanced"}
    classify(**given, max_seq_length=None).succeeded()
    assert read == [str(only_training / "train.tsv")]


@pytest.mark.slow
def test_share_is_evaluated_and_predicted_and_the_folder_knows_it(classify, only_training, run_script, tmp_path):
    run = tmp_path / "run"
    result = classify(do_train=True, do_eval=True, do_predict=True, dev_fraction=0.25).succeeded()
    path = only_training / "train.tsv"
    said = f"5 of the 21 examples of {path} are put aside to evaluate on (dev_fraction=0.25)\n"
    assert result.output.count(said) == 1 and "2 labels in the 16 examples of " in result.output
    empty = f"warning: 1 row of {path} with an empty text, the first on line 22; used like any other\n"
    assert result.output.count(empty) == 1
    assert f"wrote 5 predictions of what is put aside of train.tsv to {run}/predictions.tsv\n" in result.output
    results, predicted = read_results(run), read_rows(run / "predictions.tsv")
    assert results["num_examples"] == 5 == len(predicted)
    assert json.loads((run / "run_settings.json").read_text())["train_file"]["examples"] == 16
    documents = [row["document"] for row in read_rows(path)]
    assert all(row["text"] in documents for row in predicted)

    before = (run / "predictions.tsv").read_bytes()
    for name in ("eval_results.json", "predictions.tsv"):
        (run / name).unlink()
    assert run_script("run_classifier.py", output_dir=run, do_eval=True, do_predict=True).code == 0
    assert (run / "predictions.tsv").read_bytes() == before
    assert read_results(run) == pytest.approx(results, rel=1e-6)
    # A file to evaluate on is evaluated as another one.
    (only_training / "dev.tsv").write_text("document\tlabel\n좋다\t1\n")
    again = run_script("run_classifier.py", output_dir=run, do_eval=True)
    assert again.code == 0 and "eval_results-dev-" in again.output and read_results(run)["num_examples"] == 5


@pytest.mark.slow
def test_same_rows_are_put_aside_in_every_format_and_by_every_seed(classify, only_training, without_training, tmp_path):
    found = []
    rows = read_rows(only_training / "train.tsv")
    (only_training / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for format_name, seed in (("tsv", 1), ("jsonl", 2)):
        run = tmp_path / format_name
        given = {"task_name": format_name, "random_seed": seed, "output_dir": run, "dev_fraction": 0.25}
        assert classify(do_train=True, do_predict=True, **given).code == 0
        found.append([row["text"] for row in read_rows(run / "predictions.tsv")])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"dev_fraction": 0.1},
            "--dev_fraction=0.1: there is already a file to evaluate on, .*dev.tsv; leave out one of the two",
        ),
        ({"dev_fraction": 1.5}, "--dev_fraction must be a number, at least 0 and at most 1. Received: 1.5"),
    ],
)
def test_share_is_refused_where_it_makes_no_sense(classify, assert_refused, tmp_path, changes, message):
    found = assert_refused(lambda: classify(do_train=True, do_eval=True, **changes), tmp_path / "run")
    assert re.match(message, found), found


def test_missing_file_to_evaluate_on_names_the_flag(classify, only_training, assert_refused, tmp_path):
    message = assert_refused(lambda: classify(do_train=True, do_eval=True), tmp_path / "run")
    assert message.endswith("; or hold out a share of the training file, for example with --dev_fraction=0.1")


def test_other_share_than_the_run_s_is_refused(classify, only_training, without_training, assert_refused, tmp_path):
    assert classify(do_train=True, dev_fraction=0.25).code == 0
    for changes in ({"dev_fraction": 0.5, "do_eval": True}, {"dev_fraction": 0.5, "do_train": True}):
        message = assert_refused(lambda changes=changes: classify(**changes), tmp_path / "run")
        assert "--dev_fraction is 0.5, and was 0.25" in message


def test_folder_to_predict_is_asked_for_a_test_file(
    classify, run_script, only_training, without_training, assert_refused, tmp_path
):
    assert classify(do_train=True, dev_fraction=0.25).code == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "new.tsv").write_text("document\n좋다\n")
    flags = {"output_dir": tmp_path / "run", "do_predict": True, "data_dir": other}
    message = assert_refused(lambda: run_script("run_classifier.py", **flags), other)
    assert message.startswith(
        f"--data_dir={other} has no test.tsv or dev.tsv or val.tsv or valid.tsv ...; give the file that name (there is "
        "new.tsv)"
    )


@pytest.mark.slow
def test_sentences_questions_and_passages_are_put_aside_as_well(
    tag,  # noqa: F811
    squad,  # noqa: F811
    race,  # noqa: F811
    lines_folder,  # noqa: F811
    without_training,
    tmp_path,
):
    for name in ("dev", "test"):
        (tmp_path / "tagged" / f"{name}.tsv").unlink()
        (lines_folder / f"{name}.jsonl").unlink()
    share = {"do_train": True, "do_predict": True, "dev_fraction": 0.4}
    assert "1 of the 3 examples of " in tag(**share, output_dir=tmp_path / "entities").output
    assert (
        "2 of the 5 examples of "
        in race(**share, task_name="jsonl", data_dir=lines_folder, output_dir=tmp_path / "choices").output
    )
    result = squad(**share, do_eval=True, predict_file=None, output_dir=tmp_path / "answers")
    assert result.code == 0 and "2 of the 6 examples of " in result.output
