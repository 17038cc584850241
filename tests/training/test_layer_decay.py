"""The learning rate falls from block to block, as ELECTRA's does when it is fine-tuned."""

import pytest
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.modeling import AlbertForSequenceClassification
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.training import RunSettings
from albert_tf.training.settings import layer_rate_factors
from albert_tf.training.train_state import learnt_variables


def factors_of(**changes):
    model = AlbertForSequenceClassification(tiny_config(num_hidden_layers=3, **changes), 2)
    return named_variables(model), layer_rate_factors(named_variables(model), 0.5)


def test_each_block_has_half_the_rate_of_the_one_above_it():
    variables, factors = factors_of(sharing="none")
    for name in variables:
        expected = 1.0  # of heads and the pooler
        for part, factor in (("embedding", 1 / 16), ("layers/0/", 1 / 8), ("layers/1/", 1 / 4), ("layers/2/", 1 / 2)):
            expected = factor if part in name else expected
        assert factors.get(name, 1.0) == expected, name
    assert sum(name.startswith("encoder/embedding_hidden_mapping_in/") for name in factors) == 2


def test_generator_of_electra_has_the_factors_of_its_depth():
    objective = make_objective("electra", tiny_config(num_hidden_layers=3, sharing="none", pooler=False))
    variables = learnt_variables(objective, objective.make_models())
    factors = layer_rate_factors(variables, 0.5)
    of_generator = {name: factor for name, factor in factors.items() if name.startswith("generator/")}
    assert of_generator["generator/encoder/attention_layers/0/query/kernel"] == 1 / 8
    for name, factor in of_generator.items():
        twin = name.removeprefix("generator/")
        assert factors.get(twin, 1 / 16) == factor, name
    assert not any("head/" in name for name in factors)


def test_shared_block_is_one_block():
    _, factors = factors_of()
    assert set(factors.values()) == {1 / 2, 1 / 4}


def test_published_factors_of_electra_are_within_reach():
    """Its code has d^(L + 2 - depth) for embeddings (depth 0) and layers (depth 1 to L), and 1 for the head."""
    variables, _ = factors_of(sharing="none")
    settings = {"num_train_steps": 9, "train_batch_size": 4, "layer_decay": 0.8}
    run = RunSettings(learning_rate=1e-4 * 0.8, head_learning_rate=1e-4, **settings)
    factors = run._rate_factors(variables)
    published = {"embeddings/": 0.8**5, "attention_layers/0/": 0.8**4, "feed_forward_layers/2/": 0.8**2, "head/": 1.0}
    for part, factor in published.items():
        name = next(name for name in variables if part in name)
        assert run.learning_rate * factors[name] == pytest.approx(1e-4 * factor), name


@pytest.mark.parametrize("value", [0.0, 1.5, -1.0])
def test_decay_out_of_range_is_refused(value):
    with pytest.raises(InputError, match="`layer_decay` must be a number"):
        RunSettings(num_train_steps=9, train_batch_size=4, learning_rate=1e-4, layer_decay=value)
