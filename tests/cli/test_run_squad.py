"""run_squad.py from flags to answers and scores."""

import json
import os
import pathlib
import re
import signal

import pytest
from runs import assert_same_run, read_results

import albert_tf
from albert_tf.finetuning import runner

CITIES = ["서울", "부산", "대구", "인천", "광주", "대전"]


def write_questions(path, cities, **fields):
    """Writes a file with a question about each city, in a text that takes two windows of 32 pieces or more."""
    paragraphs = []
    for number, city in enumerate(cities):
        context = f"비가 오는 날이었다. 그는 아침에 일찍 집을 나섰다. 기차를 타고 {city}에 갔다. 친구와 밥을 먹었다."
        answers = [{"text": city, "answer_start": context.index(city)}]
        question = {"id": f"{path.stem}-{number}", "question": "그는 어디에 갔는가?", "answers": answers, **fields}
        paragraphs.append({"context": context, "qas": [question]})
    write_version(path, "KorQuAD_v1.0", paragraphs)
    return path


def write_version(path, version, paragraphs):
    """Writes a file of paragraphs that calls itself something."""
    path.write_text(json.dumps({"version": version, "data": [{"title": "여행", "paragraphs": paragraphs}]}))


@pytest.fixture
def squad_flags(finetuning_flags, tmp_path):
    """Flags of a run of four steps."""
    files = {
        "train_file": write_questions(tmp_path / "train.json", CITIES),
        "predict_file": write_questions(tmp_path / "dev.json", CITIES[:3]),
    }
    return {**files, **finetuning_flags, "train_step": 4, "n_best_size": 3}


@pytest.fixture
def squad(run_script, squad_flags):
    """Runs the script; flags may be added, replaced or, with None, left out."""
    return lambda **changes: run_script("run_squad.py", **{**squad_flags, **changes})


def read_json(folder, name):
    return json.loads((folder / name).read_text())


@pytest.mark.slow
def test_model_is_trained_evaluated_and_used(squad, squad_flags, run_script, contents, tmp_path):
    run = tmp_path / "run"
    result = squad(do_train=True, do_eval=True, do_predict=True).succeeded()
    reason = "because dev.json calls itself KorQuAD_v1.0"
    assert f"\n--metrics=korquad, {reason}; for other rules pass --metrics=squad or --metrics=klue\n" in result.output
    assert read_json(run, "eval_settings.json") == {"metrics": "korquad"}
    told = re.search(
        r"^6 questions about 6 texts in .*train.json: (\d+) windows of up to 32 pieces$", result.output, re.M
    )
    assert int(told[1]) >= 12
    results = read_results(run)
    assert results["num_examples"] == 3 and results["global_step"] == 4
    assert 0 <= results["exact_match"] <= results["f1"] <= 100
    assert (run / "errors.tsv").read_text().startswith("id\tquestion\tanswers\tprediction\tf1\n")
    assert read_json(run, "albert_config.json")["question_alignment"] == "words"
    answers, nbest = read_json(run, "predictions.json"), read_json(run, "nbest_predictions.json")
    assert list(answers) == list(nbest) == ["dev-0", "dev-1", "dev-2"]
    context = json.loads(squad_flags["predict_file"].read_text())["data"][0]["paragraphs"][0]["context"]
    assert answers["dev-0"] in context
    assert [len(each) for each in nbest.values()] == [3] * 3
    assert all(answers[name] == each[0]["text"] for name, each in nbest.items())
    assert not (run / "null_odds.json").exists()

    # What a finished folder holds is enough to go on with.
    before = contents(run)
    for name in ("eval_results.json", "predictions.json", "nbest_predictions.json"):
        (run / name).unlink()
    assert run_script("run_squad.py", output_dir=run, do_eval=True, do_predict=True, n_best_size=3).code == 0
    assert contents(run)["predictions.json"] == before["predictions.json"]
    assert read_results(run) == pytest.approx(results, rel=1e-5)
    assert all(isinstance(value, (int, float)) for value in results.values())
    other = write_questions(tmp_path / "other.json", CITIES[3:], answers=None)
    result = run_script("run_squad.py", output_dir=run, do_predict=True, predict_file=other)
    (written,) = re.findall(r"wrote 3 predictions of other.json to .*/(predictions-other-\w+\.json); ", result.output)
    assert (
        list(read_json(run, f"nbest_{written}")) == list(read_json(run, written)) == ["other-0", "other-1", "other-2"]
    )
    assert contents(run)["predictions.json"] == before["predictions.json"]

    # And in Python.
    document = read_json(tmp_path, "dev.json")["data"][0]["paragraphs"]
    asked = [(paragraph["qas"][0]["question"], paragraph["context"]) for paragraph in document]
    found = [prediction["text"] for prediction in albert_tf.load(run).predict(asked)]
    assert found == list(read_json(run, "predictions.json").values())


@pytest.mark.slow
def test_rules_are_the_same_for_a_file_and_its_half_and_when_it_is_evaluated_again(squad, run_script, tmp_path):
    run = tmp_path / "run"
    assert squad(do_train=True, train_step=1).code == 0

    def told(**changes):
        """Returns which rules an evaluation says it goes by, and why, and which it writes down."""
        result = run_script("run_squad.py", output_dir=run, do_eval=True, **changes).succeeded()
        lines = re.findall(r"^--metrics=(.*); for other rules", result.output, re.M)
        (written,) = re.findall(r"wrote the eval settings to (.*?)(?:;.*)?$", result.output, re.M)
        return lines, json.loads(pathlib.Path(written).read_text())["metrics"]

    answers = [{"text": "Rome", "answer_start": 11}]
    english = {"context": "He went to Rome.", "qas": [{"id": "e", "question": "Where " * 50, "answers": answers}]}
    write_version(tmp_path / "half.json", "1.0", [english])
    line = "korquad, because half.json doesn't say which rules it follows"
    assert told(predict_file=tmp_path / "half.json") == ([line], "korquad")
    assert told(metrics="squad") == ([], "squad")
    again = ["squad, as before, though dev.json calls itself KorQuAD_v1.0"]
    assert told(metrics="auto") == (again, "squad")


