"""Learning from a frozen teacher: two replicas learn as one does, and the teacher stays as it is."""

import json

import numpy as np
import pytest
from tiny_training import CONFIG, PREDICTIONS, SEQUENCE_LENGTH, TinyRun, assert_same_training, make_examples

from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import DataOptions, make_objective

pytestmark = [pytest.mark.slow, pytest.mark.keras_2]


@pytest.mark.parametrize(("kind", "width"), [("relations", 16), ("logits", 16), ("layers", 8)])
def test_two_replicas_learn_as_one(kind, width, tmp_path):
    (tmp_path / "albert_config.json").write_text(json.dumps(CONFIG.replace(num_hidden_layers=2).to_dict()))
    settings = {"teacher": str(tmp_path), "distillation": kind}
    objective = make_objective(
        "distil", CONFIG.replace(hidden_size=width), options=DataOptions(PREDICTIONS, settings=settings)
    )
    examples = {name: make_examples(24)[name] for name in objective.batch_spec(SEQUENCE_LENGTH)}
    for name in {"input_mask", "masked_lm_weights"} & examples.keys():
        examples[name][3::4] = 0  # as what fills a batch
    runs = []
    for num_replicas in (1, 2):
        run = TinyRun.start(num_replicas, optimizer="adamw", objective=objective)
        teacher = named_variables(run.state.models["teacher"])
        before = {name: variable.numpy() for name, variable in teacher.items()}
        run.take_steps(examples, 8)
        for name, variable in teacher.items():
            np.testing.assert_array_equal(variable.numpy(), before[name])
        names = run.state.named_variables()
        assert not [name for name in names if "teacher" in name]
        assert ("projection/kernel" in names) == ("first_moments/projection/kernel" in names) == (kind == "layers")
        runs.append(run)
    assert_same_training(*runs)
    assert runs[0].averages.keys() >= objective.loss_coefficients.keys()
