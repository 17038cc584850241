"""The encoder against a plain NumPy one in float64, for every way of sharing layers."""

import numpy as np
import pytest
import tensorflow as tf
from numpy_reference import gelu

from albert_tf.modeling import AlbertEncoder
from albert_tf.modeling.kernels.positions import with_first_position
from albert_tf.modeling.layers import ACTIVATIONS, named_variables


class ReferenceEncoder:
    """What section 3.1 of the paper and the original code describe, written out."""

    def __init__(self, config, weights):
        self.config = config
        self.weights = {name: values.astype(np.float64) for name, values in weights.items()}

    def linear(self, x, name):
        return x @ self.weights[f"{name}/kernel"] + self.weights[f"{name}/bias"]

    def normalized(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + self.config.layer_norm_eps)
        return scaled * self.weights[f"{name}/gamma"] + self.weights[f"{name}/beta"]

    def attention(self, x, mask, name):
        size = self.config.hidden_size // self.config.num_attention_heads
        context, inputs, x = np.zeros_like(x), x, self.normalized_before(x, name)
        query, key, value = (self.linear(x, f"{name}/{part}") for part in ("query", "key", "value"))
        for head in range(0, self.config.hidden_size, size):
            part = np.s_[..., head : head + size]
            scores = query[part] @ key[part].swapaxes(1, 2) / np.sqrt(size) + np.where(mask, 0.0, -10000.0)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            context[part] = weights / weights.sum(-1, keepdims=True) @ value[part]
        return self.normalized_after(inputs + self.linear(context, f"{name}/output_dense"), name)

    def feed_forward(self, x, name):
        intermediate = gelu(self.linear(self.normalized_before(x, name), f"{name}/intermediate"))
        return self.normalized_after(x + self.linear(intermediate, f"{name}/output_dense"), name)

    def normalized_before(self, x, name):
        return self.normalized(x, f"{name}/layer_norm") if self.config.norm_position == "pre" else x

    def normalized_after(self, x, name):
        return self.normalized(x, f"{name}/layer_norm") if self.config.norm_position == "post" else x

    def owner(self, layer, inner, is_shared):
        """Returns the number of the sub-layer that a layer applies."""
        config = self.config
        group = int(layer / config.num_hidden_layers * config.num_hidden_groups)
        return (group if is_shared else layer) * config.inner_group_num + inner

    def __call__(self, input_ids, input_mask, segment_ids, document_ids=None):
        config, weights = self.config, self.weights
        mask = np.tile(input_mask[:, None, :], [1, input_ids.shape[1], 1])
        mask = np.tril(mask) if config.is_causal else mask
        if document_ids is not None:
            mask = mask * (document_ids[:, :, None] == document_ids[:, None, :])
        x = weights["embeddings/word_embeddings"][input_ids]
        x = x + weights["embeddings/token_type_embeddings"][segment_ids]
        x = x + weights["embeddings/position_embeddings"][: input_ids.shape[1]]
        x = self.normalized_after(x, "embeddings")
        if config.embedding_size != config.hidden_size:
            x = self.linear(x, "embedding_hidden_mapping_in")
        for layer in range(config.num_hidden_layers):
            for inner in range(config.inner_group_num):
                attention = self.owner(layer, inner, config.sharing in ("all", "attention"))
                feed_forward = self.owner(layer, inner, config.sharing in ("all", "ffn"))
                x = self.attention(x, mask, f"attention_layers/{attention}")
                x = self.feed_forward(x, f"feed_forward_layers/{feed_forward}")
        if config.norm_position == "pre":
            x = self.normalized(x, "last_layer_norm")
        return {"sequence_output": x, "pooled_output": np.tanh(self.linear(x[:, 0], "pooler"))}


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"embedding_size": 16},
        {"sharing": "attention"},
        {"sharing": "ffn", "num_hidden_groups": 2},
        {"sharing": "none"},
        {"sharing": "none", "inner_group_num": 2},
        {"num_hidden_groups": 2},
        {"num_hidden_groups": 3, "inner_group_num": 2},
        {"num_hidden_groups": 4},
        {"num_hidden_groups": 2, "norm_position": "pre"},
        {"sharing": "ffn", "embedding_size": 16, "norm_position": "pre"},
    ],
    ids=str,
)
def test_encoder_equals_the_reference(tiny_config, randomized, batch, changes):
    config = tiny_config.replace(num_hidden_layers=4, **changes)
    encoder = randomized(AlbertEncoder(config))
    weights = {name: variable.numpy() for name, variable in named_variables(encoder).items()}
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    expected = ReferenceEncoder(config, weights)(**{name: values.numpy() for name, values in inputs.items()})
    outputs = encoder(inputs)
    assert outputs.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(outputs[name], values, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("has_documents", "is_causal", "remat", "norm_position"),
    [
        (False, True, "none", "post"),
        (True, False, "none", "post"),
        (True, True, "none", "post"),
        (True, True, "block", "post"),
        (True, True, "block", "pre"),
    ],
)
def test_causal_encoder_and_documents_equal_the_reference(
    tiny_config, randomized, batch, is_causal, has_documents, remat, norm_position
):
    config = tiny_config.replace(is_causal=is_causal, norm_position=norm_position)
    encoder = randomized(AlbertEncoder(config, remat=remat))
    weights = {name: variable.numpy() for name, variable in named_variables(encoder).items()}
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    if has_documents:  # among them one that comes back, and one of a single piece
        inputs["document_ids"] = tf.constant([[7, 7, 7, 1, 1, 7, 7, 3, 1, 1]] * 3)
    is_read = inputs["input_mask"].numpy() == 1  # what padding sees is nobody's business
    expected = ReferenceEncoder(config, weights)(**{name: values.numpy() for name, values in inputs.items()})
    positions = with_first_position(batch["masked_lm_positions"])
    for encode in (encoder, tf.function(encoder)):
        outputs = encode(inputs)
        found = outputs["sequence_output"].numpy()
        np.testing.assert_allclose(found[is_read], expected["sequence_output"][is_read], rtol=1e-4, atol=1e-5)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(outputs["pooled_output"], expected["pooled_output"], rtol=1e-4, atol=1e-5)
        found = encode(inputs, output_positions=positions)["sequence_output"]
        states = np.take_along_axis(expected["sequence_output"], positions.numpy()[:, :, None], axis=1)
        np.testing.assert_allclose(found, states, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "reference"),
    [("gelu", gelu), ("gelu_new", gelu), ("relu", lambda x: x * (x > 0)), ("tanh", np.tanh), ("linear", lambda x: x)],
)
def test_activation_is_the_function_of_its_name(name, reference):
    inputs = np.linspace(-6, 6, 101)
    # Half of 6, the largest input, times the 8 * 2**-24 by which a library's tanh may be off, and as much again.
    np.testing.assert_allclose(ACTIVATIONS[name](tf.constant(inputs, tf.float32)), reference(inputs), atol=3e-6)


