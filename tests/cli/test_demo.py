"""The demo: the whole road in one command."""

import json

import pytest

from albert_tf.cli import demo
from albert_tf.config import AlbertConfig


def test_folder_that_holds_something_else_is_left_alone(run_script, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.txt").write_text("mine")
    result = run_script("demo.py", output_dir=tmp_path, overwrite=True)
    assert result.code == 1
    assert result.errors.startswith("error: --output_dir=")
    assert (tmp_path / "data" / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("corpus", ["missing.txt", "."])
def test_corpus_without_text_is_named(run_script, tmp_path, monkeypatch, corpus):
    monkeypatch.chdir(tmp_path)
    result = run_script("demo.py", output_dir=tmp_path / "output", corpus=corpus)
    assert result.code == 1
    assert result.errors.startswith("error: --corpus: no ")
    assert not (tmp_path / "output").exists()


@pytest.fixture
def small_demo(monkeypatch, write_config):
    """Lets the demo train a tiny model."""
    config = AlbertConfig.from_json_file(demo.CONFIG).replace(hidden_size=16, num_hidden_layers=1, intermediate_size=16)
    monkeypatch.setattr(demo, "CONFIG", str(write_config(config)))


@pytest.mark.slow
@pytest.mark.usefixtures("small_demo")
def test_demo_goes_all_the_way(run_script, tmp_path, sample_corpus):
    flag_values = {"output_dir": tmp_path / "output", "corpus": sample_corpus[0], "num_train_steps": 10}
    first = run_script("demo.py", **flag_values)
    assert first.code == 0, first.errors
    results = json.loads((tmp_path / "output" / "demo_results.json").read_text())
    assert results["vocab_size"] == 6000
    assert results["classifier_accuracy_majority"] == 0.5
    assert f"Training examples                   {results['training_examples']:,}\n" in first.output
    for name in ("vocabulary/vocab.txt", "data/manifest.json", "pretraining/loss.png", "classifier/predictions.tsv"):
        assert (tmp_path / "output" / name).exists(), name

    # A second demo replaces this one only if asked to, as `make demo` does.
    assert run_script("demo.py", **flag_values).code == 1
