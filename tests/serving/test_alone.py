"""Exports where albert_tf is not: a process with TensorFlow and TensorFlow Text loads them and answers the same."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from tiny_config import tiny_config

from albert_tf.exports import DEFAULT
from albert_tf.finetuning import Entities, QuestionAnswering
from albert_tf.serving.exported import ExportedModel

pytestmark = pytest.mark.slow

TEXTS = ["정말 재미있는 영화였다.", "", "김민수 씨는 부산에서 \x00 👩‍🚀 ㅋㅋㅋ " * 20]
# In no file, for Python would find what lies beside it.
PROGRAM = """
import json, sys
sys.modules["albert_tf"] = None  # where it is installed, it can't be imported either
import tensorflow as tf, tensorflow_text
columns = json.load(sys.stdin)
signature = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
outputs = signature(**{name: tf.constant(texts) for name, texts in columns.items()})
assert not [name for name in sys.modules if name.startswith("albert_tf.")]
def plain(value):
    return value.decode() if isinstance(value, bytes) else [*map(plain, value)] if isinstance(value, list) else value
print(json.dumps({name: plain(values.numpy().tolist()) for name, values in outputs.items()}))
"""


def ask_alone(folder, columns, cwd):
    """Returns what an export answers in a process that has neither our path nor the directory of the tests."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM, str(pathlib.Path(folder, "1"))],
        input=json.dumps(columns),
        capture_output=True,
        text=True,
        cwd=cwd,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def decoded(value):
    return value.decode() if isinstance(value, bytes) else [decoded(each) for each in value]


def assert_same(folder, columns, cwd):
    found = ask_alone(folder, columns, cwd)
    expected = ExportedModel(folder).answer(DEFAULT, columns)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        if values.dtype == object:
            assert found[name] == decoded(values.tolist())
        else:
            np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-6)
    return found


def test_labels(exported_classifier, tmp_path):
    found = assert_same(exported_classifier, {"text": TEXTS}, tmp_path)
    assert set(found["label"]) <= {"나쁨", "좋음"}


def test_entities(export_task, sample_tokenizer, tmp_path):
    task = Entities(tiny_config(len(sample_tokenizer), initializer_range=0.5), ("PS", "LC"))
    found = assert_same(export_task(task), {"text": TEXTS}, tmp_path)
    parts = zip(found["begins"][2], found["ends"][2], found["texts"][2])
    assert any(found["types"][2]) and all(TEXTS[2][begin:end] == part for begin, end, part in parts if begin >= 0)


def test_answers(export_task, sample_tokenizer, tmp_path):
    task = QuestionAnswering(tiny_config(len(sample_tokenizer), initializer_range=0.5))
    found = assert_same(export_task(task), {"question": ["누구인가?"] * 3, "context": TEXTS}, tmp_path)
    assert found["answer"][2] == TEXTS[2][found["begin"][2] : found["end"][2]] != ""
