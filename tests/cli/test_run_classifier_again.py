"""run_classifier.py on a folder that holds a run, and with texts of any number of labels."""

import json
import re
import shutil

import pytest
from runs import read_results, read_rows

import albert_tf


@pytest.fixture
def finished(classified, reviews, tmp_path):
    """A copy of a run that was trained, evaluated and used."""
    run = shutil.copytree(classified, tmp_path / "run")
    settings = json.loads((run / "run_settings.json").read_text())
    settings["found_at"]["data_dir"] = str(reviews)
    (run / "run_settings.json").write_text(json.dumps(settings))
    return run


@pytest.fixture
def classify_only(run_script, finished):
    """Runs the script on the finished folder with no flags but those that are given."""

    def run(**flag_values):
        return run_script("run_classifier.py", output_dir=finished, **flag_values)

    return run


def flip_labels(path):
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *(f"{line[:-1]}{1 - int(line[-1])}" for line in lines[1:])]) + "\n")


@pytest.mark.slow
def test_columns_and_labels_are_taken_from_the_run(run_script, classify, reviews, tmp_path):
    for name in ("train", "dev", "test"):
        (reviews / f"{name}.tsv").write_text(
            "id\ta\tb\tgold\n1\t비가 온다\t날이 흐리다\tno\n2\t비가 온다\t맑다\tyes\n3\t맑다\t맑다\tmaybe\n"
        )
    flag_values = {"text_column": "a", "text_pair_column": "b", "label_column": "gold", "labels": "yes,no,maybe"}
    assert classify(do_train=True, do_predict=True, **flag_values).code == 0
    before = (tmp_path / "run" / "predictions.tsv").read_bytes()
    assert run_script("run_classifier.py", output_dir=tmp_path / "run", do_predict=True).code == 0
    assert (tmp_path / "run" / "predictions.tsv").read_bytes() == before
    assert list(read_rows(tmp_path / "run" / "predictions.tsv")[0])[-3:] == ["p(yes)", "p(no)", "p(maybe)"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("do", "flag", "value", "expected"),
    [
        ("do_train", "labels", "1,0", "--labels is 1,0, and was 0,1; "),
        ("do_predict", "task_name", "nsmc", "--task_name is nsmc, and was tsv; "),
        ("do_train", "text_pair_column", "label", "--text_pair_column is label, and was None; "),
        ("do_predict", "max_seq_length", 16, "--max_seq_length is 16, and was 32; "),
        ("do_predict", "learning_rate", 0.02, "--learning_rate is 0.02, and was 0.01; "),
        ("do_train", "train_step", 2, "--num_train_steps is 2, and was 3; "),
        ("do_train", "num_train_epochs", 2, "--num_train_steps is 6, and was 3; "),
        ("do_train", "token_dropout", 0.3, "--token_dropout is 0.3, and was 0.15; "),
        ("do_train", "init_checkpoint", "nowhere", "--init_checkpoint is /"),
    ],
)
def test_flag_that_contradicts_the_run_is_refused(classify_only, finished, assert_refused, do, flag, value, expected):
    message = assert_refused(lambda: classify_only(**{do: True, flag: value}), finished)
    assert message.startswith(f"--output_dir={finished} holds another run: {expected}")
    assert "choose another folder" in message


def test_trials_do_not_replace_the_results_of_a_run(classify, finished, assert_refused):
    message = assert_refused(lambda: classify(do_train=True, do_eval=True, num_trials=2), finished)
    assert message == f"--output_dir={finished} holds a run; choose another folder for the trials"


def test_changed_training_data_are_refused(classify, reviews, finished, assert_refused):
    flip_labels(reviews / "train.tsv")
    message = assert_refused(lambda: classify(do_train=True, do_eval=True), finished)
    assert "the content of its training data is not what it was (train.tsv); " in message


@pytest.mark.slow
def test_command_that_names_the_config_can_be_repeated(
    classify, config_file, tiny_config, write_config, without_training, assert_refused, tmp_path
):
    for _ in range(2):
        classify(do_train=True, albert_config_file=config_file).succeeded()
    assert json.loads((tmp_path / "run" / "albert_config.json").read_text())["hidden_dropout_prob"] == 0.2
    other = write_config(tiny_config.replace(hidden_dropout_prob=0.4))
    message = assert_refused(lambda: classify(do_train=True, albert_config_file=other), tmp_path / "run")
    assert "`hidden_dropout_prob` is 0.4, and was 0.2; " in message


@pytest.mark.slow
def test_checkpoint_that_has_become_newer_is_refused(
    classify, checkpoint, finished, without_training, assert_refused, tmp_path
):
    source = shutil.copytree(checkpoint, tmp_path / "source")
    assert classify(do_train=True, init_checkpoint=source, output_dir=tmp_path / "other").code == 0
    for path in finished.glob("model.ckpt-3.*"):
        shutil.copy(path, source / path.name.replace("-3.", "-5."))
    again = {"do_train": True, "output_dir": tmp_path / "other"}
    message = assert_refused(lambda: classify(init_checkpoint=source, **again), tmp_path / "other")
    assert message.endswith(
        f"it began with {source}/model.ckpt-3, and --init_checkpoint is now {source}/model.ckpt-5; name the former, "
        "leave it out, or choose another folder"
    )
    assert classify(init_checkpoint=source / "model.ckpt-3", **again).code == 0
    assert classify(init_checkpoint=None, **again).code == 0


