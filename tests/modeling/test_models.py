"""What the models put on top of the encoder: heads, their shapes and precision, and gradients through everything."""

import numpy as np
import pytest
import tensorflow as tf
from every_model import MODELS, WITH_HEADS, choices, inputs_of
from rounding import independent_errors

from albert_tf.base.errors import InputError
from albert_tf.modeling import (
    AlbertForConditionalQuestionAnswering,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from albert_tf.modeling.layers import named_variables


def head_of(model, output):
    """Returns the fine-tuning head's product with an output of the encoder, in float64."""
    variables = named_variables(model)
    kernel, bias = (variables[f"head/dense/{name}"].numpy().astype(np.float64) for name in ("kernel", "bias"))
    return output.numpy().astype(np.float64) @ kernel + bias


def test_pretraining_has_four_outputs(tiny_config, batch):
    outputs = AlbertForPreTraining(tiny_config)(batch)
    assert {name: values.shape.as_list() for name, values in outputs.items()} == {
        "sequence_output": [3, 10, 16],
        "pooled_output": [3, 16],
        "masked_lm_logits": [3, 4, 30],
        "sentence_order_logits": [3, 2],
    }


def test_masked_positions_are_scored_as_among_all_positions(tiny_config, randomized, batch):
    model = randomized(AlbertForPreTraining(tiny_config))
    positions = batch["masked_lm_positions"]
    everything = model({name: values for name, values in batch.items() if name != "masked_lm_positions"})
    picked = np.take_along_axis(everything["masked_lm_logits"].numpy(), positions.numpy()[..., None], axis=1)
    np.testing.assert_allclose(model(batch)["masked_lm_logits"], picked, rtol=1e-5, atol=1e-5)


def test_sequence_classification_scores_the_pooled_output(tiny_config, randomized, batch):
    model = randomized(AlbertForSequenceClassification(tiny_config, num_labels=3))
    logits = model(batch)["logits"]
    assert logits.shape == (3, 3)
    np.testing.assert_allclose(logits, head_of(model, model.encoder(batch)["pooled_output"]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mask", ["some", "rows", "none"])
def test_sequence_classification_may_score_the_mean_of_the_states(tiny_config, randomized, batch, mask):
    model = randomized(AlbertForSequenceClassification(tiny_config.replace(classifier_pooling="mean"), 3))
    counted = np.ones(batch["input_ids"].shape)
    if mask == "none":
        del batch["input_mask"]
    else:
        counted[0, 4:], counted[2, 7:] = 0, 0
        rows = np.repeat(counted[:, None], counted.shape[1], axis=1)
        batch["input_mask"] = tf.constant(rows if mask == "rows" else counted, tf.int32)
    states = model.encoder(batch)["sequence_output"].numpy().astype(np.float64)
    mean = (states * counted[..., None]).sum(axis=1) / counted.sum(axis=1, keepdims=True)
    expected = head_of(model, tf.constant(mean))
    np.testing.assert_allclose(model(batch)["logits"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mask", ["some", "rows", "none"])
def test_sequence_classification_may_score_the_last_state(tiny_config, randomized, batch, mask):
    config = tiny_config.replace(classifier_pooling="last", is_causal=True)
    model = randomized(AlbertForSequenceClassification(config, 3))
    last = np.array([9, 6, 3])
    if mask == "none":
        del batch["input_mask"]
        last[:] = 9
    elif mask == "rows":
        batch["input_mask"] = tf.repeat(batch["input_mask"][:, None], 10, axis=1)
    states = model.encoder(batch)["sequence_output"].numpy()[np.arange(3), last]
    expected = head_of(model, tf.constant(states))
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


def test_mean_leaves_the_pooler_without_use_and_reaches_the_rest(tiny_config, randomized, batch):
    model = randomized(AlbertForSequenceClassification(tiny_config.replace(classifier_pooling="mean"), 3))
    gradients = gradients_of(model, batch)
    assert gradients.pop("encoder/pooler/kernel") is gradients.pop("encoder/pooler/bias") is None
    assert_all_learn(gradients)


def test_token_classification_scores_every_position(tiny_config, randomized, batch):
    model = randomized(AlbertForTokenClassification(tiny_config, num_labels=5))
    logits = model(batch)["logits"]
    assert logits.shape == (3, 10, 5)
    np.testing.assert_allclose(logits, head_of(model, model.encoder(batch)["sequence_output"]), rtol=1e-5, atol=1e-5)


def test_question_answering_scores_first_and_last_positions(tiny_config, randomized, batch):
    model = randomized(AlbertForQuestionAnswering(tiny_config))
    outputs = model(batch)
    expected = head_of(model, model.encoder(batch)["sequence_output"])
    assert outputs.keys() == {"start_logits", "end_logits"}
    np.testing.assert_allclose(outputs["start_logits"], expected[..., 0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outputs["end_logits"], expected[..., 1], rtol=1e-5, atol=1e-5)


def test_multiple_choice_scores_each_choice_by_itself(tiny_config, randomized, batch):
    model = randomized(AlbertForMultipleChoice(tiny_config))
    logits = model(choices(batch))["logits"]
    alone = head_of(model, model.encoder(batch)["pooled_output"])[:, 0]
    np.testing.assert_allclose(logits, np.stack([alone, np.roll(alone, 1)], axis=1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("use", WITH_HEADS)
def test_what_else_a_batch_holds_is_left_alone(tiny_config, randomized, batch, use):
    model = randomized(WITH_HEADS[use](tiny_config))
    inputs = inputs_of(use, batch)
    expected = model(inputs)
    labels = {"label_ids": tf.constant([0, 2, 1]), "example_weights": tf.ones([3])}
    for name, values in model({**inputs, **labels}).items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)


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
@pytest.mark.parametrize("use", MODELS)
def test_graph_of_unknown_shape_takes_any_length(tiny_config, randomized, batch, use):
    model = randomized(MODELS[use](tiny_config))
    inputs = {name: values for name, values in inputs_of(use, batch).items() if name != "masked_lm_positions"}
    signature = {name: tf.TensorSpec([None] * values.shape.rank, values.dtype) for name, values in inputs.items()}
    traced = tf.function(model, input_signature=[signature])
    for length in (10, 5, 1):
        shorter = {name: values[..., :length] for name, values in inputs.items()}
        expected = model(shorter)
        for name, values in traced(shorter).items():
            np.testing.assert_allclose(values, expected[name], atol=1e-5, err_msg=name)


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{"sharing": "attention"}, {"sharing": "ffn"}, {"sharing": "none"}, {"num_hidden_groups": 2, "inner_group_num": 2}],
    ids=str,
)
def test_gradients_reach_every_layer_however_shared(tiny_config, randomized, batch, changes):
    model = randomized(AlbertForPreTraining(tiny_config.replace(num_hidden_layers=3, **changes)))
    assert_all_learn(gradients_of(model, batch))


def assert_all_learn(gradients):
    for name, gradient in gradients.items():
        assert gradient is not None, name
        gradient = tf.convert_to_tensor(gradient).numpy()  # that of a gather is sparse
        assert np.isfinite(gradient).all(), name
        # Softmax does not see what a bias of the keys adds to all scores of a query: some 1e-6 of rounding are left.
        if not name.endswith("key/bias"):
            assert np.abs(gradient).max() > 1e-5, name


def test_gradient_of_tied_embeddings_adds_up_both_uses(tiny_config, randomized, batch):
    model = randomized(AlbertForPreTraining(tiny_config))
    gradient = tf.convert_to_tensor(gradients_of(model, batch)["encoder/embeddings/word_embeddings"]).numpy()
    unseen = sorted(set(range(30)) - set(batch["input_ids"].numpy().ravel()))
    assert unseen
    assert (np.abs(gradient[unseen]).max(axis=1) > 0).all()  # as outputs
