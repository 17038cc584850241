"""Disentangled attention is that of other libraries' DeBERTa, forward and backward, and knows what it can't do."""

import itertools
import re

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling import (
    AlbertEncoder,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from albert_tf.modeling.kernels.attention import places_of_pairs, rows_of_distances
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.objectives.objective import with_batch_size
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.runs.tpu_compiler import zeros
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

# Our name of a layer and Hugging Face's, in the order in which they are replaced.
RENAMED = [
    (r"^encoder/embeddings/(\w+_embeddings)$", r"deberta.embeddings.\1.weight"),
    (r"^encoder/embeddings/layer_norm", "deberta.embeddings.LayerNorm"),
    (r"^encoder/relative_embeddings/table", "deberta.encoder.rel_embeddings.weight"),
    (r"^encoder/relative_embeddings/layer_norm", "deberta.encoder.LayerNorm"),
    (r"^encoder/attention_layers/(\d+)/(output_dense|layer_norm)", r"deberta.encoder.layer.\1.attention.output.\2"),
    (r"^encoder/feed_forward_layers/(\d+)/(output_dense|layer_norm)", r"deberta.encoder.layer.\1.output.\2"),
    (r"^encoder/feed_forward_layers/(\d+)/intermediate", r"deberta.encoder.layer.\1.intermediate.dense"),
    (r"^encoder/attention_layers/(\d+)/distances/(\w+)", r"deberta.encoder.layer.\1.attention.self.pos_\2_proj"),
    (r"^encoder/attention_layers/(\d+)/(\w+)", r"deberta.encoder.layer.\1.attention.self.\2_proj"),
    (r"output_dense", "dense"),
    (r"^masked_lm_head/transform", "cls.predictions.transform.dense"),
    (r"^masked_lm_head/layer_norm", "cls.predictions.transform.LayerNorm"),
    (r"^masked_lm_head/output_bias", "cls.predictions.bias"),
    (r"layer_norm", "LayerNorm"),
    (r"^head/transform", "pooler.dense"),
    (r"^head/dense", "classifier"),
    (r"/(kernel|gamma)$", ".weight"),
    (r"/(bias|beta)$", ".bias"),
]


def hugging_face_name(name, kind, is_legacy):
    """Returns what Hugging Face calls one of our variables in a class of its models."""
    for ours, theirs in RENAMED:
        name = re.sub(ours, theirs, name)
    if not is_legacy:
        name = re.sub(r"^cls\.predictions\.(?:transform\.)?", "lm_predictions.lm_head.", name)
    return name.replace("classifier", "qa_outputs") if kind == "ForQuestionAnswering" else name


def as_hugging_face(model, kind, is_legacy=True):
    """Returns a Hugging Face model of a class with our model's weights, and the names of its variables by ours."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    same = (*OTHERWISE, "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    same += ("layer_norm_eps", "max_position_embeddings")
    theirs = getattr(transformers, f"DebertaV2{kind}")(
        transformers.DebertaV2Config(
            **{name: getattr(model.config, name) for name in same},
            relative_attention=True,
            pos_att_type=model.config.relative_attention,
            hidden_act="gelu",
            pad_token_id=0,
            legacy=is_legacy,
            num_labels=3 if "Classification" in kind else 2,
        )
    )
    variables = named_variables(model)
    names = {name: hugging_face_name(name, kind, is_legacy) for name in variables}
    state = {names[name]: torch.tensor(transposed(name, values.numpy())) for name, values in variables.items()}
    missing, unexpected = theirs.load_state_dict(state, strict=False)
    assert not unexpected
    assert set(missing) <= {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}  # tied
    theirs.tie_weights()
    return theirs.eval(), names


def transposed(name, values):
    return values.T if name.endswith("kernel") else values


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


def compare(model, output, kind, length, is_legacy=True):
    """Compares an output, all states and probabilities with Hugging Face's, and the gradient of every variable."""
    torch = pytest.importorskip("torch")
    theirs, names = as_hugging_face(model, kind, is_legacy)
    inputs, is_real = make_batch(length, model.config.type_vocab_size > 0)
    aliases = {"input_ids": "input_ids", "input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    as_torch = {aliases[name]: torch.tensor(values.numpy()).long() for name, values in inputs.items()}
    wanted = {"output_hidden_states": True, "output_attentions": True}
    with tf.GradientTape() as tape:
        ours = model(inputs, **wanted)
        found = ours[output]
        # What is computed of padding differs: there it sees nothing, and the mean of everything.
        is_read = is_real if found.shape[1] == length else np.ones(found.shape[:1], bool)
        weights = np.random.default_rng(0).normal(size=found.shape).astype(np.float32)
        weights *= is_read.reshape(*is_read.shape, *[1] * (len(found.shape) - is_read.ndim))
        loss = tf.reduce_sum(found * weights)
    expected = theirs(**as_torch, **wanted)
    other = expected[output if output in expected else "logits"]
    (other * torch.tensor(weights)).sum().backward()
    assert_close(found.numpy()[is_read], other.detach().numpy()[is_read])
    for name, axes in (("hidden_states", (0, 1, 2)), ("attentions", (0, 2, 1, 3))):
        for each, another in zip(ours[name], expected[name], strict=True):
            assert_close(*(values.transpose(axes)[is_real] for values in (each.numpy(), another.detach().numpy())))
    variables, parameters = named_variables(model), dict(theirs.named_parameters())
    gradients = tape.gradient(loss, list(variables.values()))
    for name, gradient in zip(variables, gradients, strict=True):
        expected = transposed(name, parameters[names[name]].grad.numpy())
        difference = np.abs(tf.convert_to_tensor(gradient) - expected).max()
        # Twice, as some are 0 but for rounding, such as those of the keys' biases.
        assert difference <= 2 * TOLERANCE * max(1.0, np.abs(expected).max()), name


@pytest.mark.parametrize("changes", CHANGES, ids=str)
@pytest.mark.parametrize("length", [7, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 2, 23))])
def test_states_and_gradients_equal_hugging_face(randomized, changes, length):
    model = randomized(AlbertForPreTraining(BASE.replace(**changes)))
    compare(model, "masked_lm_logits", "ForMaskedLM", length)


