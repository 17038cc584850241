"""Every test that is marked keras_2, under Keras 2 (TF_USE_LEGACY_KERAS=1), which is what is proven on TPUs."""

import os
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

pytest.importorskip("tf_keras")

TESTS = pathlib.Path(__file__).resolve().parent.parent
MARK = "pytest.mark." + "keras_2"  # so that this file is none of those


@pytest.mark.slow
@pytest.mark.skipif(tf.keras.__name__.startswith("tf_keras"), reason="runs under Keras 2 already")
def test_marked_tests_pass_under_keras_2():
    files = [str(path) for path in sorted(TESTS.rglob("test_*.py")) if MARK in path.read_text(encoding="utf-8")]
    assert len(files) > 5
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "keras_2", *files]
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
    finished = subprocess.run(command, env=environment, cwd=TESTS.parent, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout[-5000:] + finished.stderr[-1000:]
    assert " passed" in finished.stdout
