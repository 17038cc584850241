"""Models in the hands of Keras: saving, loading, cloning, exporting, `fit`, and being part of a user's own model."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_entities import with_entities

from albert_tf.modeling import (
    AlbertEncoder,
    AlbertForConditionalQuestionAnswering,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from albert_tf.modeling.attention import FeedForward, SelfAttention
from albert_tf.modeling.embeddings import AlbertEmbeddings
from albert_tf.modeling.entity_fusion import EntityFusion
from albert_tf.modeling.heads import MaskedLMHead, OutputHead
from albert_tf.modeling.layers import LayerNorm, Linear, named_variables

pytestmark = pytest.mark.skipif(
    tf.keras.__name__.startswith("tf_keras"), reason=".keras files, clones and exports of these models need Keras 3"
)

IN_BFLOAT16 = {"num_labels": 3, "dtype": "mixed_bfloat16", "attention": "plain"}
MODELS = {
    "encoder": (AlbertEncoder, {}),
    "pre-training": (AlbertForPreTraining, {"remat": "block"}),
    "sequence classification": (AlbertForSequenceClassification, IN_BFLOAT16),
    "token classification": (AlbertForTokenClassification, {"num_labels": 3}),
    "question answering": (AlbertForQuestionAnswering, {"remat": "attention"}),
    "conditional question answering": (AlbertForConditionalQuestionAnswering, {}),
    "multiple choice": (AlbertForMultipleChoice, {}),
}


@pytest.fixture
def config(tiny_config):
    """A config whose values differ from the defaults where a round trip could lose them."""
    return tiny_config.replace(num_hidden_layers=1, hidden_dropout_prob=0.2, layer_norm_eps=1e-3, hidden_act="relu")


def to_arrays(batch, use=None):
    """Returns the encoder's inputs as NumPy arrays, as `fit` takes them."""
    inputs = {name: batch[name].numpy() for name in ("input_ids", "input_mask", "segment_ids")}
    return {name: values[:, None] for name, values in inputs.items()} if use == "multiple choice" else inputs


def assert_close_outputs(found, expected, tolerance=0.0):
    tf.nest.assert_same_structure(found, expected)
    for ours, theirs in zip(tf.nest.flatten(found), tf.nest.flatten(expected)):
        ours, theirs = tf.cast(ours, tf.float32), tf.cast(theirs, tf.float32)
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("use", MODELS)
def test_model_is_saved_loaded_and_cloned(config, randomized, batch, tmp_path, use):
    make, options = MODELS[use]
    model = randomized(make(config, **options))
    inputs = to_arrays(batch, use)
    model.summary(print_fn=lambda *_, **__: None)  # which calls layers, and must leave no trace
    expected = model(inputs)

    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is make
    assert loaded.get_config() == model.get_config()
    assert_close_outputs(loaded(inputs), expected)

    clone = tf.keras.models.clone_model(model)
    assert list(named_variables(clone)) == list(named_variables(model))
    clone.set_weights(model.get_weights())
    assert_close_outputs(clone(inputs), expected)


@pytest.mark.slow
def test_trained_model_is_exported_for_any_length(config, batch, tmp_path):
    model = AlbertForMultipleChoice(config, dtype="mixed_bfloat16")
    inputs = to_arrays(batch, "multiple choice")
    model.summary(print_fn=lambda *_, **__: None)
    model.compile("sgd", loss={"logits": "mse"}, jit_compile=False)
    kernel = model.head.dense.kernel.numpy()
    model.fit(inputs, {"logits": np.ones([3, 1], np.float32)}, verbose=0)
    assert np.abs(model.head.dense.kernel.numpy() - kernel).max() > 0
    model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(tmp_path / "exported")
    for length in (10, 6):
        shorter = {name: tf.constant(values[..., :length]) for name, values in inputs.items()}
        assert_close_outputs(exported.serve(shorter), model(shorter), 0.02)  # bfloat16 is rounded at other places


@pytest.mark.slow
def test_encoder_is_part_of_a_model_of_a_user(config, batch, tmp_path):
    inputs = {name: tf.keras.Input([None], dtype="int32", name=name) for name in to_arrays(batch)}
    outputs = AlbertEncoder(config, name="albert")(inputs, output_hidden_states=True)
    middle = tf.keras.layers.GlobalAveragePooling1D()(outputs["hidden_states"][-1])
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(2)(middle))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.01), loss)  # `fit` chooses by itself to compile the step with XLA
    arrays, labels = to_arrays(batch), np.array([0, 1, 0])
    losses = model.fit(arrays, labels, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
    expected = model(arrays)

    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert_close_outputs(loaded(arrays), expected)
    assert loaded.get_layer("albert").config == config

    clone = tf.keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    assert_close_outputs(clone(arrays), expected)

    model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(tmp_path / "exported")
    served = exported.serve({name: tf.constant(values) for name, values in arrays.items()})
    np.testing.assert_allclose(served, expected, atol=1e-5)


@pytest.mark.slow
def test_saved_model_of_a_function_takes_what_the_function_takes(config, batch, tmp_path):
    encoder = AlbertEncoder(config)
    signature = {name: tf.TensorSpec([None, None], tf.int32, name) for name in ("input_ids", "position_ids")}
    tf.saved_model.save(encoder, str(tmp_path), tf.function(encoder).get_concrete_function(signature))
    inputs = {"input_ids": batch["input_ids"], "position_ids": tf.ones_like(batch["input_ids"])}
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"](**inputs)
    assert_close_outputs(served, encoder(inputs), 1e-5)


@pytest.mark.parametrize("use", MODELS)
def test_summary_shows_shapes_and_counts(config, monkeypatch, use):
    monkeypatch.setenv("COLUMNS", "200")
    make, options = MODELS[use]
    model = make(config, **options)
    lines = []
    model.summary(print_fn=lambda line, **_: lines.append(line), expand_nested=True, line_length=200)
    table = "\n".join(lines)
    assert "Output Shape" in table and "?" not in table
    assert f"(None, None, {config.hidden_size})" in table
    if isinstance(model, AlbertForPreTraining):
        assert f"(None, None, {config.vocab_size})" in table
    for layer in model.layers:
        assert f" {layer.count_params():,} " in table
    assert f"Total params: {model.count_params():,} " in table


@pytest.mark.parametrize(
    "make",
    [
        lambda config, **options: Linear(3, 4, 0.5, **options),
        lambda config, **options: LayerNorm(3, 0.1, **options),
        AlbertEmbeddings,
        lambda config, **options: SelfAttention(config, True, **options),
        FeedForward,
        MaskedLMHead,
        lambda config, **options: OutputHead(config, 3, 0.3, **options),
        lambda config, **options: EntityFusion(with_entities(config), **options),
    ],
)
def test_layers_are_built_again_from_their_config(config, make):
    layer = make(config, dtype="mixed_bfloat16", name="a_layer")
    serialized = tf.keras.utils.serialize_keras_object(layer)
    again = tf.keras.utils.deserialize_keras_object(serialized)
    assert type(again) is type(layer)
    assert again.get_config() == layer.get_config()
    assert again.name == "a_layer" and again.compute_dtype == "bfloat16"
    shapes = [{name: variable.shape for name, variable in named_variables(each).items()} for each in (layer, again)]
    assert shapes[0] == shapes[1]