def test_mask_and_segments_may_be_left_out(tiny_config, randomized, batch):
    encoder = randomized(AlbertEncoder(tiny_config))
    input_ids = batch["input_ids"]
    short = encoder({"input_ids": input_ids})
    zeros, ones = tf.zeros_like(input_ids), tf.ones_like(input_ids)
    full = encoder({"input_ids": input_ids, "input_mask": ones, "segment_ids": zeros})
    np.testing.assert_array_equal(short["sequence_output"], full["sequence_output"])


def test_padded_text_is_encoded_like_the_text_alone(tiny_config, randomized, batch):
    encoder = randomized(AlbertEncoder(tiny_config))
    is_real = batch["input_mask"] == 1
    others = {"input_ids": tf.where(is_real, batch["input_ids"], 29)}
    others["segment_ids"] = tf.where(is_real, batch["segment_ids"], 1)
    padded = encoder({**batch, **others})["sequence_output"]
    for example, length in enumerate(batch["input_mask"].numpy().sum(axis=1)):
        alone = encoder({name: batch[name][example : example + 1, :length] for name in ("input_ids", "segment_ids")})
        np.testing.assert_allclose(alone["sequence_output"][0], padded[example, :length], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("changes", "is_copied"), [({"sharing": "none"}, False), ({"sharing": "all"}, True)])
def test_kernels_of_one_block_alone_are_not_put_together(tiny_config, changes, is_copied):
    config = tiny_config.replace(**changes)
    encoder = AlbertEncoder(config)
    ids = tf.TensorSpec([None, None], tf.int32)
    graph = tf.function(lambda ids: encoder({"input_ids": ids})["sequence_output"]).get_concrete_function(ids).graph
    shapes = [output.shape for operation in graph.get_operations() for output in operation.outputs]
    assert any(shape == [config.hidden_size, 3 * config.hidden_size] for shape in shapes) is is_copied


def test_longest_sequence_is_the_number_of_positions(tiny_config):
    encoder = AlbertEncoder(tiny_config)
    assert encoder({"input_ids": tf.ones([1, 12], tf.int32)})["sequence_output"].shape == (1, 12, 16)
    with pytest.raises(ValueError, match=r"max_seq_length=13 .* max_position_embeddings, 12"):
        encoder({"input_ids": tf.ones([1, 13], tf.int32)})
    traced = tf.function(encoder, input_signature=[{"input_ids": tf.TensorSpec([None, None], tf.int32)}])
    with pytest.raises(tf.errors.InvalidArgumentError):
        traced({"input_ids": tf.ones([1, 13], tf.int32)})
