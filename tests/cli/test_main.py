"""`albert-tf`: a model answers on the command line, and what else there is is listed and run."""

import importlib
import json
import pathlib
import re
import shlex
import subprocess
import sys
import types

import pytest

import albert_tf
from albert_tf.base.errors import InputError
from albert_tf.cli import main
from albert_tf.cli.commands import COMMANDS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def test_every_stage_is_listed():
    overview = main.overview()
    assert all(f"albert-tf {stage} " in overview and what in overview for stage, _, what in COMMANDS)
    assert max(map(len, overview.splitlines())) <= 120


def test_overview_needs_no_tensorflow():
    code = "import sys, runpy; sys.argv = ['albert-tf']; runpy.run_module('albert_tf', run_name='__main__'); "
    result = subprocess.run(
        [sys.executable, "-c", code + "print('tensorflow' in sys.modules)"], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"{main.overview()}\nFalse\n" and result.stderr == ""


@pytest.mark.parametrize("name", ["run-classifier", "run_classifier", "run_classifier.py"])
def test_stage_is_run_with_what_follows_it(name, monkeypatch):
    seen = []
    module = types.SimpleNamespace(run_classifier=lambda: seen.append(list(sys.argv)))
    monkeypatch.setattr(importlib, "import_module", lambda path: seen.append(path) or module)
    monkeypatch.setattr(sys, "argv", ["albert-tf", name, "--do_train", "--data_dir=x"])
    main.run()
    assert seen == ["albert_tf.cli.training", ["albert-tf run-classifier", "--do_train", "--data_dir=x"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run-classifer"], "there is no stage run-classifer; did you mean run-classifier?"),
        (
            ["안녕"],
            "write [MASK] where a piece of the text is missing, give two texts to compare, or name a fine-tuned model",
        ),
        (["이", "영화", "[MASK]."], 'a text with spaces needs quotation marks around it: albert-tf "이 영화 [MASK]."'),
        (["--top_k=0", "[MASK]"], "top_k must be a whole number from 1 to 8000"),
        (["--model=nowhere", "안녕"], "nowhere: there is no such folder"),
    ],
)
def test_what_can_not_be_asked_is_one_sentence(arguments, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["albert-tf", *arguments])
    with pytest.raises(SystemExit) as stop:
        main.run()
    errors = capsys.readouterr().err
    assert stop.value.code == 1 and errors.startswith(f"error: {message}") and errors.count("\n") == 1


@pytest.mark.slow
def test_pretrained_model_guesses_and_compares(monkeypatch, capsys):
    model = albert_tf.load()
    monkeypatch.setattr(albert_tf, "load", lambda folder: model)
    guesses = model.fill_mask(["이 영화 정말 [MASK]."], 2)[0][0]
    monkeypatch.setattr(sys, "argv", ["albert-tf", "--top_k=2", "이 영화 정말 [MASK]."])
    main.run()
    lines = capsys.readouterr().out.splitlines()
    shown = [f"  {guess['probability']:6.1%}  {guess['text']}" for guess in guesses]
    assert lines == ["이 영화 정말 [MASK].", *shown]
    several = main.answers(model, ["[MASK] 정말 [MASK]"], 1)
    assert several[1::2] == ["  [MASK] number 1:", "  [MASK] number 2:"]
    [line] = main.answers(model, ["비가 온다", "비가 온다"])
    assert line.startswith("1.00  cosine")
    [line] = main.answers(model, ["비가 온다", "비가 내린다"], as_json=True)
    assert json.loads(line)["similarity"] == pytest.approx(float(model.similarity([("비가 온다", "비가 내린다")])[0]))
    [line] = main.answers(model, ["이 영화 정말 [MASK]."], 2, as_json=True)
    assert [guess["piece"] for guess in json.loads(line)["guesses"][0]] == [guess["piece"] for guess in guesses]


def test_what_chooses_among_guesses_is_refused_where_a_text_is_continued():
    causal = types.SimpleNamespace(
        abilities=("generate", "encode"), generate=lambda texts: [{"text": f"{texts[0]} ..."}]
    )
    assert main.answers(causal, ["이 영화"]) == ["이 영화 ..."]
    with pytest.raises(InputError, match=r"--top_k=3 works only where \[MASK\] is filled in; leave it out"):
        main.answers(causal, ["이 영화"], top_k=3)


def test_pieces_of_a_text_are_shown_with_how_probably_each_was_replaced():
    pieces = [{"piece": "밥", "text": "밥", "begin": 0, "end": 1, "probability": 0.25}]

    def fill_mask(texts):
        raise InputError("it has no fill_mask")

    model = types.SimpleNamespace(
        abilities=("find_replaced", "encode"), find_replaced=lambda texts: [pieces], fill_mask=fill_mask
    )
    assert main.answers(model, ["밥"]) == ["밥", "   25.0%  밥"]
    assert json.loads(main.answers(model, ["밥"], as_json=True)[0]) == {"text": "밥", "pieces": pieces}
    with pytest.raises(InputError, match="it has no fill_mask"):
        main.answers(model, ["[MASK] 밥"])


@pytest.mark.parametrize(
    ("fields", "texts", "prediction", "asked", "lines"),
    [
        (
            ("text",),
            ["가"],
            {"label": "b", "probabilities": {"a": 0.25, "b": 0.75}},
            ["가"],
            ["   75.0%  b", "   25.0%  a"],
        ),
        (("text", "text_pair"), ["가", "나"], {"score": 3.25}, [("가", "나")], ["  3.25"]),
        (
            ("text",),
            ["김철수"],
            {"entities": [{"type": "PS", "text": "김철수", "begin": 0, "end": 3}], "tags": ["B-PS"]},
            ["김철수"],
            ["  PS  김철수 (0-3)"],
        ),
        (("text",), ["가"], {"entities": []}, ["가"], ["  no entity"]),
        (("question", "context"), ["왜?", "가"], {"text": "", "score": -1.0}, [("왜?", "가")], ["  no answer"]),
        (
            ("passage", "question", "options"),
            ["글", "왜?", "가", "나"],
            {"label": "A", "probabilities": {"A": 0.9, "B": 0.1}},
            [("글", "왜?", ["가", "나"])],
            ["   90.0%  A", "   10.0%  B"],
        ),
    ],
)
def test_predictions_of_every_task_are_shown(fields, texts, prediction, asked, lines):
    seen = []
    model = types.SimpleNamespace(
        abilities=("encode", "predict"),
        task=types.SimpleNamespace(input_fields=fields),
        predict=lambda inputs: seen.extend(inputs) or [prediction],
    )
    assert main.answers(model, texts)[1:] == lines
    assert seen == asked
    [line] = main.answers(model, texts, as_json=True)
    assert json.loads(line).items() >= json.loads(json.dumps(prediction)).items()
    if len(fields) > 1:
        with pytest.raises(InputError, match=f"this model reads {' and '.join(fields)}; give each as a separate text"):
            main.answers(model, texts[:1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_first_examples_of_the_readme_are_what_the_model_answers(capsys, monkeypatch, name):
    text = (ROOT / name).read_text(encoding="utf-8")
    [(command, shown)] = re.findall(r"^\$ albert-tf (.*)\n([^$]*)", text, re.MULTILINE)[:1]
    monkeypatch.setattr(sys, "argv", ["albert-tf", *shlex.split(command)])
    main.run()
    assert capsys.readouterr().out == shown
    names = {"albert_tf": albert_tf}
    *lines, last = re.findall(r"^>>> (.*)$", text, re.MULTILINE)
    exec("\n".join(lines), names)
    assert f"{last}\n{eval(last, names)!r}\n" in text
