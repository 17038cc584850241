"""score-text: what a pre-trained folder says of every line of a file, resumed where it was stopped, and mistakes."""

import json

import pytest
from runs import read_rows

import albert_tf

TEMPLATE = "{text} 한마디로 {answer}\n1: 재밌다\n0: 재미없다\n"


@pytest.fixture
def given(checkpoint, reviews, tmp_path):
    """Flags of a file with labels, and of what is written."""
    (tmp_path / "template.txt").write_text(TEMPLATE)
    return {
        "model_dir": checkpoint,
        "input_file": reviews / "dev.tsv",
        "input_fields": "document",
        "output_file": tmp_path / "out.jsonl",
    }


@pytest.fixture
def labels(given, reviews, tmp_path):
    """Flags of a template with examples."""
    examples = {"train_file": reviews / "train.tsv", "num_examples": 2}
    return {**given, "template_file": tmp_path / "template.txt", **examples}


def answers(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_file_gets_the_scores_of_its_texts(run_script, given, reviews, tmp_path):
    texts = [row["document"] for row in read_rows(reviews / "dev.tsv")]
    result = run_script("score-text", **given, predict_batch_size=3).succeeded()
    assert f"\nwrote {given['output_file']}: {len(texts)} lines; " in result.output
    model = albert_tf.load(given["model_dir"])
    for each, of_text in zip(answers(tmp_path / "out.jsonl"), model.score(texts), strict=True):
        assert each.pop("id") and each == pytest.approx(of_text, rel=1e-5)
    table = {**given, "output_file": tmp_path / "out.tsv", "with_inputs": True}
    assert run_script("score-text", **table, method="piece").code == 0
    rows, expected = read_rows(tmp_path / "out.tsv"), [each["score"] for each in model.score(texts, "piece")]
    assert [row["document"] for row in rows] == texts
    assert [float(row["score"]) for row in rows] == pytest.approx(expected, rel=1e-5)
    assert list(rows[0])[:4] == ["id", "document", "score", "per_character"]


@pytest.mark.slow
def test_file_gets_labels_and_how_often_they_are_right(run_script, labels, reviews, tmp_path):
    result = run_script("score-text", **labels, compare="score", random_seed=3).succeeded()
    rows, found = read_rows(reviews / "dev.tsv"), answers(tmp_path / "out.jsonl")
    assert [each["given_label"] for each in found] == [row["label"] for row in rows]
    for each in found:
        assert each["label"] == max(each["answers"], key=lambda label: each["answers"][label]["score"])
    right = sum(each["given_label"] == each["label"] for each in found) / len(found)
    assert f"of {len(found)} labels right: " in result.output and f", {right:.1%} by score, " in result.output
    table = {**labels, "output_file": tmp_path / "out.tsv", "compare": "score", "random_seed": 3}
    assert run_script("score-text", **table).code == 0
    scores = [float(row["answers.1.pmi"]) for row in read_rows(tmp_path / "out.tsv")]
    assert scores == pytest.approx([each["answers"]["1"]["pmi"] for each in found], abs=1e-5)


def test_bad_lines_are_skipped_where_asked(run_script, given, tmp_path):
    (tmp_path / "in.txt").write_text("좋다\n\n[MASK] 좋다\n")
    flags = {**given, "input_file": tmp_path / "in.txt", "on_bad_row": "skip"}
    del flags["input_fields"]
    assert run_script("score-text", **flags).code == 0
    first, *errors = answers(tmp_path / "out.jsonl")
    assert first["num_pieces"] and [list(each) for each in errors] == [["error"]] * 2
    assert errors[0]["error"] == f"{tmp_path}/in.txt, line 2: is empty, so there is nothing to score; leave it out"
    assert "in.txt, line 3: contains [MASK], but only whole texts are scored" in errors[1]["error"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_dir": "nowhere"}, "nowhere: there is no such folder"),
        ({"input_file": ""}, "--input_file is missing; see --help"),
        (
            {"output_file": "out.csv"},
            "--output_file=out.csv: lines of JSON or tab-separated ones are the output format; use a name such as ",
        ),
        ({"compare": "score"}, "--compare has no effect without --template_file; leave it out, or name the file"),
        ({"label_field": "a"}, "--label_field has no effect without --template_file"),
        ({"random_seed": 1, "template_file": "template.txt"}, "--random_seed has no effect without --train_file"),
        (
            {"method": "piece", "template_file": "template.txt"},
            "--method can't be used with --template_file, which masks within words",
        ),
        ({"template_file": "nowhere.txt"}, "nowhere.txt"),
    ],
)
def test_mistake_costs_one_sentence(run_script, given, tmp_path, assert_refused, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    assert message in assert_refused(lambda: run_script("score-text", **{**given, **changes}), tmp_path)


def test_fine_tuned_model_has_no_scores(run_script, given, exported_classifier, tmp_path, assert_refused):
    message = assert_refused(lambda: run_script("score-text", **{**given, "model_dir": exported_classifier}), tmp_path)
    assert message.endswith("an export, has no score; it has predict")
