"""run_race.py from flags to scores and predictions."""

import json
import re

import numpy as np
import pytest
from runs import read_results, read_rows

import albert_tf
from albert_tf.runs.settings.race import RaceSettings

SUBJECTS = ("비가", "눈이", "바람이", "친구가", "동생이")
VERBS = ["온다", "간다", "운다", "웃는다"]


def article(name, number):
    """Returns an article of two questions with four options each."""
    subject, verb = SUBJECTS[number % 5], number % 4
    return {
        "article": f"오늘은 {subject} {VERBS[verb]}. 내일은 모른다.",
        "questions": [f"오늘은 {subject} _.", "무엇을 하나?"],
        "options": [VERBS, VERBS[::-1]],
        "answers": ["ABCD"[verb], "DCBA"[verb]],
        "id": name,
    }


@pytest.fixture
def race_folder(tmp_path):
    """RACE's folders with a few articles: 12 questions to train on, 10 to evaluate on, 6 to predict."""
    folder = tmp_path / "RACE"
    for part, counts in (("train", (4, 2)), ("dev", (2, 3)), ("test", (1, 2))):
        for level, count in zip(("middle", "high"), counts):
            (folder / part / level).mkdir(parents=True)
            for number in range(count):
                text = json.dumps(article(f"{level}{number}.txt", number))
                (folder / part / level / f"{number}.txt").write_text(text)
    return folder


@pytest.fixture
def lines_folder(tmp_path):
    """JSON lines of three options; those to predict have no answers."""
    folder = tmp_path / "lines"
    folder.mkdir()
    for part in ("train", "dev", "test"):
        rows = []
        for number in range(5):
            values = article("", number)
            row = {"passage": values["article"], "question": values["questions"][0], "options": VERBS[:3]}
            rows.append(row if part == "test" else {**row, "answer": number % 3})
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def race(run_script, race_folder, finetuning_flags):
    """Runs the script; flags may be added, replaced or, with None, left out."""
    usual = {"data_dir": race_folder, **finetuning_flags, "max_seq_length": 40}
    return lambda **changes: run_script("run_race.py", **{**usual, **changes})


def probabilities_in(rows, letters="ABCD"):
    return np.array([[float(row[f"p({letter})"]) for letter in letters] for row in rows])


@pytest.mark.slow
def test_race_is_trained_evaluated_and_predicted(race, run_script, race_folder, tmp_path, contents):
    run = tmp_path / "run"
    result = race(do_train=True, do_eval=True, do_predict=True, eval_every_steps=2).succeeded()
    assert f"12 questions with 4 options each in {race_folder}/train (8 middle, 4 high)\n" in result.output
    told = re.search(r"^steps 0 to 3: batch 4, sequences of (\d+) pieces, ", result.output, re.MULTILINE)
    assert 8 <= int(told[1]) <= 40
    assert f"wrote 6 predictions of test to {run}/predictions.tsv\n" in result.output
    results = read_results(run)
    assert results["num_examples"] == 10
    assert len(read_rows(run / "errors.tsv")) == round(10 * (1 - results["accuracy"]))
    counts = {"middle": 4, "high": 6}
    right = sum(results[f"{level}_accuracy"] * count for level, count in counts.items())
    assert results["accuracy"] == pytest.approx(right / 10)
    assert results["loss"] == results["multiple_choice_loss"]

    predictions = read_rows(run / "predictions.tsv")
    names = ["middle0.txt:1", "middle0.txt:2", "high0.txt:1", "high0.txt:2", "high1.txt:1", "high1.txt:2"]
    assert [row["id"] for row in predictions] == names
    assert [row["label"] for row in predictions] == ["A", "D", "A", "D", "B", "C"]
    probabilities = probabilities_in(predictions)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, atol=3e-4)
    predicted = [float(row[f"p({row['prediction']})"]) for row in predictions]
    np.testing.assert_allclose(predicted, probabilities.max(axis=-1), atol=1e-4)

    # The folder knows the rest, and evaluates the dev folder's predictions to the same accuracy.
    before = contents(run)
    (run / "eval_results.json").unlink()
    (run / "predictions.tsv").unlink()
    assert run_script("run_race.py", output_dir=run, do_eval=True, do_predict=True).code == 0
    assert read_results(run) == pytest.approx(results, rel=1e-5)
    assert contents(run)["predictions.tsv"] == before["predictions.tsv"]

    values = article("", 1)
    asked = [
        (values["article"], question, options) for question, options in zip(values["questions"], values["options"])
    ]
    answers = albert_tf.load(run).predict(asked)
    found = [list(answer["probabilities"].values()) for answer in answers]
    np.testing.assert_allclose(found, probabilities[-2:], atol=1e-4)
    assert answers[0]["option"] == VERBS["ABCD".index(answers[0]["label"])]


