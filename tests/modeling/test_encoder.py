"""The encoder against a plain NumPy one in float64, with a cache, and with rematerialisation, which changes nothing."""

import numpy as np
import pytest
import tensorflow as tf
from numpy_reference import gelu
from rounding import independent_errors

from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining
from albert_tf.modeling.kernels.positions import with_first_position
from albert_tf.modeling.kernels.rematerialization import rematerialize
from albert_tf.modeling.layers import ACTIVATIONS, named_variables


class ReferenceEncoder:
    """Section 3.1 of the paper and the original code, written out."""

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
        """Returns states, and the probabilities of all heads."""
        size = self.config.hidden_size // self.config.num_attention_heads
        probabilities = []
        context, inputs, x = np.zeros_like(x), x, self.normalized_before(x, name)
        query, key, value = (self.linear(x, f"{name}/{part}") for part in ("query", "key", "value"))
        for head in range(0, self.config.hidden_size, size):
            part = np.s_[..., head : head + size]
            scores = query[part] @ key[part].swapaxes(1, 2) / np.sqrt(size) + np.where(mask, 0.0, -10000.0)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            probabilities.append(weights / weights.sum(-1, keepdims=True))
            context[part] = probabilities[-1] @ value[part]
        output = self.normalized_after(inputs + self.linear(context, f"{name}/output_dense"), name)
        return output, np.stack(probabilities, axis=1)

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
        hidden_states, attentions = [x], []
        for layer in range(config.num_hidden_layers):
            for inner in range(config.inner_group_num):
                attention = self.owner(layer, inner, config.sharing in ("all", "attention"))
                feed_forward = self.owner(layer, inner, config.sharing in ("all", "ffn"))
                x, probabilities = self.attention(x, mask, f"attention_layers/{attention}")
                x = self.feed_forward(x, f"feed_forward_layers/{feed_forward}")
                attentions.append(probabilities)
                hidden_states.append(x)
        if config.norm_position == "pre":
            x = hidden_states[-1] = self.normalized(x, "last_layer_norm")
        pooled = np.tanh(self.linear(x[:, 0], "pooler"))
        states = {"hidden_states": hidden_states, "attentions": attentions}
        return {"sequence_output": x, "pooled_output": pooled, **states}


