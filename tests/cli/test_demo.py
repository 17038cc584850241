"""The demo: the whole road in one command."""

import importlib.util
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

from albert_tf.cli import demo
from albert_tf.config import AlbertConfig


def test_folder_that_holds_something_else_is_left_alone(run_script, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.txt").write_text("mine")
    result = run_script("demo", output_dir=tmp_path, overwrite=True)
    assert result.code == 1
    assert result.errors.startswith("error: --output_dir=")
    assert (tmp_path / "data" / "thesis.txt").read_text() == "mine"


def test_output_that_is_a_file_costs_one_sentence(run_script, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    result = run_script("demo", output_dir=tmp_path / "thesis.txt", overwrite=True)
    assert result.code == 1
    assert result.errors.startswith(f"error: --output_dir={tmp_path}/thesis.txt can't be written to (")
    assert (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("corpus", ["missing.txt", "."])
def test_corpus_without_text_is_named(run_script, tmp_path, monkeypatch, corpus):
    monkeypatch.chdir(tmp_path)
    result = run_script("demo", output_dir=tmp_path / "output", corpus=corpus)
    assert result.code == 1
    assert result.errors.startswith("error: --corpus: no ")
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize(
    ("gained", "lost", "told"),
    [
        (24, 5, "+9.5 points over random weights: pre-training pays"),
        (22, 13, "+4.5 points over random weights, but 200 reviews can't tell that from chance"),
        (0, 0, "+0.0 points over random weights, but 200 reviews can't tell that from chance"),
        (2, 40, "-19.0 points against random weights: too little text, or of another kind"),
    ],
)
def test_conclusion_is_what_the_reviews_allow(gained, lost, told):
    right_from_random = np.arange(200) < 100
    right = (np.arange(200) < 100 - lost) | (np.arange(200) >= 200 - gained)
    assert demo.conclusion(right, right_from_random) == told


def test_held_out_metrics_are_the_first_and_the_best(tmp_path):
    losses = [("held_out", 8.0), ("train", 1.0), ("held_out", 6.0), ("held_out", 7.0)]
    lines = [json.dumps({"split": split, "loss": loss}) for split, loss in losses]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    assert [metrics["loss"] for metrics in demo.held_out_metrics(tmp_path)] == [8.0, 6.0]


@pytest.fixture
def small_demo(monkeypatch, write_config, run_script, checkpoint, tmp_path):
    """Lets the demo train a tiny model, and start from another that has learnt nothing."""
    config = AlbertConfig.from_json_file(demo.CONFIG)
    config = config.replace(vocab_size=2000, hidden_size=16, num_hidden_layers=1, intermediate_size=16)
    for name, count in (("train", 24), ("dev", 16)):
        lines = (pathlib.Path(demo.REVIEWS) / f"{name}.tsv").read_text(encoding="utf-8").splitlines()[: count + 1]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr(demo, "REVIEWS", str(tmp_path))
    monkeypatch.setattr(demo, "CONFIG", str(write_config(config)))
    assert run_script("convert_checkpoint.py", input_path=checkpoint, output_dir=tmp_path / "shipped").code == 0
    monkeypatch.setattr(demo, "SHIPPED_MODEL", str(tmp_path / "shipped"))


@pytest.fixture
def quick_to_start(forked, monkeypatch, tmp_path):
    """Forks the processes of all stages but the first, so that TensorFlow need not be imported for each."""
    run = subprocess.run

    def run_or_fork(command, check):
        _, script, *arguments = command
        if os.path.basename(script) == "build_vocab.py":
            return run(command, check=check)
        flags = (argument.removeprefix("--").partition("=") for argument in arguments)
        values = {name: value if equals else True for name, equals, value in flags}
        ended = forked.run(os.path.basename(script), values, tmp_path)
        print(ended.output, ended.errors)
        return subprocess.CompletedProcess(command, ended.code)

    monkeypatch.setattr(demo.subprocess, "run", run_or_fork)


@pytest.mark.slow
@pytest.mark.usefixtures("small_demo", "quick_to_start")
def test_demo_goes_all_the_way(run_script, tmp_path, sample_corpus):
    flag_values = {"output_dir": tmp_path / "output", "corpus": sample_corpus[0], "num_train_steps": 4}
    first = run_script("demo", **flag_values).finished()
    results = json.loads((tmp_path / "output" / "demo_results.json").read_text())
    assert results["vocab_size"] == AlbertConfig.from_json_file(demo.CONFIG).vocab_size
    assert results["classifier_accuracy_majority"] >= 0.5
    starts = ["majority", "random_weights", "own_text", "shipped_model"]
    if importlib.util.find_spec("sklearn"):
        starts.insert(1, "linear")
    title, underline, *rows = first.output.splitlines()[-2 - len(starts) :]
    assert title == "16 reviews classified, after learning from 24"
    assert underline == "-" * len(title)
    for row, start in zip(rows, starts, strict=True):
        assert f"  {results[f'classifier_accuracy_{start}']:.1%}  " in row
    for name in (
        "vocabulary/vocab.txt",
        "data/manifest.json",
        "pretraining/loss.png",
        "classifier_from_shipped_model/predictions.tsv",
    ):
        assert (tmp_path / "output" / name).exists(), name

    # A second demo replaces this one only if asked to, as `make demo` does.
    assert run_script("demo", **flag_values).code == 1
