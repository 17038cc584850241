"""The models' variables: how many numbers they hold, what they are called, how they start, at random or not."""

import math

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining, AlbertForSequenceClassification
from albert_tf.modeling.initializers import NeighborAttention, sinusoidal_positions
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
@pytest.mark.parametrize(("size", "total"), [("base", 11_813_810), ("xxlarge", 223_158_450)])
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


@pytest.mark.keras_2
def test_names_stay_as_checkpoints_know_them(tiny_config):
    assert list(named_variables(AlbertForPreTraining(tiny_config))) == TINY_VARIABLES


def test_fine_tuning_shares_the_names_of_the_encoder(tiny_config):
    names = list(named_variables(AlbertForSequenceClassification(tiny_config, 3)))
    encoder = [name for name in TINY_VARIABLES if name.startswith("encoder/")]
    assert names == [*encoder, "head/dense/kernel", "head/dense/bias"]


@pytest.mark.keras_2
def test_every_weight_of_keras_has_a_name(tiny_config):
    model = AlbertForPreTraining(tiny_config.replace(sharing="none", inner_group_num=2))
    named = named_variables(model)
    assert len(named) == len(model.weights)
    assert all(isinstance(variable, tf.Variable) for variable in named.values())
    for variable in named.values():  # the variables themselves, not copies
        variable.assign(tf.ones_like(variable))
    assert all((np.asarray(weight) == 1).all() for weight in model.weights)


@pytest.mark.keras_2
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


@pytest.mark.parametrize(("length", "size"), [(64, 128), (10, 7)])
def test_sinusoids_are_those_of_the_formula(length, size):
    table = sinusoidal_positions([length, size]).numpy()
    assert table.shape == (length, size)
    for column in range(size):
        wavelength = 2 * np.pi * 100 ** ((column - column % 2) / size)
        wave = np.cos if column % 2 else np.sin
        expected = 0.1 * 2**0.5 * wave(2 * np.pi * np.arange(length) / wavelength)
        np.testing.assert_allclose(table[:, column], expected, atol=1e-5)


def test_config_chooses_the_initializer():
    config = tiny_config(50)
    tables = {
        name: AlbertEncoder(config.replace(position_initializer=name)).embeddings.position_embeddings.numpy()
        for name in ("normal", "sinusoidal")
    }
    shape = [config.max_position_embeddings, config.embedding_size]
    np.testing.assert_array_equal(tables["sinusoidal"], sinusoidal_positions(shape))
    assert abs(tables["normal"]).max() <= 2 * config.initializer_range + 1e-6
    with pytest.raises(InputError, match=r"position_initializer must be one of normal, sinusoidal\. Received: sine"):
        config.replace(position_initializer="sine")
    with pytest.raises(InputError, match="attention_initializer=neighbors needs position_initializer=sinusoidal"):
        NEIGHBORS.replace(position_initializer="normal")


NEIGHBORS = tiny_config(
    200,
    embedding_size=64,
    hidden_size=128,
    num_attention_heads=4,
    num_hidden_layers=2,
    num_hidden_groups=2,
    initializer_range=0.04,
    position_initializer="sinusoidal",
    attention_initializer="neighbors",
)


FEW_HEADS = {"embedding_size": 128, "num_hidden_layers": 4, "num_hidden_groups": 4}


