"""Entities in the encoder: what is added where a name is found, against NumPy, and nothing anywhere else."""

import numpy as np
import pytest
import tensorflow as tf
from every_model import copied
from numpy_reference import gelu
from tiny_config import tiny_config
from tiny_entities import NUM_PIECES, tiny_entities, with_entities

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling import (
    AlbertEncoder,
    AlbertForMultipleChoice,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
)
from albert_tf.modeling.layers import named_variables
from albert_tf.training.train_state import learnt_variables, saved_variables

PLAIN = tiny_config(NUM_PIECES, num_hidden_layers=3, initializer_range=0.3)
FUSED = with_entities(PLAIN)
TOLD = np.array([[2, 10, 40, 10, 5, 3, 0, 0], [2, 11, 12, 41, 13, 13, 14, 3]])
ENTITIES = np.array([[0, 2, 0, 1, 0, 0, 0, 0], [0, 3, 0, 0, 0, 4, 0, 0]])
# Pieces of names, and no name among them.
UNTOLD = np.array([[2, 11, 12, 40, 14, 13, 3, 0], [2, 40, 41, 12, 11, 7, 13, 3]])


def random_fusion(model):
    """Lets a model know its entities, and add more than nothing; returns it."""
    fusion = model.encoder.entity_fusion if hasattr(model, "encoder") else model.entity_fusion
    fusion.assign(tiny_entities().vectors, tiny_entities().trie)
    fusion.output_dense.kernel.assign(np.random.default_rng(1).normal(size=[16, 16]))
    return model


def encode(model, ids, **inputs):
    return model({"input_ids": tf.cast(ids, tf.int32), **inputs}, output_hidden_states=True)


@pytest.mark.keras_2
def test_names_are_found_and_what_is_added_is_that_of_float64():
    fused = random_fusion(AlbertEncoder(FUSED))
    plain, fusion = copied(AlbertEncoder(PLAIN), fused), fused.entity_fusion
    np.testing.assert_array_equal(fusion.find(tf.constant(TOLD)), ENTITIES)
    before, after = encode(plain, TOLD)["hidden_states"][1], encode(fused, TOLD)["hidden_states"][1]
    states, vectors = before.numpy().astype(np.float64), tiny_entities().vectors.astype(np.float64)
    weights = {name: value.numpy().astype(np.float64) for name, value in named_variables(fusion).items()}
    for row, place in np.argwhere(ENTITIES):
        joined = np.concatenate([states[row, place], vectors[ENTITIES[row, place] - 1]])
        inner = gelu(joined @ weights["transform/kernel"] + weights["transform/bias"])
        states[row, place] += inner @ weights["output_dense/kernel"] + weights["output_dense/bias"]
    np.testing.assert_allclose(after, states, atol=2e-5)
    is_other = ENTITIES == 0
    np.testing.assert_array_equal(after.numpy()[is_other], before.numpy()[is_other])
    assert not np.allclose(encode(fused, TOLD)["sequence_output"], encode(plain, TOLD)["sequence_output"], atol=0.01)


@pytest.mark.parametrize(("compiles", "dtype"), [(False, "float32"), (True, "mixed_bfloat16")])
def test_text_without_names_is_encoded_as_without_entities_to_the_bit(compiles, dtype):
    fused = random_fusion(AlbertEncoder(FUSED, dtype=dtype))
    plain = copied(AlbertEncoder(PLAIN, dtype=dtype), fused)
    run = [tf.function(lambda ids, model=model: encode(model, ids), jit_compile=compiles) for model in (plain, fused)]
    expected, found = (each(np.concatenate([UNTOLD, TOLD]))["sequence_output"] for each in run)
    np.testing.assert_array_equal(tf.cast(found[:2], tf.float32), tf.cast(expected[:2], tf.float32))
    assert np.abs(tf.cast(found[2:] - expected[2:], tf.float32)).max() > 0.01


def test_new_model_adds_nothing_until_it_has_learnt_to():
    fused = AlbertEncoder(FUSED)
    expected = encode(copied(AlbertEncoder(PLAIN), fused), TOLD)["sequence_output"]
    assert not fused.entity_fusion.find(tf.constant(TOLD)).numpy().any()
    fused.entity_fusion.assign(tiny_entities().vectors, tiny_entities().trie)
    assert fused.entity_fusion.find(tf.constant(TOLD)).numpy().any()
    np.testing.assert_array_equal(encode(fused, TOLD)["sequence_output"], expected)


