"""The names in the dictionary that models take."""

import re

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.modeling import (
    AlbertEncoder,
    AlbertForConditionalQuestionAnswering,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)

MODELS = {
    "encoder": AlbertEncoder,
    "pre-training": AlbertForPreTraining,
    "sequence classification": lambda config: AlbertForSequenceClassification(config, 3),
    "token classification": lambda config: AlbertForTokenClassification(config, 3),
    "question answering": AlbertForQuestionAnswering,
    "conditional question answering": AlbertForConditionalQuestionAnswering,
    "multiple choice": AlbertForMultipleChoice,
}
ALIASES = {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}


def inputs_of(use, batch):
    return {name: values[:, None] for name, values in batch.items()} if use == "multiple choice" else batch


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


def test_ids_and_embeddings_at_once_are_refused(tiny_config, batch):
    with pytest.raises(InputError, match=r"input_ids and inputs_embeds"):
        AlbertEncoder(tiny_config)({**batch, "inputs_embeds": tf.zeros([3, 10, 8])})


def test_documents_of_other_shape_are_refused(tiny_config, batch):
    with pytest.raises(InputError, match=r"document_ids must be \[B, S\].* \(3, 10, 10\)"):
        AlbertEncoder(tiny_config)({**batch, "document_ids": tf.ones([3, 10, 10], tf.int32)})


def test_mask_of_other_shape_is_refused(tiny_config, batch):
    with pytest.raises(InputError, match=r"input_mask must be \[B, S\], or \[B, S, S\].* \(3, 1, 1, 10\)"):
        AlbertEncoder(tiny_config)({**batch, "input_mask": batch["input_mask"][:, None, None]})


@pytest.mark.slow
def test_check_leaves_nothing_in_the_graph(tiny_config, batch):
    model = AlbertEncoder(tiny_config)

    def operations(inputs):
        signature = {name: tf.TensorSpec(values.shape, values.dtype) for name, values in inputs.items()}
        graph = tf.function(model).get_concrete_function(signature).graph
        return [re.sub(r"_\d+$", "", node.type) for node in graph.get_operations() if node.type != "Placeholder"]

    aliased = {ALIASES.get(name, name): values for name, values in batch.items()}
    assert operations(aliased) == operations(batch)
