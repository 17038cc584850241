"""The table of our variables says what our models have."""

import numpy as np
import pytest
from random_models import CLASSES, CONFIGS, read_variables, write_ours
from tiny_config import tiny_config

from albert_tf.finetuning import TASKS
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.variables import variable_shapes
from albert_tf.modeling.layers import named_variables

OF_DISTANCES = {
    "own keys": {"relative_attention": "c2p", "position_buckets": 4},
    "own queries": {"relative_attention": "p2c", "num_hidden_layers": 2, "sharing": "none"},
    "both, as in version 3": {"relative_attention": "p2c|c2p", "share_att_key": True, "norm_rel_ebd": "layer_norm"},
    "no positions": {"relative_attention": "p2c|c2p", "position_biased_input": False, "type_vocab_size": 0},
}
ALL_CONFIGS = {**CONFIGS, **{name: tiny_config(**values) for name, values in OF_DISTANCES.items()}}


@pytest.mark.parametrize("name", ALL_CONFIGS)
def test_table_has_the_variables_of_the_pre_training_model(name):
    model = CLASSES[None](ALL_CONFIGS[name])
    shapes = {name: tuple(variable.shape) for name, variable in named_variables(model).items()}
    assert variable_shapes(ALL_CONFIGS[name]) == shapes


@pytest.mark.parametrize("name", OF_DISTANCES)
def test_model_that_reads_distances_is_published_whole(name, tmp_path, sample_tokenizer):
    config = ALL_CONFIGS[name].replace(vocab_size=len(sample_tokenizer))
    folder, model = write_ours(tmp_path / "run", config, tokenizer=sample_tokenizer)
    convert_checkpoint("albert_tf", "albert_tf", folder, str(tmp_path / "model"), weights_dtype="float32")
    found = read_variables(tmp_path / "model")
    expected = {name: variable.numpy() for name, variable in named_variables(model).items()}
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], value) for name, value in expected.items())


@pytest.mark.parametrize(
    ("task", "outputs"), [("classify", 3), ("score", 0), ("tag", 5), ("squad", 0), ("squad_v2", 0)]
)
def test_table_has_the_variables_of_every_head(task, outputs):
    config = CONFIGS["albert"]
    model = CLASSES[task](config)
    shapes = {name: tuple(variable.shape) for name, variable in named_variables(model).items()}
    found = variable_shapes(config, TASKS[task], outputs)
    assert {name: shape for name, shape in found.items() if name.startswith(("encoder/", "head/"))} == shapes