def test_entities_of_a_linker_take_the_place_of_names():
    fused = random_fusion(AlbertEncoder(FUSED))
    told = encode(fused, TOLD, entity_ids=tf.constant(ENTITIES))["sequence_output"]
    np.testing.assert_array_equal(told, encode(fused, TOLD)["sequence_output"])
    nothing = encode(fused, TOLD, entity_ids=tf.zeros_like(ENTITIES))["sequence_output"]
    np.testing.assert_array_equal(nothing, encode(copied(AlbertEncoder(PLAIN), fused), TOLD)["sequence_output"])
    words = fused.embeddings.words(tf.constant(TOLD))
    embedded = fused({"inputs_embeds": words, "entity_ids": tf.constant(ENTITIES)})["sequence_output"]
    np.testing.assert_array_equal(embedded, told)


@pytest.mark.parametrize(
    "inputs",
    [
        {"inputs_embeds": tf.zeros([1, 4, 8])},
        {"input_ids": tf.zeros([1, 4], tf.int32), "document_ids": tf.zeros([1, 4], tf.int32)},
    ],
)
def test_names_that_cannot_be_found_are_refused(inputs):
    with pytest.raises(InputError, match="finds their names only in input_ids of a single document"):
        AlbertEncoder(FUSED)(inputs)


def test_entities_of_a_model_without_are_refused():
    with pytest.raises(InputError, match="entity_ids are of no use to a model of num_entities=0"):
        encode(AlbertEncoder(PLAIN), TOLD, entity_ids=tf.constant(ENTITIES))


@pytest.mark.keras_2
def test_what_it_is_told_is_saved_and_never_learnt():
    class OnlyModel:
        frozen_models = ()

    model = AlbertForSequenceClassification(FUSED, num_labels=2)
    told = {name for name in named_variables(model) if "/entity_embeddings" in name or "/name_" in name}
    assert len(told) == 5 and all(name.startswith("encoder/entity_fusion/") for name in told)
    learnt = learnt_variables(OnlyModel, {"model": model})
    assert learnt.keys() == named_variables(model).keys() - told
    assert saved_variables(OnlyModel, {"model": model}).keys() == {f"model/{name}" for name in named_variables(model)}


def test_names_are_found_in_each_choice_and_in_questions_that_are_aligned():
    fused = random_fusion(AlbertForMultipleChoice(FUSED))
    ids = tf.constant(np.stack([TOLD, UNTOLD], axis=1))
    expected = [fused({"input_ids": ids[:, choice : choice + 1]})["logits"][:, 0] for choice in range(2)]
    np.testing.assert_allclose(fused({"input_ids": ids})["logits"], np.stack(expected, axis=1), rtol=1e-5)
    model = random_fusion(AlbertForQuestionAnswering(FUSED.replace(question_alignment="words")))
    logits = model({"input_ids": tf.constant(TOLD)})["start_logits"]
    told = model({"input_ids": tf.constant(TOLD), "entity_ids": tf.constant(ENTITIES)})["start_logits"]
    np.testing.assert_array_equal(logits, told)
    untold = model({"input_ids": tf.constant(TOLD), "entity_ids": tf.zeros_like(ENTITIES)})["start_logits"]
    assert np.abs(untold - logits).max() > 1e-4


def test_files_of_models_without_entities_stay_as_they_were():
    assert not [name for name in PLAIN.to_dict() if "entit" in name]
    assert AlbertConfig.from_dict(FUSED.to_dict()) == FUSED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entity_size": 0}, "num_entities=4 does not match entity_size=0; set both or neither"),
        ({"num_entities": 0}, "num_entities=0 does not match entity_size=6; set both or neither"),
        ({"entity_layer": 3}, "Received: entity_layer=3, and 3 blocks"),
        ({"is_causal": True}, "num_entities=4 needs is_causal=false"),
    ],
)
def test_configs_that_contradict_themselves_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        FUSED.replace(**changes)
