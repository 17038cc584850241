"""Inputs of models, and the heads on top of the encoder: their precision, and gradients through everything."""

import numpy as np
import pytest
import tensorflow as tf
from every_model import MODELS, WITH_HEADS, inputs_of
from rounding import independent_errors

from albert_tf.base.errors import InputError
from albert_tf.modeling import (
    AlbertEncoder,
    AlbertForConditionalQuestionAnswering,
    AlbertForPreTraining,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from albert_tf.modeling.layers import named_variables


def head_of(model, output):
    """Returns the fine-tuning head's product with an output of the encoder, in float64."""
    variables = named_variables(model)
    kernel, bias = (variables[f"head/dense/{name}"].numpy().astype(np.float64) for name in ("kernel", "bias"))
    return output.numpy().astype(np.float64) @ kernel + bias


def test_masked_positions_are_scored_as_among_all_positions(tiny_config, randomized, batch):
    model = randomized(AlbertForPreTraining(tiny_config))
    positions = batch["masked_lm_positions"]
    everything = model({name: values for name, values in batch.items() if name != "masked_lm_positions"})
    picked = np.take_along_axis(everything["masked_lm_logits"].numpy(), positions.numpy()[..., None], axis=1)
    np.testing.assert_allclose(model(batch)["masked_lm_logits"], picked, rtol=1e-5, atol=1e-5)


@pytest.mark.keras_2
@pytest.mark.parametrize(
    ("use", "output"),
    [
        ("sequence classification", "pooled_output"),
        ("token classification", "sequence_output"),
        ("question answering", "sequence_output"),
        ("multiple choice", "pooled_output"),
    ],
)
def test_heads_score_an_output_of_the_encoder(tiny_config, randomized, batch, use, output):
    model = randomized(WITH_HEADS[use](tiny_config))
    expected, found = head_of(model, model.encoder(batch)[output]), model(inputs_of(use, batch))
    if use == "multiple choice":
        expected = np.concatenate([expected, np.roll(expected, 1, axis=0)], axis=1)  # each choice by itself
    if use == "question answering":
        assert found.keys() == {"start_logits", "end_logits"}
        found = {"logits": tf.stack([found["start_logits"], found["end_logits"]], axis=-1)}
    np.testing.assert_allclose(found["logits"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mask", ["some", "rows", "none"])
@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_sequence_classification_may_score_the_mean_or_the_last_of_the_states(
    tiny_config, randomized, batch, pooling, mask
):
    config = tiny_config.replace(classifier_pooling=pooling, is_causal=pooling == "last")
    model = randomized(AlbertForSequenceClassification(config, 3))
    counted = batch["input_mask"].numpy()
    if mask == "none":
        del batch["input_mask"]
        counted = np.ones_like(counted)
    elif mask == "rows":
        batch["input_mask"] = tf.repeat(batch["input_mask"][:, None], 10, axis=1)
    states, lengths = model.encoder(batch)["sequence_output"].numpy().astype(np.float64), counted.sum(axis=1)
    last, mean = states[np.arange(3), lengths - 1], (states * counted[..., None]).sum(axis=1) / lengths[:, None]
    expected = head_of(model, tf.constant(last if pooling == "last" else mean))
    for wanted in ({}, {"output_hidden_states": True}):
        np.testing.assert_allclose(model(batch, **wanted)["logits"], expected, rtol=1e-5, atol=1e-5)


def test_first_piece_of_a_causal_model_is_no_readout(tiny_config, batch):
    causal = tiny_config.replace(is_causal=True)
    with pytest.raises(InputError, match="`version_2_with_negative`: whether there is an answer is read off the first"):
        AlbertForConditionalQuestionAnswering(causal)
    with pytest.raises(InputError, match="is_causal=true sees nothing of the text; set classifier_pooling=last"):
        AlbertForSequenceClassification(causal, 3)
    AlbertForSequenceClassification(causal.replace(classifier_pooling="mean"), 3)(batch)
    AlbertForTokenClassification(causal, 3)(batch)


@pytest.mark.parametrize("use", WITH_HEADS)
def test_hidden_states_and_attentions_are_the_encoders(tiny_config, randomized, batch, use):
    model = randomized(WITH_HEADS[use](tiny_config))
    inputs = inputs_of(use, batch)
    plain, outputs = model(inputs), model(inputs, output_hidden_states=True, output_attentions=True)
    texts = 6 if use == "multiple choice" else 3
    assert outputs.keys() == {*plain, "hidden_states", "attentions"}
    assert [each.shape.as_list() for each in outputs["hidden_states"]] == [[texts, 10, 16]] * 3
    assert [each.shape.as_list() for each in outputs["attentions"]] == [[texts, 4, 10, 10]] * 2
    for name, values in plain.items():
        np.testing.assert_allclose(outputs[name], values, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("use", WITH_HEADS)
def test_embeddings_and_a_row_of_the_mask_for_each_query_are_taken(tiny_config, randomized, batch, use):
    model = randomized(WITH_HEADS[use](tiny_config))
    inputs = inputs_of(use, {name: values for name, values in batch.items() if name != "masked_lm_positions"})
    rows = tf.repeat(inputs["input_mask"][..., None, :], 10, axis=-2)
    embeds = tf.gather(model.encoder.embeddings.word_embeddings, inputs["input_ids"])
    others = {"segment_ids": inputs["segment_ids"], "input_mask": rows, "inputs_embeds": embeds}
    expected, found = model(inputs), model(others)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("use", ["conditional question answering", "multiple choice"])
def test_graph_of_unknown_shape_takes_any_length(tiny_config, randomized, batch, use):
    model = randomized(WITH_HEADS[use](tiny_config))
    inputs = {name: values for name, values in inputs_of(use, batch).items() if name != "masked_lm_positions"}
    signature = {name: tf.TensorSpec([None] * values.shape.rank, values.dtype) for name, values in inputs.items()}
    traced = tf.function(model, input_signature=[signature])
    for length in (10, 1):
        shorter = {name: values[..., :length] for name, values in inputs.items()}
        expected = model(shorter)
        for name, values in traced(shorter).items():
            np.testing.assert_allclose(values, expected[name], atol=1e-5, err_msg=name)


@pytest.mark.keras_2
@pytest.mark.slow
@pytest.mark.parametrize("use", WITH_HEADS)
def test_bfloat16_keeps_variables_and_logits_in_float32(tiny_config, randomized, batch, use):
    inputs = inputs_of(use, batch)
    expected = randomized(WITH_HEADS[use](tiny_config))(inputs)
    model = randomized(WITH_HEADS[use](tiny_config, dtype="mixed_bfloat16"))
    outputs = model(inputs)
    assert {variable.dtype for variable in named_variables(model).values()} == {tf.float32}
    for name, values in outputs.items():
        assert values.dtype == (tf.float32 if name.endswith("logits") else tf.bfloat16), name
        # Some 40 values on the way to an output are rounded, and where a processor adds up in bfloat16, too, each of
        # the 230 terms of 15 products: 0.04 of an output of the order of 1, and as much again and again where a few
        # logits share an error. A bias, the mask or the scale that is left out makes 0.14 and more.
        difference = tf.cast(values, tf.float32).numpy() - expected[name].numpy()
        assert 0 < np.sqrt(np.mean(difference**2)) < 3 * independent_errors(270, "bfloat16"), name


def gradients_of(model, inputs):
    """Returns the gradient of every variable, of a loss in which each logit has a weight of its own."""
    random = np.random.default_rng(2)
    variables = named_variables(model)
    with tf.GradientTape() as tape:
        outputs = model(inputs)
        losses = [
            tf.reduce_sum(values * random.normal(size=values.shape).astype(np.float32))
            for name, values in outputs.items()
            if name.endswith("logits")
        ]
        loss = tf.add_n(losses)
    return dict(zip(variables, tape.gradient(loss, list(variables.values()))))


@pytest.mark.parametrize("use", WITH_HEADS)
def test_gradients_reach_every_variable(tiny_config, randomized, batch, use):
    model = randomized(WITH_HEADS[use](tiny_config))
    gradients = gradients_of(model, inputs_of(use, batch))
    if use.endswith(("token classification", "question answering")):  # which have no use for the pooler
        assert gradients.pop("encoder/pooler/kernel") is gradients.pop("encoder/pooler/bias") is None
    assert_all_learn(gradients)


def assert_all_learn(gradients):
    for name, gradient in gradients.items():
        assert gradient is not None, name
        gradient = tf.convert_to_tensor(gradient).numpy()  # that of a gather is sparse
        assert np.isfinite(gradient).all(), name
        # Softmax does not see what a bias of the keys adds to all scores of a query: some 1e-6 of rounding are left.
        if not name.endswith("key/bias"):
            assert np.abs(gradient).max() > 1e-5, name


ALIASES = {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}
# All others take what they are given to an encoder as the second one does.
USES = ("encoder", "pre-training", "multiple choice")


@pytest.mark.keras_2
@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_names_of_hugging_face_are_taken_too(tiny_config, randomized, batch, use):
    model = randomized(MODELS[use](tiny_config))
    inputs = inputs_of(use, batch)
    aliased = {ALIASES.get(name, name): values for name, values in inputs.items()}
    without = {name: values for name, values in inputs.items() if name not in ALIASES}
    expected, found, ignored = (tf.nest.flatten(model(each)) for each in (inputs, aliased, without))
    for ours, theirs in zip(expected, found):
        np.testing.assert_array_equal(ours, theirs)
    assert np.abs(expected[0] - ignored[0]).max() > 1e-3, "mask and segments make a difference here"


@pytest.mark.parametrize(("use", "name"), zip(USES, [*ALIASES, "input_mask"]))
def test_both_names_at_once_are_refused(tiny_config, batch, use, name):
    inputs = {**batch, ALIASES[name]: batch[name]}
    with pytest.raises(InputError, match=f"{name} and {ALIASES[name]} are two names of one input; "):
        MODELS[use](tiny_config)(inputs_of(use, inputs))


@pytest.mark.parametrize("use", USES)
def test_unknown_name_is_refused(tiny_config, batch, use):
    name = "input_masks"
    with pytest.raises(InputError, match=f"a model has no input {name}; .*segment_ids \\(or token_type_ids\\)"):
        MODELS[use](tiny_config)(inputs_of(use, {**batch, name: batch["input_ids"]}))


@pytest.mark.parametrize("use", USES)
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
