"""The table of our variables says what our models have."""

import pytest
from random_models import CLASSES, CONFIGS

from albert_tf.finetuning import TASKS
from albert_tf.interchange.variables import variable_shapes
from albert_tf.modeling.layers import named_variables


@pytest.mark.parametrize("name", CONFIGS)
def test_table_has_the_variables_of_the_pre_training_model(name):
    model = CLASSES[None](CONFIGS[name])
    shapes = {name: tuple(variable.shape) for name, variable in named_variables(model).items()}
    assert variable_shapes(CONFIGS[name]) == shapes


@pytest.mark.parametrize(
    ("task", "outputs"), [("classify", 3), ("score", 0), ("tag", 5), ("squad", 0), ("squad_v2", 0)]
)
def test_table_has_the_variables_of_every_head(task, outputs):
    config = CONFIGS["albert"]
    model = CLASSES[task](config)
    shapes = {name: tuple(variable.shape) for name, variable in named_variables(model).items()}
    found = variable_shapes(config, TASKS[task], outputs)
    assert {name: shape for name, shape in found.items() if name.startswith(("encoder/", "head/"))} == shapes
