"""predict: what a fine-tuned folder says of every line of a file, and mistakes in what it is asked to do."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from runs import read_rows

import albert_tf

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
def test_file_gets_the_predictions_of_the_run(classified, run_script, tmp_path, assert_refused):
    expected = read_rows(classified / "predictions.tsv")
    texts = [row["text"] for row in expected]
    (tmp_path / "in.txt").write_text("".join(text + "\n" for text in texts))
    output = tmp_path / "predictions.jsonl"
    flags = {"model_dir": classified, "input_file": tmp_path / "in.txt", "output_file": output}

    result = run_script("predict", **flags).succeeded()
    assert f"\nwrote {output}: {len(texts)} lines; " in result.output
    found = [json.loads(line) for line in output.read_text().splitlines()]
    assert [answer["label"] for answer in found] == [row["prediction"] for row in expected]
    for answer, row in zip(found, expected):
        assert answer["probabilities"]["1"] == pytest.approx(float(row["p(1)"]), abs=1e-4)

    def refused(**changes):
        return assert_refused(lambda: run_script("predict", **{**flags, **changes}), tmp_path)

    assert refused() == f"{output} is there already; choose another place, or pass --overwrite to replace it"
    assert run_script("predict", **flags, overwrite=True).code == 0
    other = tmp_path / "other.jsonl"
    message = refused(output_file=other, input_fields="a,b")
    assert "in.txt, line 1: no column named a; " in message and message.endswith("with --input_fields")
    message = refused(output_file=other, input_file=tmp_path / "*.*")
    assert message.endswith("*.* names 2 files; predict one at a time")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_dir": ""}, "--model_dir is missing; see --help"),
        ({"model_dir": "nowhere"}, "--model_dir=nowhere: there is no such folder; put the name right"),
        (
            {"output_file": "out.csv"},
            "--output_file=out.csv: lines of JSON are the output format; use a name such as something.jsonl",
        ),
        ({"output_file": "new/"}, "--output_file=new/ is a folder; name a file in it"),
        ({"output_file": "/", "overwrite": True}, "--output_file=/ is a folder; name a file in it"),
        ({"input_file": "nowhere.txt"}, "--input_file: no file matches nowhere.txt"),
        ({}, "holds no fine-tuned model with its run_settings.json; name a folder that"),
    ],
)
def test_mistake_costs_one_sentence(run_script, tmp_path, assert_refused, changes, message):
    (tmp_path / "in.txt").write_text("좋다\n")
    flags = {"model_dir": tmp_path, "input_file": tmp_path / "in.txt", "output_file": tmp_path / "out.jsonl"}
    assert message in assert_refused(lambda: run_script("predict", **{**flags, **changes}), tmp_path)


@pytest.mark.slow
def test_litert_export_answers_a_file_without_tensorflow(export_classifier, tmp_path):
    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")
    folder, texts = export_classifier("litert"), ["좋다", "", "정말 재미있는 영화 " * 20, "\x00 ㅋㅋ 👩‍🚀"]
    expected = albert_tf.load(folder).predict(texts)
    for name in ("tensorflow", "keras"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('{name} is not wanted here')")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}

    def predict(**flags):
        given = [f"--{name}={value}" for name, value in flags.items()]
        command = [sys.executable, "-m", "albert_tf", "predict", *given]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        errors = [line for line in done.stderr.splitlines() if not line.startswith("INFO: Created TensorFlow Lite")]
        return done.returncode, done.stdout, errors

    (tmp_path / "in.txt").write_text("".join(text + "\n" for text in texts))
    flags = {"model_dir": folder, "input_file": "in.txt", "output_file": "new/out.jsonl"}
    code, printed, errors = predict(**flags)
    assert (code, errors) == (0, []) and "\nwrote new/out.jsonl: 4 lines; " in printed
    found = [json.loads(line) for line in (tmp_path / "new" / "out.jsonl").read_text().splitlines()]
    assert [answer["label"] for answer in found] == [answer["label"] for answer in expected]
    for answer, other in zip(found, expected, strict=True):
        assert answer["probabilities"] == pytest.approx(other["probabilities"], abs=1e-6)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out.jsonl"]

    # A bad line is the end, and nothing is left of what was done before it.
    (tmp_path / "in.jsonl").write_text('"좋다"\n' * 70 + "{\n")
    flags = {**flags, "input_file": "in.jsonl", "output_file": "new/other.jsonl", "predict_batch_size": 4}
    code, _, [error] = predict(**flags)
    assert code == 1 and error.endswith("or pass --on_bad_row=skip")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out.jsonl"]
    code, printed, errors = predict(**flags, on_bad_row="skip")
    assert (code, errors) == (0, []) and "71 lines, 1 of them an error in place of an answer; " in printed
    # Only files that are elsewhere need it.
    code, _, errors = predict(**{**flags, "input_file": "gs://bucket/in.txt"})
    assert code == 1 and errors[-1].endswith("tensorflow is not wanted here")
