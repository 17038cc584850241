"""Disentangled attention is that of other libraries' DeBERTa, forward and backward, and knows what it can't do."""

import itertools
import re

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.interchange.families import family_named
from albert_tf.interchange.variables import entries
from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining
from albert_tf.modeling.kernels.attention import places_of_pairs
from albert_tf.modeling.layers import named_variables
from albert_tf.training.attention_choice import choose_attention
from albert_tf.training.settings import layer_rate_factors

TOLERANCE = 1e-5

BASE = AlbertConfig(
    vocab_size=30,
    embedding_size=16,
    hidden_size=16,
    num_hidden_layers=2,
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


def as_hugging_face(model):
    """Returns a Hugging Face model with our model's weights, and where its variables are, by our names."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    same = (*OTHERWISE, "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    same += ("layer_norm_eps", "max_position_embeddings")
    theirs = transformers.DebertaV2ForMaskedLM(
        transformers.DebertaV2Config(
            **{name: getattr(model.config, name) for name in same},
            relative_attention=True,
            pos_att_type=model.config.relative_attention,
            hidden_act="gelu",
            pad_token_id=0,
            legacy=True,
        )
    )
    variables = named_variables(model)
    places = entries(family_named("deberta-v2").naming, model.config)
    pairs = [(values.numpy(), places[name]) for name, values in variables.items()]
    state = {place.name: torch.tensor(as_theirs(values, place)) for values, place in pairs}
    missing, unexpected = theirs.load_state_dict(state, strict=False)
    assert not unexpected
    assert set(missing) <= {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}  # tied
    theirs.tie_weights()
    return theirs.eval(), places


def as_theirs(values, place):
    return values.T if place.spelling.is_transposed else values


def make_batch(length, has_segments=False):
    """Returns texts of three lengths, and which of their pieces are no padding."""
    random = np.random.default_rng(length)
    lengths = np.array([[length], [max(1, length - 3)], [(length + 1) // 2]])
    is_real = np.arange(length) < lengths
    inputs = {"input_ids": random.integers(1, 30, [3, length]) * is_real, "input_mask": is_real}
    if has_segments:
        inputs["segment_ids"] = (np.arange(length) >= lengths // 2) & is_real
    return {name: tf.constant(values, tf.int32) for name, values in inputs.items()}, is_real


def assert_close(found, expected):
    found, expected = (np.asarray(each) for each in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


# The longest has distances that share a bucket, and the shortest none.
@pytest.mark.parametrize(
    ("changes", "length"),
    [*((each, 7) for each in CHANGES), *((each, length) for each in (CHANGES[0], CHANGES[-1]) for length in (1, 23))],
    ids=str,
)
def test_states_and_gradients_equal_hugging_face(randomized, changes, length):
    torch = pytest.importorskip("torch")
    model = randomized(AlbertForPreTraining(BASE.replace(**changes)))
    theirs, places = as_hugging_face(model)
    inputs, is_real = make_batch(length, model.config.type_vocab_size > 0)
    aliases = {"input_ids": "input_ids", "input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    as_torch = {aliases[name]: torch.tensor(values.numpy()).long() for name, values in inputs.items()}
    wanted = {"output_hidden_states": True, "output_attentions": True}
    with tf.GradientTape() as tape:
        ours = model(inputs, **wanted)
        found = ours["masked_lm_logits"]
        # What is computed of padding differs: there it sees nothing, and the mean of everything.
        weights = np.random.default_rng(0).normal(size=found.shape).astype(np.float32) * is_real[..., None]
        loss = tf.reduce_sum(found * weights)
    expected = theirs(**as_torch, **wanted)
    (expected["logits"] * torch.tensor(weights)).sum().backward()
    assert_close(found.numpy()[is_real], expected["logits"].detach().numpy()[is_real])
    for name, axes in (("hidden_states", (0, 1, 2)), ("attentions", (0, 2, 1, 3))):
        for each, another in zip(ours[name], expected[name], strict=True):
            assert_close(*(values.transpose(axes)[is_real] for values in (each.numpy(), another.detach().numpy())))
    variables, parameters = named_variables(model), dict(theirs.named_parameters())
    gradients = tape.gradient(loss, list(variables.values()))
    for name, gradient in zip(variables, gradients, strict=True):
        expected = as_theirs(parameters[places[name].name].grad.numpy(), places[name])
        difference = np.abs(tf.convert_to_tensor(gradient) - expected).max()
        # Twice, as some are 0 but for rounding, such as those of the keys' biases.
        assert difference <= 2 * TOLERANCE * max(1.0, np.abs(expected).max()), name


@pytest.mark.parametrize(
    ("buckets", "longest"),
    [
        *((256, 512), (4, 40), (6, 13), (320, 512), (8, 9), (10, 22), (0, 7)),
        # Rounding decides of the distances 256, 15 and 36, which lie on the end of a step.
        *((128, 513), (18, 26), (54, 49)),
    ],
)
def test_buckets_are_those_of_hugging_face(buckets, longest):
    modeling = pytest.importorskip("transformers.models.deberta_v2.modeling_deberta_v2")
    torch = pytest.importorskip("torch")
    config = BASE.replace(position_buckets=buckets, max_relative_positions=longest)
    length = longest + 50
    states = torch.zeros([1, 1, length, 1])
    span = buckets or longest
    relative = modeling.build_relative_position(states, states, buckets or -1, longest)[0].numpy()
    expected = np.clip(relative + span, 0, 2 * span - 1)
    first, last, places = places_of_pairs(length, config)
    np.testing.assert_array_equal(places + first, expected)
    assert (first, last) == (expected.min(), expected.max())
    if buckets == 256:  # shorter texts read fewer rows
        first, last, places = places_of_pairs(5, config)
        assert (first, last, places.min(), places.max()) == (256 - 4, 256 + 4, 0, 8)


def test_lengths_that_are_not_fixed_give_the_same(randomized):
    model = randomized(AlbertEncoder(BASE))
    shapes = {name: tf.TensorSpec([None, None], tf.int32) for name in ("input_ids", "input_mask")}
    call = tf.function(lambda inputs: model(inputs)["sequence_output"], input_signature=[shapes])
    for length in (1, 4, 23):
        inputs, _ = make_batch(length, 0)
        assert_close(call(inputs), model(inputs)["sequence_output"])


def test_last_block_goes_on_with_the_positions_that_are_read(randomized):
    model = randomized(AlbertEncoder(BASE))
    inputs, _ = make_batch(9, 0)
    positions = tf.constant([[0, 4, 2], [0, 0, 1], [0, 3, 3]])
    wanted = {"output_attentions": True}
    some, every = model(inputs, output_positions=positions, **wanted), model(inputs, **wanted)
    assert_close(some["sequence_output"], tf.gather(every["sequence_output"], positions, batch_dims=1))
    assert_close(some["attentions"][-1], tf.gather(every["attentions"][-1], positions, axis=2, batch_dims=1))


def test_dropout_of_distances_is_drawn_for_each_layer(randomized):
    config = BASE.replace(sharing="all", num_hidden_layers=1, hidden_dropout_prob=0.5)
    layer = randomized(AlbertEncoder(config)).attention_layers[0]
    relative = AlbertEncoder(config).relative_embeddings(tf.zeros([1, 5, 16]))
    project = layer._projections("plain")
    first, second, none = (
        layer.distances.project(relative, project, seed).keys
        for seed in (tf.constant([1, 2]), tf.constant([1, 3]), None)
    )
    assert not np.allclose(first, second) and not np.allclose(first, none)


def test_pieces_of_documents_see_their_own_as_if_alone(randomized):
    model = randomized(AlbertEncoder(BASE))
    ids = tf.random.stateless_uniform([1, 11], [3, 4], 1, 30, tf.int32)
    documents = tf.constant([[1] * 4 + [2] * 7])
    together = model({"input_ids": ids, "document_ids": documents})["sequence_output"]
    alone = [model({"input_ids": part})["sequence_output"] for part in (ids[:, :4], ids[:, 4:])]
    assert_close(together, tf.concat(alone, axis=1))


def test_shared_block_is_that_block_in_every_layer(randomized):
    shared = randomized(AlbertEncoder(BASE.replace(sharing="all", share_att_key=False)))
    apart = AlbertEncoder(BASE.replace(share_att_key=False))
    values = named_variables(shared)
    for name, variable in named_variables(apart).items():
        variable.assign(values[re.sub(r"_layers/\d+/", "_layers/0/", name)])
    inputs, _ = make_batch(7, 0)
    assert_close(shared(inputs)["sequence_output"], apart(inputs)["sequence_output"])


def test_kernels_are_refused_by_name():
    with pytest.raises(
        InputError, match=r"`attention=flash` has no kernel for the distances .* relative_attention=p2c"
    ):
        AlbertEncoder(BASE, attention="flash")
    assert AlbertEncoder(BASE).get_config()["attention"] == "plain"
    strategy = tf.distribute.get_strategy()
    with pytest.raises(InputError, match="`attention=flash` has no kernel for the distances"):
        choose_attention(strategy, "flash", BASE, "float32", [(128, 20)])
    assert choose_attention(strategy, "auto", BASE, "float32", [(128, 20)]) == ("plain", None)


def test_table_of_distances_lies_below_all_blocks():
    factors = layer_rate_factors(named_variables(AlbertForPreTraining(BASE)), 0.5)
    assert factors["encoder/relative_embeddings/table"] == factors["encoder/embeddings/word_embeddings"] == 0.5**3