@pytest.mark.parametrize(
    ("changes", "offsets"),
    [
        ({}, [[-1, 1, -2, 2]] * 2),
        ({"embedding_size": 128}, [[-1, 1, -2, 2]] * 2),
        ({"num_hidden_groups": 1}, [[-1, 1, -2, 2]] * 2),
        ({"norm_position": "pre"}, [[-1, 1, -2, 2]] * 2),
        ({"hidden_size": 32, "num_attention_heads": 1, **FEW_HEADS}, [[-1], [1], [-2], [2]]),
        ({"hidden_size": 64, "num_attention_heads": 2, **FEW_HEADS}, [[-1, 1], [-2, 2]] * 2),
    ],
    ids=["projected", "not projected", "one block for all layers", "normalised before", "one in turn", "two in turn"],
)
def test_heads_look_at_neighbours_in_every_layer(changes, offsets):
    config = NEIGHBORS.replace(**changes)
    ids = np.random.default_rng(0).integers(5, config.vocab_size, (8, 40))
    attentions = AlbertEncoder(config)({"input_ids": ids}, output_attentions=True)["attentions"]
    for probabilities, expected in zip(np.mean(attentions, axis=1), offsets, strict=True):  # [N, S, S]
        for head, offset in enumerate(expected):
            near = [np.diagonal(probabilities[head], offset + shift)[5:-5].mean() for shift in (-1, 0, 1)]
            assert sum(near) > 0.8


def test_score_of_a_key_falls_with_its_distance_from_where_the_head_looks():
    config = NEIGHBORS
    (kernels,) = NeighborAttention.draw(config)
    positions = sinusoidal_positions([64, config.embedding_size]).numpy().astype(np.float64)
    # As LayerNorm makes them, beside random vectors of pieces and segments.
    normal = np.random.default_rng(0).normal(size=10**6)
    other_variance = 2 * normal[abs(normal) < 2].var() * config.initializer_range**2
    hidden_states = positions / np.sqrt(0.1**2 + other_variance) @ kernels.projection
    head_size = config.hidden_size // config.num_attention_heads
    query, key = (
        (hidden_states @ kernel).reshape(64, -1, head_size).swapaxes(0, 1) for kernel in (kernels.query, kernels.key)
    )
    scores = query @ key.swapaxes(1, 2) / np.sqrt(head_size)
    waves = 100.0 ** -(np.arange(head_size // 2) * 2 / config.embedding_size)  # radians from a position to the next
    for head, offset in enumerate((-1, 1, -2, 2)):
        distance = np.arange(64)[:, None] + offset - np.arange(64)
        expected = 16 * np.cos(waves * distance[..., None]).mean(axis=-1)
        np.testing.assert_allclose(scores[head], expected, rtol=0.01, atol=0.01)


def test_neighbours_are_drawn_from_the_seed_and_leave_later_heads_random():
    config = NEIGHBORS.replace(num_attention_heads=16)
    draws = []
    for seed in (1, 1, 2):
        tf.keras.utils.set_random_seed(seed)
        draws.extend(NeighborAttention.draw(config))
    for name in ("projection", "query", "key"):
        first, again, other = (getattr(draw, name) for draw in draws)
        np.testing.assert_array_equal(first, again)
        assert np.any(first != other)
    assert abs(draws[0].query[:, 64:]).max() <= 2 * config.initializer_range + 1e-6
    assert abs(draws[0].query[:, :64]).max() > 2 * config.initializer_range


@pytest.mark.parametrize("changes", [{}, {"num_hidden_groups": 2, "inner_group_num": 2, "sharing": "attention"}])
def test_what_is_added_up_without_layer_norm_begins_smaller_by_the_number_of_sums(changes):
    config = tiny_config(50, hidden_size=128, intermediate_size=256, num_hidden_layers=6, **changes)
    before, after = (AlbertEncoder(config.replace(norm_position=position)) for position in ("pre", "post"))
    sums = 2 * 6 * config.inner_group_num
    for layers in ("attention_layers", "feed_forward_layers"):
        for small, usual in zip(getattr(before, layers), getattr(after, layers)):
            ratio = np.std(small.output_dense.kernel) / np.std(usual.output_dense.kernel)
            assert ratio == pytest.approx(sums**-0.5, rel=0.03)
    for name in ("query", "key", "value"):
        kernels = (getattr(encoder.attention_layers[0], name).kernel for encoder in (before, after))
        assert np.divide(*map(np.std, kernels)) == pytest.approx(1, rel=0.03)