@pytest.mark.keras_2
@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sharing": "attention", "embedding_size": 16},
        {"sharing": "ffn", "num_hidden_groups": 2},
        {"sharing": "none", "inner_group_num": 2},
        {"num_hidden_groups": 3, "inner_group_num": 2},
        {"num_hidden_groups": 2, "norm_position": "pre"},
    ],
    ids=str,
)
def test_encoder_equals_the_reference(tiny_config, randomized, batch, changes):
    config = tiny_config.replace(num_hidden_layers=4, **changes)
    encoder = randomized(AlbertEncoder(config))
    weights = {name: variable.numpy() for name, variable in named_variables(encoder).items()}
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    expected = ReferenceEncoder(config, weights)(**{name: values.numpy() for name, values in inputs.items()})
    outputs = encoder(inputs, output_hidden_states=True, output_attentions=True)
    assert outputs.keys() == expected.keys()
    for name, values in expected.items():
        assert len(outputs[name]) == len(values)
        for found, each in zip(outputs[name], values):
            np.testing.assert_allclose(found, each, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("has_documents", "is_causal", "remat", "norm_position"),
    [
        (False, True, "none", "post"),
        (True, False, "none", "post"),
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


# Products of other shapes are added up in another order: 20 values and 90 terms of six products in each of two blocks,
# in both computations, of which the largest of 480 is 4 deviations off; as much again because products enlarge errors.
TOLERANCE = 8 * independent_errors(2 * 2 * 110)


def test_rows_of_a_mask_are_those_of_the_positions(tiny_config, randomized, batch):
    encoder = randomized(AlbertEncoder(tiny_config))
    positions = tf.constant([[0, 5, 2, 2]] * batch["input_ids"].shape[0])
    length = batch["input_ids"].shape[1]
    inputs = {**batch, "input_mask": tf.constant(np.tril(np.ones([3, length, length], np.int32)))}
    every, chosen = encoder(inputs), encoder(inputs, output_positions=positions, output_attentions=True)
    expected = tf.gather(every["sequence_output"], positions, batch_dims=1)
    np.testing.assert_allclose(chosen["sequence_output"], expected, rtol=TOLERANCE, atol=TOLERANCE)
    for row, position in enumerate([0, 5, 2, 2]):
        seen = chosen["attentions"][-1].numpy()[:, :, row] > 0
        np.testing.assert_array_equal(seen, np.broadcast_to(np.arange(length) <= position, seen.shape))


GPT = {"norm_position": "pre", "language_model_head": "tied", "embedding_size": 16, "type_vocab_size": 0}
FAMILIES = {
    "ALBERT, one block": {"num_hidden_layers": 3},
    "groups": {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2},
    "attention shared alone": {"sharing": "attention"},
    "BERT": {"sharing": "none", "embedding_size": 16, "hidden_act": "gelu_erf"},
    "GPT-2": {"sharing": "none", **GPT},
    "GPT-2, one block": GPT,
    "positions as RoBERTa's": {"position_offset": 3, "type_vocab_size": 1},
}
LENGTH = 9


@pytest.mark.parametrize("changes", FAMILIES.values(), ids=FAMILIES)
def test_pieces_one_by_one_give_what_the_whole_text_does(tiny_config, randomized, changes):
    model = randomized(AlbertForPreTraining(tiny_config.replace(pooler=False, is_causal=True, **changes)))
    ids = tf.constant(np.random.default_rng(1).integers(4, 30, [2, LENGTH]), tf.int32)
    expected = model({"input_ids": ids})["masked_lm_logits"].numpy()
    table = tf.convert_to_tensor(model.encoder.embeddings.word_embeddings)
    # The rows are not at the same place: of the second more is known.
    begins = np.array([2, 5])
    caches = model.encoder.empty_caches(2, LENGTH)
    states, caches = model.encoder.extend(ids[:, :5], tf.tile(tf.range(5)[None], [2, 1]), caches)
    found = model.masked_lm_head(states, table).numpy()
    np.testing.assert_allclose(found, expected[:, :5], atol=1e-4)
    for step in range(LENGTH - 5):
        columns = tf.constant(begins + step, tf.int32)[:, None]
        states, caches = model.encoder.extend(tf.gather(ids, columns, batch_dims=1), columns, caches)
        found = model.masked_lm_head(states, table).numpy()[:, 0]
        np.testing.assert_allclose(found, expected[[0, 1], begins + step], atol=1e-4)


@pytest.mark.keras_2
def test_what_was_written_behind_a_piece_is_not_seen(tiny_config, randomized):
    """So the pieces that fill a batch up, which the first call writes, need no mask."""
    model = randomized(AlbertForPreTraining(tiny_config.replace(pooler=False, is_causal=True)))
    ids = tf.constant([[5, 6, 7, 8, 9, 10]])
    columns = tf.range(6)[None]
    encoder = model.encoder
    _, caches = encoder.extend(ids, columns, encoder.empty_caches(1, 6))
    states, _ = encoder.extend(tf.constant([[11]]), tf.constant([[2]]), caches)
    expected = encoder({"input_ids": tf.constant([[5, 6, 11]])})["sequence_output"][:, 2:]
    np.testing.assert_allclose(states, expected, atol=1e-5)
    other, _ = encoder.extend(tf.constant([[11]]), tf.constant([[3]]), caches)
    assert np.abs(other - expected).max() > 1e-2


def test_gradients_are_those_of_the_function():
    calls = []

    def function(inputs, nothing, parameters, seed):
        calls.append(1)
        noise = tf.random.stateless_uniform(inputs.shape, seed)
        assert nothing is None
        return [tf.tanh(inputs @ parameters["kernel"]) * noise]

    inputs, kernel, seed = tf.random.normal([3, 3], seed=1), tf.random.normal([3, 3], seed=2), tf.constant([1, 2])
    gradients = []
    for apply in (function, rematerialize(function)):
        with tf.GradientTape() as tape:
            tape.watch([inputs, kernel])
            loss = tf.reduce_sum(apply(inputs, None, {"kernel": kernel}, seed)[0] ** 2)
        gradients.append(tape.gradient(loss, [inputs, kernel]))
    assert len(calls) == 1 + 2, "once more in the backward pass"
    for plain, again in zip(*gradients):
        np.testing.assert_array_equal(plain, again)


DISENTANGLED = {"relative_attention": "p2c|c2p", "position_buckets": 6, "norm_rel_ebd": "layer_norm"}


@pytest.mark.parametrize(
    ("changes", "remat"),
    [
        ({}, "block"),
        ({"sharing": "none"}, "attention"),
        ({**DISENTANGLED, "share_att_key": True, "sharing": "ffn"}, "attention"),
        ({**DISENTANGLED, "share_att_key": False, "sharing": "ffn"}, "block"),
    ],
    ids=str,
)
def test_loss_and_gradients_are_the_same(tiny_config, batch, changes, remat):
    config = tiny_config.replace(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2, **changes)
    results = []
    for choice in ("none", remat):
        tf.keras.utils.set_random_seed(3)
        model = AlbertForPreTraining(config, remat=choice)
        variables = named_variables(model)
        with tf.GradientTape() as tape:
            outputs = model(batch, training=True, dropout_seed=tf.constant([5, 6]))
            loss = tf.reduce_sum(outputs["sentence_order_logits"] ** 2)
            loss += tf.reduce_sum(outputs["masked_lm_logits"] ** 2)
        results.append((loss, tape.gradient(loss, variables)))
    (loss, gradients), (other_loss, other_gradients) = results
    assert float(loss) == float(other_loss)
    for name, gradient in gradients.items():
        found, expected = (tf.convert_to_tensor(each).numpy() for each in (other_gradients[name], gradient))
        # The gradients of several uses are added up in another order.
        np.testing.assert_allclose(found, expected, atol=1e-5 * max(1.0, np.abs(expected).max()), err_msg=name)


def test_unknown_choice_is_refused(tiny_config):
    with pytest.raises(ValueError, match="remat must be one of none, attention, block"):
        AlbertEncoder(tiny_config, remat="everything")
