"""Our models and Hugging Face's compute the same from the same weights."""

import re

import numpy as np
import pytest
import tensorflow as tf
from rounding import independent_errors

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

# Our name of a layer and Hugging Face's, in the order in which they are replaced.
RENAMED = [
    (r"^encoder/embeddings/(\w+_embeddings)$", r"albert.embeddings.\1.weight"),
    (r"^encoder/embeddings/layer_norm", "albert.embeddings.LayerNorm"),
    (r"^encoder/embedding_hidden_mapping_in", "albert.encoder.embedding_hidden_mapping_in"),
    (r"^encoder/pooler", "albert.pooler"),
    (r"^encoder/attention_layers/", "attention/"),
    (r"^encoder/feed_forward_layers/", "feed_forward/"),
    (r"attention/(\S+?)/output_dense", r"attention/\1/dense"),
    (r"attention/(\S+?)/layer_norm", r"attention/\1/LayerNorm"),
    (r"feed_forward/(\S+?)/intermediate", r"feed_forward/\1/ffn"),
    (r"feed_forward/(\S+?)/output_dense", r"feed_forward/\1/ffn_output"),
    (r"feed_forward/(\S+?)/layer_norm", r"feed_forward/\1/full_layer_layer_norm"),
    (r"^masked_lm_head/transform", "predictions.dense"),
    (r"^masked_lm_head/layer_norm", "predictions.LayerNorm"),
    (r"^masked_lm_head/output_bias", "predictions.bias"),
    (r"^sentence_order_head/dense", "sop_classifier.classifier"),
    (r"/(kernel|gamma)$", ".weight"),
    (r"/(bias|beta)$", ".bias"),
]


def hugging_face_name(name, config):
    """Returns what Hugging Face calls one of our variables."""
    for ours, theirs in RENAMED:
        name = re.sub(ours, theirs, name)
    block = re.fullmatch(r"(attention|feed_forward)/(\d+)/(.+)", name)
    if not block:
        return name
    group, inner = divmod(int(block[2]), config.inner_group_num)
    layer = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
    return f"{layer}.attention.{block[3]}" if block[1] == "attention" else f"{layer}.{block[3]}"


def as_hugging_face(model, config):
    """Returns a Hugging Face model of our config with our model's weights."""
    theirs = transformers.AlbertForPreTraining(
        transformers.AlbertConfig(
            vocab_size=config.vocab_size,
            embedding_size=config.embedding_size,
            hidden_size=config.hidden_size,
            num_hidden_layers=config.num_hidden_layers,
            num_hidden_groups=config.num_hidden_groups,
            inner_group_num=config.inner_group_num,
            num_attention_heads=config.num_attention_heads,
            intermediate_size=config.intermediate_size,
            hidden_act="gelu_new" if config.hidden_act == "gelu" else config.hidden_act,
            max_position_embeddings=config.max_position_embeddings,
            type_vocab_size=config.type_vocab_size,
            layer_norm_eps=config.layer_norm_eps,
            attn_implementation="eager",
        )
    )
    state = {}
    for name, variable in named_variables(model).items():
        values = variable.numpy()
        state[hugging_face_name(name, config)] = torch.tensor(values.T if name.endswith("kernel") else values)
    if config.embedding_size == config.hidden_size:  # Hugging Face projects even then
        state["albert.encoder.embedding_hidden_mapping_in.weight"] = torch.eye(config.hidden_size)
        state["albert.encoder.embedding_hidden_mapping_in.bias"] = torch.zeros(config.hidden_size)
    missing, unexpected = theirs.load_state_dict(state, strict=False)
    assert not unexpected
    assert set(missing) <= {"predictions.decoder.weight", "predictions.decoder.bias"}  # tied
    theirs.tie_weights()
    return theirs.eval()


BASE = AlbertConfig(
    vocab_size=30,
    embedding_size=8,
    hidden_size=32,
    num_hidden_layers=4,
    num_attention_heads=4,
    intermediate_size=128,
    max_position_embeddings=16,
)
# Either of us rounds 20 values and the 240 terms of six products per block, of which there are eight at most. The last
# products make errors up to 0.3 sqrt(32) = 1.7 times as large each, and the largest of 900 outputs is 4 deviations off,
# which is 16 in all; three times that is allowed.
TOLERANCE = 50 * independent_errors(2000)


