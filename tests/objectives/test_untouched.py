"""What an objective says that no loss depends on is what has no gradient."""

import pytest
import tensorflow as tf
from tiny_config import tiny_config
from tiny_entities import NUM_PIECES, with_entities

from albert_tf.modeling.layers import named_variables
from albert_tf.objectives.objective import with_batch_size
from albert_tf.tpu.compile_step import planned_names, planned_objective, zeros

CONFIG = tiny_config(50)
TAUGHT = ("distil",)  # needs the folder of a teacher; see test_distillation.py


def config_for(name):
    if name == "entities":
        return with_entities(tiny_config(NUM_PIECES))
    return CONFIG.replace(is_causal=name == "causal")


OBJECTIVES = {
    **{name: planned_objective(name, config_for(name)) for name in planned_names() if name not in TAUGHT},
    "mean": planned_objective("classify", CONFIG.replace(classifier_pooling="mean")),
    "aligned": planned_objective("score", CONFIG.replace(classifier_pooling="aligned")),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_untouched_variables_have_no_gradient(name):
    objective = OBJECTIVES[name]
    batch = zeros(with_batch_size(objective.batch_spec(8), 2))
    models = objective.make_models()
    model = models["model"]
    variables = {name: variable for name, variable in named_variables(model).items() if variable.trainable}
    with tf.GradientTape() as tape:
        computed = objective.compute(batch, training=True, dropout_seed=tf.constant([1, 2]), **models)
        loss = tf.add_n([computed[loss][0] for loss in objective.loss_coefficients])
    gradients = tape.gradient(loss, variables)
    untouched = {each for each in variables if each.startswith(objective.untouched(model))}
    assert untouched == {each for each, gradient in gradients.items() if gradient is None}
    reads_all = ("albert", "bert", "korealbert", "classify", "multi_label", "score", "race")
    assert bool(untouched) == (name not in reads_all)