@pytest.mark.slow
def test_json_lines_say_how_many_options_there_are(race, run_script, lines_folder, tmp_path, sample_tokenizer):
    run = tmp_path / "run"
    flag_values = {"task_name": "jsonl", "data_dir": lines_folder, "max_qa_length": 9}
    assert race(do_train=True, do_predict=True, **flag_values).code == 0
    settings = json.loads((run / "run_settings.json").read_text())
    assert (settings["num_choices"], settings["max_qa_length"], settings["task_name"]) == (3, 9, "jsonl")
    assert json.loads((run / "albert_config.json").read_text())["hidden_dropout_prob"] == 0.0  # classifiers get more
    before = read_rows(run / "predictions.tsv")
    assert [row["label"] for row in before] == [""] * 5
    assert list(before[0])[-3:] == ["p(A)", "p(B)", "p(C)"]

    (lines_folder / "train.jsonl").unlink()
    assert run_script("run_race.py", output_dir=run, do_predict=True).code == 0
    assert read_rows(run / "predictions.tsv") == before


@pytest.mark.slow
@pytest.mark.usefixtures("without_training")
def test_lines_that_can_not_be_used_may_be_left_out(race, lines_folder):
    path = lines_folder / "train.jsonl"
    path.write_text("{\n" + path.read_text())
    result = race(do_train=True, task_name="jsonl", data_dir=lines_folder, on_bad_row="skip").finished()
    assert f"\nwarning: 1 entry left out; the first: {path}, line 1: not JSON " in result.output
    assert "\n5 questions with 3 options each in " in result.output


@pytest.mark.slow
@pytest.mark.usefixtures("without_training")
def test_length_that_nobody_says_is_the_models_up_to_512(race, write_config, tiny_config, checkpoint, tmp_path):
    config_file = write_config(tiny_config.replace(max_position_embeddings=600))
    model = {"albert_config_file": config_file, "vocab_file": checkpoint / "vocab.txt", "init_checkpoint": None}
    assert race(do_train=True, max_seq_length=None, **model).code == 0
    assert json.loads((tmp_path / "run" / "run_settings.json").read_text())["max_seq_length"] == 512


@pytest.mark.parametrize(
    ("flag_values", "message"),
    [
        ({"middle_only": True, "high_only": True}, "--middle_only and --high_only exclude each other; "),
        ({"task_name": "jsonl", "high_only": True}, "--high_only is for --task_name=race; leave it out"),
        ({"task_name": "jsonl"}, "--data_dir={folder} has no train.jsonl"),
        ({"num_choices": 3}, "{folder}/train/middle/0.txt, question 1: 4 options, but the model chooses from 3; "),
    ],
)
def test_wrong_flags_cost_one_sentence(race, race_folder, tmp_path, assert_refused, flag_values, message):
    told = assert_refused(lambda: race(do_train=True, **flag_values), tmp_path)
    assert told.startswith(message.format(folder=race_folder))


def test_one_level_may_be_read_alone(tiny_config):
    settings = RaceSettings(data_dir="RACE", high_only=True)
    assert settings.make_task(tiny_config).settings()["levels"] == ["high"]


def test_options_are_read_off_the_last_piece_of_a_causal_model(tiny_config):
    for is_causal, pooling in ((True, "last"), (False, "first")):
        task = RaceSettings(data_dir="RACE").make_task(tiny_config.replace(is_causal=is_causal))
        assert task.config.classifier_pooling == pooling
        assert task.make_model().config.classifier_pooling == pooling
