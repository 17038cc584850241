"""Exports where albert_tf is not: a process with TensorFlow and TensorFlow Text loads them and answers the same."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from tiny_config import tiny_config

from albert_tf.asking.answers import DEFAULT
from albert_tf.finetuning import QuestionAnswering
from albert_tf.serving.formats import open_export

pytestmark = pytest.mark.slow

TEXTS = ["정말 재미있는 영화였다.", "", "김민수 씨는 부산에서 \x00 👩‍🚀 ㅋㅋㅋ " * 20]
# In no file, for Python would find what lies beside it.
PROGRAM = """
import json, sys
sys.modules["albert_tf"] = None  # where it is installed, it can't be imported either
import tensorflow as tf, tensorflow_text
def plain(value):
    return value.decode() if isinstance(value, bytes) else [*map(plain, value)] if isinstance(value, list) else value
for folder, columns in json.load(sys.stdin):
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    outputs = signature(**{name: tf.constant(texts) for name, texts in columns.items()})
    assert not [name for name in sys.modules if name.startswith("albert_tf.")]
    print(json.dumps({name: plain(values.numpy().tolist()) for name, values in outputs.items()}))
"""


def ask_alone(asked, cwd):
    """Returns what exports answer in a process that has neither our path nor the directory of the tests."""
    given = json.dumps([(str(pathlib.Path(folder, "1")), columns) for folder, columns in asked])
    command = [sys.executable, "-I", "-c", PROGRAM]
    done = subprocess.run(command, input=given, capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return list(map(json.loads, done.stdout.splitlines()))


def decoded(value):
    return value.decode() if isinstance(value, bytes) else [decoded(each) for each in value]


def assert_same(found, folder, columns):
    expected = open_export(folder).compute(DEFAULT, columns)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        if values.dtype == object:
            assert found[name] == decoded(values.tolist())
        else:
            np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-6)


def test_labels_and_answers(exported_classifier, export_task, sample_tokenizer, tmp_path):
    config = tiny_config(len(sample_tokenizer), initializer_range=0.5)
    asked = [
        (exported_classifier, {"text": TEXTS}),
        (export_task(QuestionAnswering(config)), {"question": ["누구인가?"] * 3, "context": TEXTS}),
    ]
    found = ask_alone(asked, tmp_path)
    for answers, (folder, columns) in zip(found, asked, strict=True):
        assert_same(answers, folder, columns)
    assert found[1]["answer"][2] == TEXTS[2][found[1]["begin"][2] : found[1]["end"][2]] != ""