def test_model_with_a_random_head_is_not_used(classify, checkpoint, assert_refused, tmp_path):
    for do in ("do_eval", "do_predict"):
        message = assert_refused(lambda do=do: classify(**{do: True}), tmp_path / "run")
        assert message == (
            f"--output_dir={tmp_path}/run holds no run, and --init_checkpoint={checkpoint} lacks head/dense/kernel, "
            "which can't be used untrained; check --output_dir, or pass --do_train"
        )
        assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_results_of_other_data_go_elsewhere(classify_only, reviews, finished, contents):
    before = contents(finished)
    flip_labels(reviews / "dev.tsv")
    (reviews / "test.tsv").write_text("document\n재미있다\n")
    result = classify_only(do_eval=True, do_predict=True).succeeded()
    after = contents(finished)
    assert {name: after[name] for name in before} == before, "nothing of the run has changed"
    plot, errors, results, predictions = sorted(after.keys() - before.keys())
    assert re.fullmatch(r"confusion_matrix-dev-[0-9a-f]{8}\.png", plot)
    assert re.fullmatch(r"errors-dev-[0-9a-f]{8}\.tsv", errors)
    assert re.fullmatch(r"eval_results-dev-[0-9a-f]{8}\.json", results)
    assert re.fullmatch(r"predictions-test-[0-9a-f]{8}\.tsv", predictions)
    assert (
        f"wrote 1 predictions of test.tsv to {finished}/{predictions}; predictions.tsv is of other data than test.tsv\n"
        in (result.output)
    )
    assert json.loads(after[results])["accuracy"] == pytest.approx(1 - read_results(finished)["accuracy"])


@pytest.mark.slow
def test_reports_are_of_the_data_of_the_results_whichever_are_evaluated_first(classify, reviews, finished, tmp_path):
    for name in ("eval_results.json", "errors.tsv", "confusion_matrix.png"):
        (finished / name).unlink()
    dev = (reviews / "dev.tsv").read_text()
    flip_labels(reviews / "dev.tsv")
    result = classify(do_eval=True)
    assert result.code == 0 and "eval_results-dev-" in result.output and "errors-dev-" in result.output
    assert not (tmp_path / "run" / "errors.tsv").exists()
    (reviews / "dev.tsv").write_text(dev)
    assert classify(do_eval=True).code == 0
    assert len(read_rows(tmp_path / "run" / "errors.tsv")) == round(
        7 * (1 - read_results(tmp_path / "run")["accuracy"])
    )


@pytest.mark.slow
def test_data_that_were_not_there_while_training_become_the_runs_own(classify, classifier_flags, reviews, tmp_path):
    dev = (reviews / "dev.tsv").read_text()
    (reviews / "dev.tsv").unlink()
    (reviews / "test.tsv").unlink()
    assert classify(do_train=True).code == 0
    for name, text in (("first", dev), ("second", dev + dev.splitlines()[1] + "\n")):
        (reviews / "dev.tsv").write_text(text)
        result = classify(do_eval=True).finished()
        assert ("eval_results-dev-" in result.output) == (name == "second")
    assert read_results(tmp_path / "run")["num_examples"] == 7


def test_training_goes_on_with_the_data_that_it_is_evaluated_on(classify, reviews, finished, assert_refused):
    flip_labels(reviews / "dev.tsv")
    message = assert_refused(lambda: classify(do_train=True, do_eval=True), finished)
    assert "holds a run that is evaluated on dev.tsv with SHA-256 " in message
    assert message.endswith("evaluate the latter without --do_train")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../model.ckpt-3", "model.ckpt-9"])
def test_best_checkpoint_lies_in_its_folder(classify_only, finished, assert_refused, name):
    (finished / "best_checkpoint.json").write_text(json.dumps({"checkpoint": name}))
    message = assert_refused(lambda: classify_only(do_eval=True, eval_checkpoint="best"), finished)
    assert message == (
        f"--eval_checkpoint=best: {finished}/best_checkpoint.json names {name}, which is not in its folder"
    )


@pytest.mark.slow
def test_classifier_of_other_labels_begins_with_a_head_of_its_own(
    classify, finished, reviews, without_training, tmp_path
):
    text = (reviews / "train.tsv").read_text()
    (reviews / "train.tsv").write_text(text + "99\t그저 그렇다\t2\n")
    result = classify(do_train=True, init_checkpoint=finished, output_dir=tmp_path / "other").finished()
    assert "; of another task there, so from random weights here: head\n" in result.output


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
    classify(do_train=True, **flags).succeeded()
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
        ({"regression": True}, "--regression is for texts with one label each, and can't be used with --multi_label"),
        ({"class_weights": "balanced"}, "--class_weights is for texts with one label each"),
        ({"metrics": "accuracy"}, "--metrics=accuracy is not a metric of --multi_label: micro_f1, macro_f1"),
        ({"label_separator": ""}, "--label_separator must be characters without spaces"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(classify, topics, changes, message):
    result = classify(do_train=True, multi_label=True, **changes)
    assert result.code == 1 and message in result.errors
