"""The Python examples of documents run, each document from top to bottom, on runs of a few steps."""

import json
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.pretraining_data.making.builder import BuilderOptions, build
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.reading.documents import CorpusReader
from albert_tf.training.run_folder.checkpoints import Checkpointer

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture
def demo_output(tmp_path, monkeypatch, sample_corpus, sample_tokenizer):
    """Makes a small demo_output, and samples, in the folder that becomes the current one."""
    config = tiny_config(len(sample_tokenizer))
    data, pretraining = tmp_path / "demo_output" / "data", tmp_path / "demo_output" / "pretraining"
    data.mkdir(parents=True)
    build(
        CorpusReader(sample_corpus[:2]),
        sample_tokenizer,
        BuilderOptions(32, MaskingOptions(5), held_out_fraction=0.3),
        [str(data / "train.tfrecord")],
        [str(data / "held_out.tfrecord")],
    )
    sample_tokenizer.save(str(pretraining))
    (pretraining / "albert_config.json").write_text(json.dumps(config.to_dict()))
    model = make_objective("albert", config).make_model()
    checkpointer = Checkpointer(
        str(pretraining),
        {
            **{f"model/{name}": value for name, value in named_variables(model).items()},
            "global_step": tf.Variable(1, dtype=tf.int64),
        },
    )
    checkpointer.save()
    checkpointer.wait()
    for name in ("samples", "models"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)


def examples_of(document):
    """Returns the Python code of a document."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    # tests/training/test_trackers.py runs those of services.
    return "\n".join(block for block in blocks if not block.startswith(("import wandb", "import mlflow")))


@pytest.mark.slow
@pytest.mark.usefixtures("demo_output", "quick_to_trace")
def test_examples_of_the_library_run():
    code = re.sub(r"num_train_steps=\d+", "num_train_steps=2", examples_of("library.md"))
    names = {}
    exec(re.sub(r"num_warmup_steps=\d+", "num_warmup_steps=1", code), names)
    assert names["run"].step == 2
    assert {split for _, split, _ in names["losses"]} == {"train", "held_out"}
    assert len(names["predictions"]) == len(names["dev_file"].examples)
    assert names["predictions"][0].keys() == {"label", "probabilities"}


@pytest.mark.slow
def test_examples_for_users_of_keras_run(tmp_path, monkeypatch):
    for folder in ("models", "samples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    code = examples_of("keras.md").replace("epochs=5", "epochs=1").replace(".batch(16)", ".batch(16).take(2)")
    names = {}
    exec(code, names)
    assert len(names["history"].history["val_accuracy"]) == 1
    expected = names["model"](tf.constant(["정말 재밌어요", "시간이 아깝다"]))
    for found in (names["answers"], names["served"]):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert (tmp_path / "best.keras").exists() and (tmp_path / "history.csv").exists()


def test_entities_without_josa(capsys):
    pytest.importorskip("kiwipiepy", reason="needs kiwipiepy: pip install 'albert_tf[vocab]'")
    for page in ("entities.md", "entities.ko.md"):
        exec(examples_of(page), {})
        assert capsys.readouterr().out == "['서울', '김철수 씨', '삼성전자']\n"
