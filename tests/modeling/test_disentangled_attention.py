"""Disentangled attention is that of Hugging Face's DeBERTa-v2, forward and backward, and knows what it can't do."""

import itertools
import re

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining, AlbertForSequenceClassification
from albert_tf.modeling.kernels.relative_scores import places_of_pairs, rows_of_distances
from albert_tf.modeling.layers import named_variables

TOLERANCE = 1e-5

BASE = AlbertConfig(
    vocab_size=30,
    embedding_size=16,
    hidden_size=16,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=24,
    hidden_act="gelu_erf",
    layer_norm_eps=1e-7,
    max_position_embeddings=23,
    type_vocab_size=0,
    sharing="none",
    pooler=False,
    classification_head="dense_gelu",
    relative_attention="p2c|c2p",
    position_buckets=6,
    max_relative_positions=13,
    share_att_key=True,
    norm_rel_ebd="layer_norm",
    position_biased_input=False,
)
# Each switch the other way, and all the other way together.
OTHERWISE = {
    "share_att_key": False,
    "norm_rel_ebd": "none",
    "position_biased_input": True,
    "type_vocab_size": 2,
    "position_buckets": 0,
    "max_relative_positions": 0,
}
CHANGES = [
    {},
    *({name: value} for name, value in OTHERWISE.items()),
    OTHERWISE,
    *(
        {"relative_attention": term, "share_att_key": is_shared}
        for term, is_shared in itertools.product(("c2p", "p2c"), (True, False))
    ),
    {"position_buckets": 0, "max_relative_positions": 5},
    {"position_buckets": 4, "max_relative_positions": 40, "num_attention_heads": 1},
]

# Our name of a layer and Hugging Face's, in the order in which they are replaced.
RENAMED = [
    (r"^encoder/embeddings/(\w+_embeddings)$", r"deberta.embeddings.\1.weight"),
    (r"^encoder/embeddings/layer_norm", "deberta.embeddings.LayerNorm"),
    (r"^encoder/relative_embeddings/table", "deberta.encoder.rel_embeddings.weight"),
    (r"^encoder/relative_embeddings/layer_norm", "deberta.encoder.LayerNorm"),
    (r"^encoder/(?:attention|feed_forward)_layers/(\d+)/", r"deberta.encoder.layer.\1/"),
    (r"/distances/(key|query)", r".attention.self.pos_\1_proj"),
    (r"/(query|key|value)/", r".attention.self.\1_proj/"),
    (r"/intermediate", ".intermediate.dense"),
    (r"^masked_lm_head/transform", r"cls.predictions.transform.dense"),
    (r"^masked_lm_head/layer_norm", r"cls.predictions.transform.LayerNorm"),
    (r"^masked_lm_head/output_bias", r"cls.predictions.bias"),
    (r"^head/transform", "pooler.dense"),
    (r"^head/dense", "classifier"),
    (r"/(kernel|gamma)$", ".weight"),
    (r"/(bias|beta)$", ".bias"),
]


def hugging_face_name(name, is_legacy=True):
    """Returns what Hugging Face calls one of our variables."""
    place = ".attention.output" if "attention_layers" in name else ".output"
    for ours, theirs in RENAMED:
        name = re.sub(ours, theirs, name)
    name = name.replace("/output_dense", f"{place}.dense").replace("/layer_norm", f"{place}.LayerNorm")
    if is_legacy:
        return name
    return re.sub(r"^cls\.predictions\.(?:transform\.)?", "lm_predictions.lm_head.", name)


def as_hugging_face(model, kind, **more):
    """Returns a Hugging Face model of a class with our model's weights."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    config = model.config
    theirs = getattr(transformers, f"DebertaV2{kind}")(
        transformers.DebertaV2Config(
            **{name: getattr(config, name) for name in OTHERWISE},
            vocab_size=config.vocab_size,
            hidden_size=config.hidden_size,
            num_hidden_layers=config.num_hidden_layers,
            num_attention_heads=config.num_attention_heads,
            intermediate_size=config.intermediate_size,
            hidden_act="gelu",
            layer_norm_eps=config.layer_norm_eps,
            max_position_embeddings=config.max_position_embeddings,
            relative_attention=True,
            pos_att_type=config.relative_attention,
            pad_token_id=0,
            **more,
        )
    )
    state = {}
    for name, variable in named_variables(model).items():
        values = variable.numpy()
        values = torch.tensor(values.T if name.endswith("kernel") else values)
        state[hugging_face_name(name, more.get("legacy", True))] = values
    missing, unexpected = theirs.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    theirs.tie_weights()
    return theirs.eval()


def make_batch(length, type_vocab_size=2):
    """Returns texts of three lengths, and random numbers for what is real of them."""
    random = np.random.default_rng(length)
    lengths = np.array([[length], [max(1, length - 3)], [(length + 1) // 2]])
    is_real = np.arange(length) < lengths
    inputs = {
        "input_ids": random.integers(1, 30, [3, length]) * is_real,
        "input_mask": is_real,
        "segment_ids": (np.arange(length) >= lengths // 2) & is_real,
    }
    if type_vocab_size == 0:
        del inputs["segment_ids"]
    return {name: tf.constant(values, tf.int32) for name, values in inputs.items()}, is_real


def to_torch(inputs):
    import torch

    names = {"input_ids": "input_ids", "input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    return {names[name]: torch.tensor(values.numpy()).long() for name, values in inputs.items()}


def assert_gradients_equal(model, tape, loss, theirs, their_loss, is_legacy=True):
    """Compares the gradients of every variable, relative to the largest of all."""
    variables = named_variables(model)
    ours = dict(zip(variables, tape.gradient(loss, list(variables.values()))))
    their_loss.backward()
    parameters = dict(theirs.named_parameters())
    for name, gradient in ours.items():
        expected = parameters[hugging_face_name(name, is_legacy)].grad.numpy()
        expected = expected.T if name.endswith("kernel") else expected
        found = tf.convert_to_tensor(gradient).numpy()
        assert np.abs(found - expected).max() <= TOLERANCE * max(1.0, np.abs(expected).max()), name


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_states_and_gradients_equal_hugging_face(randomized, changes):
    import torch

    config = BASE.replace(**changes)
    for length in (1, 7, 23):
        model = randomized(AlbertForPreTraining(config))
        inputs, is_real = make_batch(length, config.type_vocab_size)
        theirs = as_hugging_face(model, "ForMaskedLM")
        weights = np.random.default_rng(0).normal(size=[3, length, 30]).astype(np.float32) * is_real[..., None]
        with tf.GradientTape() as tape:
            outputs = model(inputs, output_hidden_states=True)
            loss = tf.reduce_sum(outputs["masked_lm_logits"] * weights)
        expected = theirs(**to_torch(inputs), output_hidden_states=True)
        for ours, other in zip(outputs["hidden_states"], expected.hidden_states, strict=True):
            np.testing.assert_allclose(
                ours.numpy()[is_real], other.detach().numpy()[is_real], rtol=TOLERANCE, atol=TOLERANCE
            )
        their_loss = (expected.logits * torch.tensor(weights)).sum()
        assert_gradients_equal(model, tape, loss, theirs, their_loss)
