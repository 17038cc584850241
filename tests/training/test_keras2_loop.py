"""The loop under Keras 2 (TF_USE_LEGACY_KERAS=1), which is what is proven on TPUs."""

import os
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

pytest.importorskip("tf_keras")

FOLDER = pathlib.Path(__file__).resolve().parent


@pytest.mark.slow
@pytest.mark.skipif(tf.keras.__name__.startswith("tf_keras"), reason="runs under Keras 2 already")
def test_tests_of_the_loop_pass_under_keras_2():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "keras_2", str(FOLDER)]
    command.append(str(FOLDER.parent / "objectives" / "test_several_models.py"))
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
    finished = subprocess.run(command, env=environment, cwd=FOLDER.parent.parent, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout[-5000:] + finished.stderr[-1000:]
    assert " passed" in finished.stdout
