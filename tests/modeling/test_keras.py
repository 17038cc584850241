"""What Keras does with models: saving, loading, cloning, exporting, `fit`, and being part of a user's own model."""

import numpy as np
import pytest
import tensorflow as tf

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
from albert_tf.modeling.heads import MaskedLMHead, OutputHead
from albert_tf.modeling.layers import LayerNorm, Linear, named_variables

pytestmark = pytest.mark.skipif(
    tf.keras.__name__.startswith("tf_keras"), reason=".keras files, clones and exports of these models need Keras 3"
)

# Every model, one of them in bfloat16, with the outputs of which a loss is made.
MODELS = {
    "encoder": (AlbertEncoder, {}, ["pooled_output"]),
    "pre-training": (AlbertForPreTraining, {"remat": "block"}, ["masked_lm_logits", "sentence_order_logits"]),
    "sequence classification": (
        AlbertForSequenceClassification,
        {"num_labels": 3, "dtype": "mixed_bfloat16", "attention": "plain"},
        ["logits"],
    ),
    "token classification": (AlbertForTokenClassification, {"num_labels": 3}, ["logits"]),
    "question answering": (AlbertForQuestionAnswering, {"remat": "attention"}, ["start_logits", "end_logits"]),
    "conditional question answering": (
        AlbertForConditionalQuestionAnswering,
        {},
        ["start_logits", "end_logits", "null_logits"],
    ),
    "multiple choice": (AlbertForMultipleChoice, {}, ["logits"]),
}

# Exporting is the same code for all models; the others show it for each shape of input and output.
NOT_EXPORTED = ("encoder", "token classification", "question answering")


@pytest.fixture
def config(tiny_config):
    """A config whose values differ from the defaults where a round trip could lose them."""
    return tiny_config.replace(num_hidden_layers=1, hidden_dropout_prob=0.2, layer_norm_eps=1e-3, hidden_act="relu")


def to_arrays(batch, use=None):
    """Returns the encoder's inputs as NumPy arrays, as `fit` takes them."""
    inputs = {name: batch[name].numpy() for name in ("input_ids", "input_mask", "segment_ids")}
    return {name: values[:, None] for name, values in inputs.items()} if use == "multiple choice" else inputs


def assert_equal_outputs(found, expected):
    tf.nest.assert_same_structure(found, expected)
    for ours, theirs in zip(tf.nest.flatten(found), tf.nest.flatten(expected)):
        np.testing.assert_array_equal(tf.cast(ours, tf.float32), tf.cast(theirs, tf.float32))


def assert_close_outputs(found, expected, tolerance):
    assert len(found) == len(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(
            tf.cast(found[name], tf.float32), tf.cast(values, tf.float32), rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.slow
@pytest.mark.parametrize("use", MODELS)
def test_trained_model_is_saved_loaded_cloned_and_exported(config, batch, tmp_path, use):
    make, options, outputs = MODELS[use]
    model = make(config, **options)
    inputs = to_arrays(batch, use)
    before = {name: variable.numpy() for name, variable in named_variables(model).items()}
    model.summary(print_fn=lambda *_, **__: None)  # which calls layers, and must leave no trace
    model.compile("sgd", loss=dict.fromkeys(outputs, "mse"), jit_compile=False)
    targets = {name: np.ones(model(inputs)[name].shape, np.float32) for name in outputs}
    model.fit(inputs, targets, verbose=0)
    variables = named_variables(model)
    assert any(np.abs(variables[name].numpy() - values).max() > 0 for name, values in before.items())
    expected = model(inputs)

    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is make
    assert loaded.get_config() == model.get_config()
    assert_equal_outputs(loaded(inputs), expected)

    clone = tf.keras.models.clone_model(model)
    assert list(named_variables(clone)) == list(variables)
    clone.set_weights(model.get_weights())
    assert_equal_outputs(clone(inputs), expected)

    if use in NOT_EXPORTED:
        return
    model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(tmp_path / "exported")
    tolerance = 0.02 if options.get("dtype") else 1e-5  # compilers round bfloat16 at other places
    for length in (10, 6):
        shorter = {name: tf.constant(values[..., :length]) for name, values in inputs.items()}
        assert_close_outputs(exported.serve(shorter), model(shorter), tolerance)


# As `fit` chooses by itself, it compiles the step with XLA.
@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "jit_compile"), [("float32", "auto"), ("mixed_bfloat16", False)])
def test_encoder_is_part_of_a_model_of_a_user(config, batch, tmp_path, dtype, jit_compile):
    inputs = {name: tf.keras.Input([None], dtype="int32", name=name) for name in to_arrays(batch)}
    encoder = AlbertEncoder(config, dtype=dtype, name="albert")
    outputs = encoder(inputs, output_hidden_states=True)
    middle = tf.keras.layers.GlobalAveragePooling1D(dtype="float32")(outputs["hidden_states"][-1])
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(2, dtype="float32")(middle))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.01), loss, jit_compile=jit_compile)
    arrays, labels = to_arrays(batch), np.array([0, 1, 0])
    losses = model.fit(arrays, labels, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
    expected = model(arrays)

    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert_equal_outputs(loaded(arrays), expected)
    assert loaded.get_layer("albert").config == config

    clone = tf.keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    assert_equal_outputs(clone(arrays), expected)

    if dtype == "float32":
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
    make, options, _ = MODELS[use]
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
