"""The notebooks run from top to bottom at reduced size, and both files of each pair say the same."""

import copy
import os
import pathlib
import re
import shutil

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbformat; pip install -r requirements-notebooks.txt")
jupytext = pytest.importorskip("jupytext", reason="needs jupytext; pip install -r requirements-notebooks.txt")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient; pip install -r requirements-notebooks.txt")
pytest.importorskip("ipykernel", reason="needs ipykernel; pip install -r requirements-notebooks.txt")

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SECONDS_PER_CELL = 600
MOST_BYTES = 1_500_000
# What a notebook says where it finds what it has trained, and how many models it trains.
NOTHING_TO_TRAIN = "nothing to train"
# Run in the kernel after the set-up: as `quick_to_trace` in conftest.py, for the few steps of these runs.
QUICK_TO_TRACE = """
import tensorflow as tf

from albert_tf.base import compilation

tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
compilation._xla_compiles_here = lambda: False
"""
TRAINED = {"01_from_scratch": 1, "02_fine_tuning": 2, "03_questions_and_entities": 3, "04_inside_albert": 2}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder like a checkout, with the library, its models and samples, and room for what notebooks write."""
    monkeypatch.setenv("ALBERT_TF_NOTEBOOK_TEST", "1")
    for name in ("albert_tf", "configs", "models", "samples", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    return tmp_path


def run_all(path, count):
    """Runs every cell of a notebook so many times in one kernel; returns it with the outputs of each time."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    set_up = next(number for number, cell in enumerate(notebook.cells) if cell.cell_type == "code")
    notebook.cells.insert(set_up + 1, nbformat.v4.new_code_cell(QUICK_TO_TRACE))
    client = nbclient.NotebookClient(notebook, timeout=SECONDS_PER_CELL, kernel_name="python3", resources=resources)
    runs = []
    with client.setup_kernel():
        for _ in range(count):
            for number, cell in enumerate(notebook.cells):
                client.execute_cell(cell, number)
            runs.append(copy.deepcopy(notebook))
    return runs


def source_of(path):
    """Returns the kind and the text of every cell."""
    return [(cell.cell_type, cell.source.strip()) for cell in jupytext.read(path).cells]


def outputs_of(notebook):
    """Yields every output of a notebook."""
    for cell in notebook.cells:
        yield from cell.get("outputs", [])


def said_in(notebook):
    """Returns all that a notebook printed."""
    return "".join(output.text for output in outputs_of(notebook) if output.output_type == "stream")


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_both_files_of_a_pair_say_the_same(path):
    assert source_of(path) == source_of(path.with_suffix(".py"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_outputs_are_those_of_a_whole_run(path):
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in outputs_of(notebook) if output.output_type == "error"]
    assert path.stat().st_size < MOST_BYTES
    texts = [
        {**output.get("data", {}), "image/png": ""} | {"text": output.get("text")} for output in outputs_of(notebook)
    ]
    shown = str(texts)
    assert not re.search("/(tmp|home|root|usr)/|site-packages", shown), "paths of the machine that it was run on"
    assert "a test: nothing is installed" not in shown


def test_all_begin_with_the_same_set_up():
    cells = {next(text for kind, text in source_of(path) if kind == "code") for path in NOTEBOOKS}
    assert len(cells) == 1


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_from_top_to_bottom_and_again(path, checkout):
    first, *again = run_all(checkout / "notebooks" / path.name, 2 if path.stem in TRAINED else 1)
    # Everything that a notebook writes is in one folder of the checkout, and the samples stay as they are.
    written = {name for name in os.listdir(checkout) if not (checkout / name).is_symlink()}
    assert written <= {"notebooks", "notebook_output"}
    for notebook in (first, *again):
        assert [output for output in outputs_of(notebook) if "text/html" in output.get("data", {})]
    # What was trained the first time is not trained again.
    trained = re.findall("^steps 0 to", said_in(first), re.MULTILINE)
    assert len(trained) == TRAINED.get(path.stem, 0) and NOTHING_TO_TRAIN not in said_in(first)
    assert all(said_in(second).count(NOTHING_TO_TRAIN) == len(trained) for second in again)