def to_torch(inputs):
    """Returns our dictionary of inputs as Hugging Face's arguments."""
    names = {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    tensors = {names.get(name, name): torch.tensor(values.numpy()) for name, values in inputs.items()}
    return {name: values if values.is_floating_point() else values.long() for name, values in tensors.items()}


def assert_close(ours, theirs, name):
    assert ours.dtype == tf.float32
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_act": "gelu"},
        {"hidden_act": "relu", "num_hidden_groups": 2, "inner_group_num": 2},
        {"hidden_act": "gelu_new", "num_hidden_groups": 2, "embedding_size": 32},
        {"inner_group_num": 2, "layer_norm_eps": 0.1, "type_vocab_size": 4, "num_attention_heads": 1},
    ],
    ids=str,
)
def test_all_outputs_equal_hugging_face(randomized, batch, changes):
    config = BASE.replace(**changes)
    model = randomized(AlbertForPreTraining(config))
    inputs = {name: values for name, values in batch.items() if name != "masked_lm_positions"}
    ours = model(inputs, output_hidden_states=True, output_attentions=True)

    theirs = as_hugging_face(model, config)
    with torch.no_grad():
        encoded = theirs.albert(**to_torch(inputs))
        scored = theirs(**to_torch(inputs), output_hidden_states=True, output_attentions=True)
    for name, expected in {
        "sequence_output": encoded.last_hidden_state,
        "pooled_output": encoded.pooler_output,
        "masked_lm_logits": scored.prediction_logits,
        "sentence_order_logits": scored.sop_logits,
    }.items():
        assert_close(ours[name], expected, name)
    if config.inner_group_num == 1:  # Hugging Face returns those of one inner block, we return them all
        for name, expected in {"hidden_states": scored.hidden_states, "attentions": scored.attentions}.items():
            assert len(ours[name]) == len(expected), name
            for number, (each, other) in enumerate(zip(ours[name], expected)):
                assert_close(each, other, f"{name} {number}")


def causal_mask(batch):
    """Returns [B, S, S]: each piece sees itself and what comes before, of the pieces that are no padding."""
    length = batch["input_ids"].shape[1]
    return tf.constant(np.tril(np.ones([length, length], np.int32)) * batch["input_mask"].numpy()[:, None])


@pytest.fixture
def pair(randomized):
    """Our model and Hugging Face's, with the same weights."""
    model = randomized(AlbertForPreTraining(BASE))
    return model, as_hugging_face(model, BASE)


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["position_ids", "inputs_embeds", "causal mask", "all of them"])
def test_other_inputs_do_what_they_do_in_hugging_face(pair, batch, changed):
    model, theirs = pair
    inputs = {name: values for name, values in batch.items() if name != "masked_lm_positions"}
    before = model.encoder(inputs)["sequence_output"]
    draws = np.random.default_rng(2)
    if changed in ("position_ids", "all of them"):
        inputs["position_ids"] = tf.constant(draws.integers(0, 16, batch["input_ids"].shape), tf.int32)
    if changed in ("inputs_embeds", "all of them"):
        del inputs["input_ids"]
        inputs["inputs_embeds"] = tf.constant(draws.normal(size=[*batch["input_ids"].shape, 8]), tf.float32)
    arguments = to_torch(inputs)
    if changed in ("causal mask", "all of them"):
        inputs["input_mask"] = causal_mask(batch)
        # Hugging Face takes masks with a row for each query as what is added to the scores of every head.
        arguments["attention_mask"] = torch.tensor((1.0 - inputs["input_mask"].numpy()[:, None]) * -1e4).float()
    ours = model(inputs)
    with torch.no_grad():
        encoded, scored = theirs.albert(**arguments), theirs(**arguments)
    assert_close(ours["sequence_output"], encoded.last_hidden_state, "sequence_output")
    assert_close(ours["pooled_output"], encoded.pooler_output, "pooled_output")
    assert_close(ours["masked_lm_logits"], scored.prediction_logits, "masked_lm_logits")
    assert np.abs(ours["sequence_output"] - before).max() > 0.1, "it makes a difference"
