"""The Python examples of docs/library.md run, top to bottom, on runs of a few steps."""

import json
import pathlib
import re

import pytest
from tiny_config import tiny_config

from albert_tf.corpus.reader import CorpusReader
from albert_tf.objectives import AlbertPretraining
from albert_tf.pretraining_data.build.builder import BuilderOptions, build
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.training.run_folder.checkpoints import Checkpointer, model_state

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture
def demo_output(tmp_path, monkeypatch, sample_corpus, sample_tokenizer):
    """Makes a small demo_output, and samples, in the folder that becomes the current one."""
    import tensorflow as tf

    from albert_tf.modeling.layers import named_variables

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
    model = AlbertPretraining(config).make_model()
    checkpointer = Checkpointer(str(pretraining), model_state(named_variables(model), tf.Variable(1, dtype=tf.int64)))
    checkpointer.save()
    checkpointer.wait()
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("demo_output", "quick_to_trace")
def test_examples_of_the_library_run():
    text = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    code = re.sub(r"num_train_steps=\d+", "num_train_steps=2", "\n".join(blocks))
    names = {}
    exec(re.sub(r"num_warmup_steps=\d+", "num_warmup_steps=1", code), names)
    assert names["run"].step == 2
    assert len(names["predictions"]) == len(names["dev_file"].examples)
    assert names["predictions"][0].keys() == {"label", "probabilities"}
