"""The names in the dictionary that models take."""

import re

import numpy as np
import pytest
import tensorflow as tf
from every_model import MODELS, inputs_of

from albert_tf.base.errors import InputError
from albert_tf.modeling import AlbertEncoder

ALIASES = {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}


@pytest.mark.slow
@pytest.mark.parametrize("use", MODELS)
def test_names_of_hugging_face_are_taken_too(tiny_config, randomized, batch, use):
    model = randomized(MODELS[use](tiny_config))
    inputs = inputs_of(use, batch)
    aliased = {ALIASES.get(name, name): values for name, values in inputs.items()}
    without = {name: values for name, values in inputs.items() if name not in ALIASES}
    expected, found, ignored = (tf.nest.flatten(model(each)) for each in (inputs, aliased, without))
    for ours, theirs in zip(expected, found):
        np.testing.assert_array_equal(ours, theirs)
    assert np.abs(expected[0] - ignored[0]).max() > 1e-3, "mask and segments make a difference here"


@pytest.mark.parametrize("use", MODELS)
@pytest.mark.parametrize("name", ALIASES)
def test_both_names_at_once_are_refused(tiny_config, batch, use, name):
    inputs = {**batch, ALIASES[name]: batch[name]}
    with pytest.raises(InputError, match=f"{name} and {ALIASES[name]} are two names of one input; "):
        MODELS[use](tiny_config)(inputs_of(use, inputs))


@pytest.mark.slow
@pytest.mark.parametrize("use", MODELS)
@pytest.mark.parametrize("name", ["positions", "input_masks", "labels"])
def test_unknown_name_is_refused(tiny_config, batch, use, name):
    with pytest.raises(InputError, match=f"a model has no input {name}; .*segment_ids \\(or token_type_ids\\)"):
        MODELS[use](tiny_config)(inputs_of(use, {**batch, name: batch["input_ids"]}))


@pytest.mark.parametrize("use", MODELS)
def test_missing_ids_are_named(tiny_config, batch, use):
    del batch["input_ids"]
    with pytest.raises(InputError, match=r"a model needs input_ids, or inputs_embeds"):
        MODELS[use](tiny_config)(inputs_of(use, batch))


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("inputs_embeds", [3, 10, 8], "input_ids and inputs_embeds"),
        ("document_ids", [3, 10, 10], r"document_ids must be \[B, S\].* \(3, 10, 10\)"),
        ("input_mask", [3, 1, 1, 10], r"input_mask must be \[B, S\], or \[B, S, S\].* \(3, 1, 1, 10\)"),
    ],
)
def test_input_of_no_use_or_of_another_shape_is_refused(tiny_config, batch, name, shape, message):
    with pytest.raises(InputError, match=message):
        AlbertEncoder(tiny_config)({**batch, name: tf.ones(shape, tf.int32)})


@pytest.mark.slow
def test_check_leaves_nothing_in_the_graph(tiny_config, batch):
    model = AlbertEncoder(tiny_config)

    def operations(inputs):
        signature = {name: tf.TensorSpec(values.shape, values.dtype) for name, values in inputs.items()}
        graph = tf.function(model).get_concrete_function(signature).graph
        return [re.sub(r"_\d+$", "", node.type) for node in graph.get_operations() if node.type != "Placeholder"]

    aliased = {ALIASES.get(name, name): values for name, values in batch.items()}
    assert operations(aliased) == operations(batch)