@pytest.mark.slow
def test_epochs_are_counted_in_windows(squad, without_training):
    result = squad(do_train=True, train_step=None, num_train_epochs=2).finished()
    windows = int(re.search(r"train.json: (\d+) windows of up to 32 pieces$", result.output, re.M)[1])
    assert windows > len(CITIES)
    assert without_training[0].phases[-1].end_step == round(2 * windows / 4)


@pytest.mark.slow
def test_stopped_run_goes_on_to_the_same_result(squad, tmp_path, monkeypatch):
    flag_values = {"do_train": True, "do_eval": True, "eval_every_steps": 2}
    assert squad(output_dir=tmp_path / "whole", **flag_values).code == 0
    make_dev_dataset = runner._dev_dataset

    def stop_and_make(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return make_dev_dataset(*arguments)

    with monkeypatch.context() as stopping:
        stopping.setattr(runner, "_dev_dataset", stop_and_make)
        stopped = squad(**flag_values)
    assert stopped.code == 143 and "stopped by SIGTERM; saved at step 2; " in stopped.output
    assert not (tmp_path / "run" / "eval_results.json").exists()
    assert squad(**flag_values).code == 0
    assert_same_run(tmp_path / "run", tmp_path / "whole", 4)


@pytest.mark.slow
def test_questions_may_have_no_answer(squad, run_script, tmp_path):
    run = tmp_path / "run"
    for name, cities in (("train", CITIES), ("dev", CITIES[:3])):
        content = json.loads(write_questions(tmp_path / f"{name}.json", cities).read_text())
        content["data"][0]["paragraphs"][1]["qas"][0].update(is_impossible=True, answers=[])
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    flags = {"do_train": True, "do_eval": True, "do_predict": True, "version_2_with_negative": True}
    result = squad(**flags, metrics="klue").succeeded()
    assert "\n1 of the questions have no answer\n" in result.output
    results = read_results(run)
    assert "answerability_loss" in results, "the default is the conditional head"
    assert (results["HasAns_total"], results["NoAns_total"]) == (2, 1)
    assert results["rouge_w"] <= results["best_rouge_w"]
    other = run_script("run_squad.py", output_dir=run, do_train=True, do_eval=True, metrics="squad")
    assert "another run: --metrics is squad, and was klue; " in other.errors
    odds = read_json(run, "null_odds.json")
    assert list(odds) == ["dev-0", "dev-1", "dev-2"]
    # The run knows that questions may have no answer; the threshold is free.
    again = {"output_dir": run, "do_predict": True, "null_score_diff_threshold": -1e6}
    assert run_script("run_squad.py", **again).code == 0
    assert not any(read_json(run, "predictions.json").values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "nothing to do: pass --do_train, --do_eval or --do_predict"),
        ({"do_train": True, "train_file": None}, "--train_file is missing; see --help"),
        ({"do_eval": True, "predict_file": None}, "--predict_file is missing; see --help"),
        ({"do_train": True, "train_file": "nowhere.json"}, "can't read the questions nowhere.json: no such file"),
        ({"do_train": True, "doc_stride": 0}, "--doc_stride must be a whole number, at least 1. Received: 0"),
    ],
)
def test_mistake_costs_one_sentence(squad, assert_refused, tmp_path, changes, message):
    assert re.match(message, assert_refused(lambda: squad(**changes), tmp_path / "run"))
    assert not (tmp_path / "run").exists(), "the folder is still free for the corrected command"


def test_mistake_in_the_dev_file_is_found_before_training(squad, squad_flags, assert_refused, tmp_path):
    path = write_questions(squad_flags["predict_file"], CITIES[:3], is_impossible=True)
    message = assert_refused(lambda: squad(do_train=True, do_eval=True), tmp_path / "run")
    assert message.startswith(f"{path}: 3 questions have no answer, the first of them dev-0; pass --version_2")


@pytest.mark.slow
@pytest.mark.usefixtures("without_training")
def test_questions_that_can_not_be_used_may_be_left_out(squad, squad_flags):
    content = json.loads(squad_flags["train_file"].read_text())
    content["data"][0]["paragraphs"][2]["qas"][0].pop("question")
    squad_flags["train_file"].write_text(json.dumps(content))
    result = squad(do_train=True, on_bad_row="skip").finished()
    assert (
        "\nwarning: 1 entry left out; the first: " in result.output and 'question train-2: "question"' in result.output
    )
    assert "\n5 questions about 5 texts in " in result.output


@pytest.mark.slow
def test_other_cutting_than_the_run_has_is_refused(squad, squad_flags, assert_refused, without_training, tmp_path):
    assert squad(do_train=True, doc_stride=7).code == 0
    message = assert_refused(lambda: squad(do_train=True, doc_stride=8), tmp_path / "run")
    assert "--doc_stride" in message


def test_length_is_that_of_squad_or_what_the_model_reads(squad, without_training, tmp_path):
    assert squad(do_train=True, max_seq_length=None).code == 0
    assert json.loads((tmp_path / "run" / "run_settings.json").read_text())["max_seq_length"] == 128