@pytest.mark.parametrize("kind", ["ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"])
def test_heads_equal_hugging_face(randomized, kind):
    makers = {"ForMaskedLM": AlbertForPreTraining}
    makers["ForSequenceClassification"] = lambda config: AlbertForSequenceClassification(config, 3)
    makers["ForTokenClassification"] = lambda config: AlbertForTokenClassification(config, 3)
    output = "masked_lm_logits" if kind == "ForMaskedLM" else "logits"
    compare(randomized(makers[kind](BASE)), output, kind, 11, is_legacy=False)


def test_answer_spans_equal_hugging_face(randomized):
    compare(randomized(AlbertForQuestionAnswering(BASE)), "end_logits", "ForQuestionAnswering", 11)


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


# Our name of a variable and KerasHub's, in the order in which they are replaced.
IN_KERAS_HUB = [
    (r"^embeddings/word_embeddings$", "token_embedding/embeddings"),
    (r"^embeddings/layer_norm/", "embeddings_layer_norm/"),
    (r"^relative_embeddings/table$", "rel_embedding/rel_embedding"),
    (r"^relative_embeddings/layer_norm/", "rel_embedding/rel_embeddings_layer_norm/"),
    (r"^(?:attention|feed_forward)_layers/(\d+)/", r"disentangled_attention_encoder_layer_\1/"),
    (r"/(query|key|value)/", r"/self_attention_layer/\1/"),
]
OF_ATTENTION = {"layer_norm": "self_attention_layer_norm", "output_dense": "self_attention_layer/attention_output"}
OF_FEED_FORWARD = {
    "layer_norm": "feedforward_layer_norm",
    "intermediate": "feedforward_intermediate_dense",
    "output_dense": "feedforward_output_dense",
}


