"""Teachers in folders."""

import json

import pytest
from distilled_models import random_model

from albert_tf.base.checkpoint_files import write_checkpoint
from albert_tf.modeling.layers import named_variables


@pytest.fixture
def write_teacher(tmp_path):
    """Writes a model into a folder, as a run leaves it, and returns the folder."""

    def write(config, seed=1, without=()):
        folder = tmp_path / f"teacher{seed}"
        folder.mkdir()
        (folder / "albert_config.json").write_text(json.dumps(config.to_dict()))
        values = {name: value.numpy() for name, value in named_variables(random_model(config, seed)).items()}
        kept = {f"model/{name}": value for name, value in values.items() if not name.startswith(tuple(without))}
        write_checkpoint(str(folder / "model.ckpt-0"), kept)
        return str(folder)

    return write
