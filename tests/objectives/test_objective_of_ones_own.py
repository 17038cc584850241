"""An objective in one file and one call: data, training, resume, evaluation, plan, a TPU's compiler and an export."""

import importlib
import json
import pathlib
import re
import shutil
import sys

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.objectives import OBJECTIVES
from albert_tf.serving.loading import load_trained

pytestmark = pytest.mark.slow

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "objectives.md"
# All of it, as the documents show it: nothing of the library is changed for it.
SOURCE = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)[1]


@pytest.fixture(scope="module")
def registered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "fullness.py").write_text(SOURCE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        importlib.import_module("fullness")
        yield "fullness"
    # The fixture may be made once more: a worker's tests of one file need not follow one another.
    del OBJECTIVES["fullness"], sys.modules["fullness"]


@pytest.fixture
def config_file(sample_tokenizer, tmp_path):
    path = tmp_path / "albert_config.json"
    path.write_text(json.dumps(tiny_config(len(sample_tokenizer)).to_dict()))
    return path


@pytest.fixture
def data(registered, run_script, sample_corpus, sample_tokenizer_dir, tmp_path):
    folder = tmp_path / "data"
    result = run_script(
        "create_pretraining_data.py",
        objective=registered,
        input_file=sample_corpus[0],
        vocab_file=f"{sample_tokenizer_dir}/vocab.txt",
        output_file=folder / "train.tfrecord",
        max_seq_length=32,
        held_out_fraction=0.3,
    )
    assert (result.code, result.errors) == (0, "")
    options = json.loads((folder / "manifest.json").read_text())["options"]
    assert (options["packing"], options["objective"]) == ("full_sentences", registered)
    return folder


def values(folder, step=4):
    reader = tf.train.load_checkpoint(str(folder / f"model.ckpt-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if "OBJECT_GRAPH" not in name}


def test_it_goes_through_every_command(
    registered, data, run_script, quick_to_trace, sample_tokenizer, config_file, tmp_path
):
    def pretrain(folder, **flags):
        defaults = {
            "input_file": data / "train.tfrecord",
            "albert_config_file": config_file,
            "output_dir": folder,
            "do_eval": True,
            "train_batch_size": 4,
            "eval_batch_size": 4,
            "num_train_steps": 4,
            "num_warmup_steps": 1,
            "save_checkpoints_steps": 2,
        }
        return run_script("run_pretraining.py", **{**defaults, **flags})

    run = tmp_path / "run"
    result = pretrain(run)
    assert (result.code, result.errors) == (0, "")
    results = json.loads((run / "eval_results.json").read_text())
    assert {"masked_lm_loss", "is_full_loss", "is_full_accuracy"} <= results.keys()
    assert json.loads((run / "run_settings.json").read_text())["objective"] == registered

    killed = shutil.copytree(run, tmp_path / "killed")
    for path in killed.glob("model.ckpt-4.*"):
        path.unlink()
    assert pretrain(killed).code == 0
    for name, value in values(run).items():
        np.testing.assert_array_equal(values(killed)[name], value, err_msg=name)

    refused = pretrain(run, objective="roberta")
    assert refused.code == 1 and f"--objective is roberta, and was {registered}" in refused.errors
    refused = pretrain(tmp_path / "third", objective="albert")
    assert refused.code == 1 and "--objective=albert needs examples packed as order" in refused.errors

    assert load_trained(run, "a test").task is None
    export = tmp_path / "export"
    assert run_script("export_model.py", model_dir=run, output_dir=export).code == 0
    fill_mask = tf.saved_model.load(str(next(export.iterdir()))).signatures["fill_mask"]
    assert fill_mask(text=tf.constant(["나는 [MASK] 먹었다."]))