def keras_hub_name(name):
    """Returns what KerasHub calls one of our encoder's variables."""
    for kind, names in (("attention", OF_ATTENTION), ("feed_forward", OF_FEED_FORWARD)):
        for ours, theirs in names.items():
            name = re.sub(rf"^({kind}_layers/\d+)/{ours}/", rf"\1/{theirs}/", name)
    for ours, theirs in IN_KERAS_HUB:
        name = re.sub(ours, theirs, name)
    return name


@pytest.fixture
def keras_hub_models():
    return pytest.importorskip("keras_hub", reason="compares with keras-hub").models


@pytest.mark.slow
@pytest.mark.parametrize(("buckets", "longest"), [(6, 13), (256, 512)])
def test_states_and_masked_pieces_equal_keras_hub(randomized, keras_hub_models, buckets, longest):
    config = BASE.replace(position_buckets=buckets, max_relative_positions=0, max_position_embeddings=longest)
    ours = randomized(AlbertForPreTraining(config))
    backbone = keras_hub_models.DebertaV3Backbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        max_sequence_length=longest,
        bucket_size=buckets,
    )
    theirs = keras_hub_models.DebertaV3MaskedLM(backbone, preprocessor=None)
    # Their head has another epsilon than their encoder, 1e-5, and microsoft/DeBERTa's has 1e-7, as ours.
    theirs.masked_lm_head._intermediate_layer_norm.epsilon = config.layer_norm_eps
    values = {keras_hub_name(name): variable for name, variable in named_variables(ours.encoder).items()}
    assert values.keys() == {weight.path for weight in backbone.weights}
    for weight in backbone.weights:
        weight.assign(tf.reshape(values[weight.path], weight.shape))
    head = theirs.masked_lm_head
    for layer, their_layer in (("transform", head._intermediate_dense), ("layer_norm", head._intermediate_layer_norm)):
        for variable, weight in zip(named_variables(getattr(ours.masked_lm_head, layer)).values(), their_layer.weights):
            weight.assign(variable)
    head._bias.assign(ours.masked_lm_head.output_bias)
    for length in (1, 7, longest):
        inputs, is_real = make_batch(length)
        positions = tf.constant([[0], [0], [length // 2]])
        their_inputs = {"token_ids": inputs["input_ids"], "padding_mask": inputs["input_mask"]}
        found = ours({**inputs, "masked_lm_positions": positions})
        assert_close(found["sequence_output"].numpy()[is_real], backbone(their_inputs).numpy()[is_real])
        assert_close(found["masked_lm_logits"], theirs({**their_inputs, "mask_positions": positions}))


def test_keras_hub_puts_the_farthest_distance_elsewhere_only_where_rounding_decides(keras_hub_models):
    import keras_hub.src.models.deberta_v3.disentangled_self_attention as theirs

    def differing(buckets, longest):
        """Returns the distances whose embeddings differ."""
        layer = theirs.DisentangledSelfAttention(1, 4, max_position_embeddings=longest, bucket_size=buckets)
        distances = np.arange(1 - longest, longest)
        found = np.asarray(layer._make_log_bucket_position(tf.constant(distances)))
        config = BASE.replace(position_buckets=buckets, max_relative_positions=longest)
        rows = rows_of_distances(config)[1:-1]
        return distances[np.clip(found + buckets, 0, 2 * buckets - 1) != rows].tolist()

    assert differing(256, 512) == differing(6, 13) == differing(64, 128) == []
    # They multiply with half the buckets before they divide, so that a quotient of 1 may come out a bit above it.
    assert differing(4, 8) == [-7]


@pytest.mark.parametrize("term", ["p2c|c2p", "c2p", "p2c"])
def test_lengths_that_are_not_fixed_give_the_same(randomized, term):
    model = randomized(AlbertEncoder(BASE.replace(relative_attention=term)))
    shapes = {name: tf.TensorSpec([None, None], tf.int32) for name in ("input_ids", "input_mask")}
    call = tf.function(lambda inputs: model(inputs)["sequence_output"], input_signature=[shapes])
    for length in (1, 4, 23):
        inputs, _ = make_batch(length, 0)
        assert_close(call(inputs), model(inputs)["sequence_output"])


@pytest.mark.parametrize("changes", [{}, {"norm_position": "pre"}], ids=str)
def test_last_block_goes_on_with_the_positions_that_are_read(randomized, changes):
    model = randomized(AlbertEncoder(BASE.replace(**changes)))
    inputs, _ = make_batch(9, 0)
    positions = tf.constant([[0, 4, 2], [0, 0, 1], [0, 3, 3]])
    wanted = {"output_attentions": True}
    some, every = model(inputs, output_positions=positions, **wanted), model(inputs, **wanted)
    assert_close(some["sequence_output"], tf.gather(every["sequence_output"], positions, batch_dims=1))
    assert_close(some["attentions"][-1], tf.gather(every["attentions"][-1], positions, axis=2, batch_dims=1))


@pytest.mark.slow
@pytest.mark.parametrize("remat", ["attention", "block"])
@pytest.mark.parametrize("share_att_key", [True, False])
def test_rematerialization_changes_no_gradient(randomized, remat, share_att_key):
    config = BASE.replace(
        share_att_key=share_att_key, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.1, sharing="ffn"
    )
    inputs, _ = make_batch(9, 0)
    gradients = []
    for each in ("none", remat):
        model = randomized(AlbertForPreTraining(config, remat=each))
        variables = list(named_variables(model).values())

        @tf.function
        def compute(model=model, variables=variables):
            with tf.GradientTape() as tape:
                outputs = model(inputs, training=True, dropout_seed=tf.constant([1, 2]))
                loss = tf.reduce_sum(tf.square(outputs["masked_lm_logits"]))
            return [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, variables)]

        gradients.append(compute())
    for name, first, second in zip(named_variables(model), *gradients):
        scale = max(1.0, np.abs(first).max())
        np.testing.assert_allclose(first / scale, second / scale, atol=TOLERANCE, err_msg=name)


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


def test_half_precision_is_close(randomized):
    inputs, is_real = make_batch(19, 0)
    exact, rounded = (
        randomized(AlbertEncoder(BASE, **options))(inputs)["sequence_output"]
        for options in ({}, {"dtype": "mixed_bfloat16"})
    )
    assert rounded.dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(rounded, tf.float32)[is_real], exact[is_real], atol=0.25)


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


def test_model_has_no_table_of_positions_that_it_does_not_add():
    names = set(named_variables(AlbertEncoder(BASE)))
    assert "encoder/embeddings/position_embeddings" not in {f"encoder/{name}" for name in names}
    own = set(named_variables(AlbertEncoder(BASE.replace(share_att_key=False, relative_attention="c2p")))) - names
    assert own == {f"attention_layers/{n}/distances/key/{part}" for n in range(2) for part in ("kernel", "bias")}


def test_table_of_distances_lies_below_all_blocks():
    factors = layer_rate_factors(named_variables(AlbertForPreTraining(BASE)), 0.5)
    assert factors["encoder/relative_embeddings/table"] == factors["encoder/embeddings/word_embeddings"] == 0.5**3


def test_replaced_tokens_are_learnt_with_disentangled_embeddings():
    objective = make_objective(
        "electra",
        BASE.replace(embedding_size=16),
        settings={"disentangled_embeddings": True, "generator_size": 0.5},
        masking=MaskingOptions(2),
    )
    models = objective.make_models()
    batch = zeros(with_batch_size(objective.batch_spec(12), 2))
    variables = {f"{key}/{name}": each for key in models for name, each in named_variables(models[key]).items()}
    with tf.GradientTape() as tape:
        found = objective.compute(batch, training=True, dropout_seed=tf.constant([1, 2]), **models)
        loss = tf.add_n([found[name][0] for name in objective.loss_coefficients])
    missing = [name for name, each in zip(variables, tape.gradient(loss, list(variables.values()))) if each is None]
    assert not missing
    assert models["generator"].encoder.relative_embeddings.table.shape == [12, 8]
