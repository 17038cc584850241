"""docs/troubleshooting.md has every sentence that the commands can end with."""

import ast
import importlib

import pytest
from pages import ROOT


@pytest.fixture
def generator(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("generate_troubleshooting")


def test_pages_are_made_from_the_code_as_it_is(generator):
    for language, text in generator.write_pages().items():
        page = generator.PAGES[language].read_text(encoding="utf-8")
        assert page == text, "run python docs/generate_troubleshooting.py"


def test_sentences_of_a_real_mistake_are_found(generator, run_script, tmp_path):
    message = run_script("run_pretraining.py", do_train=False, output_dir=tmp_path).errors
    assert message == "error: nothing to do: pass --do_train or --do_eval\n"
    assert "- `nothing to do: pass --do_train or --do_eval`\n" in generator.PAGES["en"].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("source", "sentences"),
    [
        ("'plain'", ["plain"]),
        ("f'{path} has {count:,} lines'", ["… has … lines"]),
        ("f'{a} is b' if c else 'no d'", ["… is b", "no d"]),
        ("'one ' + f'{two}'", ["one …"]),
        ("str(error)", ["…"]),
    ],
)
def test_what_changes_is_left_open(generator, source, sentences):
    assert generator.sentences_of(ast.parse(source, mode="eval").body) == sentences


def test_texts_that_a_function_assigns_are_put_in(generator):
    function = ast.parse(
        "def f(path):\n    how = 'shorter' if path else 'longer'\n    raise InputError(f'{path}: make it {how}')"
    )
    sentence = next(node for node in ast.walk(function) if isinstance(node, ast.Raise)).exc.args[0]
    said = generator.sentences_of(sentence, generator.assigned_texts(function))
    assert said == ["…: make it shorter", "…: make it longer"]
