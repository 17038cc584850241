"""A new setting is one line: it is a flag, a keyword of Python's functions, kept by runs, and can be searched."""

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest
from runs import write_model

from albert_tf.modeling import AlbertForPreTraining

LIBRARY = pathlib.Path(__file__).resolve().parent.parent.parent / "albert_tf"
LINE = '    brand_new: float = setting(0.5, "Something new.", least=0, search=True)\n'
PROGRAM = """
    import json, sys
    import albert_tf
    from albert_tf.base.errors import InputError

    model, run = sys.argv[1:]

    def fit(**settings):
        albert_tf.fit(["좋다", "나쁘다"] * 8, ["a", "b"] * 8, model, run, verbose=0, baselines=False,
                      num_train_steps=2, max_seq_length=8, dev_fraction=0, **settings)

    def refusal(**settings):
        try:
            fit(**settings)
        except InputError as error:
            return str(error)

    assert refusal(brand_new=-1) == "`brand_new` must be a number, at least 0. Received: -1"
    fit(brand_new=2)
    path = f"{run}/run_settings.json"
    kept = json.load(open(path))
    assert kept["brand_new"] == 2.0
    assert "`brand_new` is 3.0, and was 2.0; " in refusal(brand_new=3)
    # A run that was begun before there was the setting had its default.
    del kept["brand_new"]
    json.dump(kept, open(path, "w"))
    fit()
    assert "`brand_new` is 2.0, and was 0.5; " in refusal(brand_new=2)
"""


@pytest.fixture
def library(tmp_path):
    """A folder with the library in it, and a line more."""
    shutil.copytree(LIBRARY, tmp_path / "with" / "albert_tf", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "with" / "albert_tf" / "runs" / "settings" / "classifier.py"
    before, border, after = path.read_text(encoding="utf-8").partition('    command = "run_classifier"\n')
    assert border
    path.write_text(before + border + LINE + after, encoding="utf-8")
    return tmp_path / "with"


@pytest.mark.slow
def test_one_line_makes_a_setting(library, tiny_config, sample_tokenizer, tmp_path):
    pytest.importorskip("optuna")
    model = str(write_model(tmp_path / "model", AlbertForPreTraining(tiny_config), sample_tokenizer))
    environment = {**os.environ, "PYTHONPATH": str(library), "PYTHONSAFEPATH": "1"}

    def run(*arguments):
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)

    tried = run("-c", textwrap.dedent(PROGRAM), model, tmp_path / "run")
    assert tried.returncode == 0, tried.stderr
    command = ["-m", "albert_tf", "run-classifier", f"--output_dir={tmp_path}/x", "--do_train", "--do_eval"]
    searched = run(*command, "--brand_new=1", "--trials=brand_new:1|2").stderr
    assert "--brand_new=1.0 is fixed; leave one of them" in searched
