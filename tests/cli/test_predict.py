"""predict.py: what a fine-tuned folder says of every line of a file, and mistakes in what it is asked to do."""

import json

import pytest
from runs import read_rows


@pytest.mark.slow
def test_file_gets_the_predictions_of_the_run(classify, run_script, reviews, tmp_path, assert_refused):
    assert classify(do_train=True, do_predict=True).code == 0
    expected = read_rows(tmp_path / "run" / "predictions.tsv")
    texts = [row["text"] for row in expected]
    (tmp_path / "in.txt").write_text("".join(text + "\n" for text in texts))
    output = tmp_path / "predictions.jsonl"
    flags = {"model_dir": tmp_path / "run", "input_file": tmp_path / "in.txt", "output_file": output}

    result = run_script("predict.py", **flags)
    assert (result.code, result.errors) == (0, "")
    assert result.output.startswith(f"wrote {output}: {len(texts)} lines; ")
    found = [json.loads(line) for line in output.read_text().splitlines()]
    assert [answer["label"] for answer in found] == [row["prediction"] for row in expected]
    for answer, row in zip(found, expected):
        assert answer["probabilities"]["1"] == pytest.approx(float(row["p(1)"]), abs=1e-4)

    def refused(**changes):
        return assert_refused(lambda: run_script("predict.py", **{**flags, **changes}), tmp_path)

    assert refused() == f"{output} is there already; choose another folder, or pass --overwrite to replace it"
    assert run_script("predict.py", **flags, overwrite=True).code == 0
    other = tmp_path / "other.jsonl"
    message = refused(output_file=other, input_fields="a,b")
    assert message == "--input_fields=a,b: this model reads 1, text; name the field of each"
    message = refused(output_file=other, input_file=tmp_path / "*.*")
    assert message.endswith("*.* names 2 files; predict one after the other")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_dir": ""}, "--model_dir is missing; see --help"),
        ({"input_file": "nowhere.txt"}, "--input_file: no file matches nowhere.txt"),
        ({}, "holds no run, not a fine-tuned model with its run_settings.json; name the --output_dir of"),
    ],
)
def test_mistake_costs_one_sentence(run_script, tmp_path, assert_refused, changes, message):
    (tmp_path / "in.txt").write_text("좋다\n")
    flags = {"model_dir": tmp_path, "input_file": tmp_path / "in.txt", "output_file": tmp_path / "out.jsonl"}
    assert message in assert_refused(lambda: run_script("predict.py", **{**flags, **changes}), tmp_path)
