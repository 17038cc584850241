"""The models' variables: how many numbers they hold, what they are called, how they start."""

import math

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining, AlbertForSequenceClassification
from albert_tf.modeling.layers import named_variables

END_OF_BLOCK = "output_dense/kernel output_dense/bias layer_norm/gamma layer_norm/beta"
PARTS = {
    "encoder/embeddings": "word_embeddings token_type_embeddings position_embeddings layer_norm/gamma layer_norm/beta",
    "encoder/embedding_hidden_mapping_in": "kernel bias",
    "encoder/attention_layers/0/query": "kernel bias",
    "encoder/attention_layers/0/key": "kernel bias",
    "encoder/attention_layers/0/value": "kernel bias",
    "encoder/attention_layers/0": END_OF_BLOCK,
    "encoder/feed_forward_layers/0/intermediate": "kernel bias",
    "encoder/feed_forward_layers/0": END_OF_BLOCK,
    "encoder/pooler": "kernel bias",
    "masked_lm_head": "transform/kernel transform/bias layer_norm/gamma layer_norm/beta output_bias",
    "sentence_order_head/dense": "kernel bias",
}
TINY_VARIABLES = [f"{layer}/{part}" for layer, parts in PARTS.items() for part in parts.split()]


def count_parameters(model_class, config):
    """Returns the size of all variables, of a model built in a graph: nothing is allocated."""
    with tf.Graph().as_default():
        return sum(math.prod(variable.shape) for variable in named_variables(model_class(config)).values())


def base_config(**changes):
    return AlbertConfig(30000, 128, 768, 12, num_attention_heads=12, intermediate_size=3072, **changes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "total"), [("base", 11_813_810), ("large", 17_847_474), ("xlarge", 59_021_490), ("xxlarge", 223_158_450)]
)
def test_released_sizes_have_the_original_number_of_parameters(pytestconfig, size, total):
    config = AlbertConfig.from_json_file(pytestconfig.rootpath / "configs" / f"albert_{size}_v2.json")
    assert count_parameters(AlbertForPreTraining, config) == total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("embedding_size", "sharing", "total"),
    [
        (64, "all", 9_681_408),
        (768, "none", 109_081_344),
        (128, "attention", 63_647_232),
        (128, "ffn", 37_686_528),
    ],
)
def test_ablations_have_the_number_of_parameters_of_the_paper(embedding_size, sharing, total):
    config = base_config(sharing=sharing).replace(embedding_size=embedding_size)  # base models of tables 3 and 4
    assert count_parameters(AlbertEncoder, config) == total


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "inner"), [(2, 1), (2, 3)])
def test_parameters_grow_with_groups_and_inner_groups(groups, inner):
    block = 2_363_904 + 4_723_968  # attention and feed-forward of base
    one_block = count_parameters(AlbertEncoder, base_config())
    many = count_parameters(AlbertEncoder, base_config(num_hidden_groups=groups, inner_group_num=inner))
    assert many - one_block == (groups * inner - 1) * block


def test_names_stay_as_checkpoints_know_them(tiny_config):
    assert list(named_variables(AlbertForPreTraining(tiny_config))) == TINY_VARIABLES


def test_names_number_groups_and_layers(tiny_config):
    names = named_variables(AlbertEncoder(tiny_config.replace(sharing="ffn", num_hidden_layers=3)))
    assert {name.rsplit("/", 2)[0] for name in names if name.endswith("gamma")} >= {
        "attention_layers/0",
        "attention_layers/1",
        "attention_layers/2",
        "feed_forward_layers/0",
    }
    assert not any(name.startswith("feed_forward_layers/1") for name in names)


def test_fine_tuning_shares_the_names_of_the_encoder(tiny_config):
    names = list(named_variables(AlbertForSequenceClassification(tiny_config, 3)))
    encoder = [name for name in TINY_VARIABLES if name.startswith("encoder/")]
    assert names == [*encoder, "head/dense/kernel", "head/dense/bias"]


def test_every_weight_of_keras_has_a_name(tiny_config):
    model = AlbertForPreTraining(tiny_config.replace(sharing="none", inner_group_num=2))
    named = named_variables(model)
    assert len(named) == len(model.weights)
    assert all(isinstance(variable, tf.Variable) for variable in named.values())
    for variable in named.values():  # the variables themselves, not copies
        variable.assign(tf.ones_like(variable))
    assert all((np.asarray(weight) == 1).all() for weight in model.weights)


def test_weights_start_as_in_the_original():
    config = AlbertConfig(500, 64, 64, 1, num_attention_heads=4, intermediate_size=64, initializer_range=0.05)
    for name, variable in named_variables(AlbertForPreTraining(config)).items():
        values = variable.numpy()
        if name.endswith(("kernel", "embeddings")):
            assert np.abs(values).max() <= 2 * 0.05 + 1e-6, name
            if values.size > 1000:
                # A normal distribution cut at two standard deviations keeps 0.8796 of its standard deviation.
                np.testing.assert_allclose(values.std(), 0.8796 * 0.05, rtol=0.1, err_msg=name)
                assert abs(values.mean()) < 0.005, name
        else:
            np.testing.assert_array_equal(values, 1.0 if name.endswith("gamma") else 0.0, err_msg=name)


def test_no_two_kernels_start_alike(tiny_config):
    kernels = [
        variable.numpy()
        for name, variable in named_variables(AlbertEncoder(tiny_config.replace(sharing="none"))).items()
        if "attention_layers" in name and name.endswith("kernel")
    ]
    assert len(kernels) == 8
    assert len({kernel.tobytes() for kernel in kernels}) == 8
