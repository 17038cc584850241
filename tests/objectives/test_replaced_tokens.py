"""Replaced tokens: ELECTRA's losses and gradients, and how its discriminator is measured."""

import functools

import distilled_models
import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.interchange.families import family_named
from albert_tf.interchange.variables import entries
from albert_tf.modeling.kernels import piece_sampling
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.replaced_tokens import generator_config
from albert_tf.objectives import make_objective
from albert_tf.objectives.replaced_tokens import _count_scores
from albert_tf.pretraining_data.masking import MaskingOptions, MaskingTokens
from albert_tf.training.train_state import begin_as_followers, learnt_variables

VOCAB_SIZE, LENGTH, PREDICTIONS = 40, 12, 3  # as of `distilled_models`
CONFIG = tiny_config(
    VOCAB_SIZE,
    sharing="none",
    model_type="electra",
    hidden_act="gelu_erf",
    hidden_size=32,
    num_attention_heads=4,
    pooler=False,
    classification_head="dense_gelu",
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


def electra(config=CONFIG, masking=MaskingOptions(PREDICTIONS), **settings):  # noqa: B008
    return make_objective("electra", config, settings=settings, masking=masking)


def make_models(objective):
    tf.keras.utils.set_random_seed(1)
    models = objective.make_models()
    for variable in learnt_variables(objective, models).values():
        variable.assign(tf.random.normal(variable.shape, mean=float("gamma" in variable.name), stddev=0.2))
    return models


def batch_of():
    """The batch of distillation with what was chosen masked, and with draws."""
    batch = {name: value.numpy() for name, value in distilled_models.batch_of().items()}
    ids, positions, weights = (batch[name] for name in ("input_ids", "masked_lm_positions", "masked_lm_weights"))
    batch["masked_lm_ids"] = np.where(weights > 0, np.take_along_axis(ids, positions, 1), 0).astype(np.int32)
    for row, column in zip(*np.nonzero(weights)):
        ids[row, positions[row, column]] = 4
    batch["replacement_draws"] = np.random.default_rng(2).random([3, PREDICTIONS], np.float32)
    return {name: tf.constant(value) for name, value in batch.items()}


def their_weights(model, prefix):
    """Returns the weights as transformers names them, float64."""
    import torch

    variables, naming = named_variables(model), family_named("electra").naming
    found = {}
    for name, entry in entries(naming, model.config).items():
        if name in variables:
            value = variables[name].numpy().astype(np.float64)
            found[entry.name] = torch.tensor(value.T.copy() if entry.spelling.is_transposed else value)
    for ours, theirs in {"transform": "dense", "dense": "dense_prediction"}.items() if prefix else ():
        kernel, bias = (variables[f"replaced_token_head/{ours}/{part}"].numpy() for part in ("kernel", "bias"))
        found[f"discriminator_predictions.{theirs}.weight"] = torch.tensor(kernel.T.astype(np.float64))
        found[f"discriminator_predictions.{theirs}.bias"] = torch.tensor(bias.astype(np.float64))
    return found


def loss_of(objective, models, batch):
    """Returns the loss as a step computes it, the gradients by name, and what was measured."""
    variables = learnt_variables(objective, models)
    with tf.GradientTape() as tape:
        computed = objective.compute(batch, training=False, dropout_seed=None, **models)
        weights = objective.loss_weights(batch)
        loss = sum(factor * computed[name][0] / weights[name] for name, factor in objective.loss_coefficients.items())
    return loss, tape.gradient(loss, variables), computed


@pytest.mark.parametrize(("is_disentangled", "weight"), [(False, 50), (True, 50), (False, 2.5)])
def test_losses_and_gradients_are_those_of_transformers(monkeypatch, is_disentangled, weight):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    objective = electra(generator_size=0.5, disentangled_embeddings=is_disentangled, replaced_token_weight=weight)
    models, batch = make_models(objective), batch_of()
    # The second piece of the first row is drawn as it was.
    drawn = np.array([[30, batch["masked_lm_ids"][0, 1], 31], [32, 33, 5], [34, 5, 5]])
    monkeypatch.setattr(piece_sampling, "sample_pieces", lambda *_: tf.constant(drawn.reshape(-1), tf.int32))
    loss, gradients, computed = loss_of(objective, models, batch)

    def sizes(config):
        names = ("embedding_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        return {name: getattr(config, name) for name in (*names, "max_position_embeddings", "vocab_size")}

    make = functools.partial(transformers.ElectraConfig, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    discriminator = transformers.ElectraForPreTraining(make(**sizes(CONFIG))).double()
    generator = transformers.ElectraForMaskedLM(make(**sizes(generator_config(CONFIG, 0.5)))).double()
    missing = discriminator.load_state_dict(their_weights(models["model"], "discriminator"), strict=False)
    assert not missing.missing_keys and not missing.unexpected_keys
    missing = generator.load_state_dict(their_weights(models["generator"], None), strict=False)
    assert set(missing.missing_keys) <= {"generator_lm_head.weight"} and not missing.unexpected_keys

    ids, labels = batch["input_ids"].numpy(), np.full([3, LENGTH], -100)
    fake, replaced = ids.copy(), np.zeros([3, LENGTH])
    for row, column in zip(*np.nonzero(batch["masked_lm_weights"].numpy())):
        place, original = batch["masked_lm_positions"].numpy()[row, column], batch["masked_lm_ids"].numpy()[row, column]
        labels[row, place], fake[row, place] = original, drawn[row, column]
        replaced[row, place] = original != drawn[row, column]
    inputs = {"attention_mask": batch["input_mask"], "token_type_ids": batch["segment_ids"]}
    inputs = {name: torch.tensor(value.numpy()).long() for name, value in inputs.items()}
    of_masks = generator(input_ids=torch.tensor(ids).long(), labels=torch.tensor(labels), **inputs).loss
    of_pieces = discriminator(input_ids=torch.tensor(fake).long(), labels=torch.tensor(replaced), **inputs).loss
    (of_masks + weight * of_pieces).backward()

    average = {name: float(total / weight) for name, (total, weight) in computed.items() if "loss" in name}
    assert average["masked_lm_loss"] == pytest.approx(of_masks.item(), rel=1e-5)
    assert average["replaced_token_loss"] == pytest.approx(of_pieces.item(), rel=1e-5)
    assert float(loss) == pytest.approx((of_masks + weight * of_pieces).item(), rel=1e-5)
    assert float(computed["replaced_token_share"][0]) == replaced.sum() == 5

    theirs = {"": discriminator.electra, "generator/": generator.electra}
    for name, found in {
        "word_embeddings": lambda model: model.embeddings.word_embeddings.weight,
        "position_embeddings": lambda model: model.embeddings.position_embeddings.weight,
        "layer_norm/gamma": lambda model: model.embeddings.LayerNorm.weight,
    }.items():
        expected = {prefix: found(model).grad.numpy() for prefix, model in theirs.items()}
        if not is_disentangled:  # what both models share has the sum of both gradients
            expected = {"": sum(expected.values())}
        assert is_disentangled == (f"generator/encoder/embeddings/{name}" in gradients)
        for prefix, values in expected.items():
            gradient = tf.convert_to_tensor(gradients[f"{prefix}encoder/embeddings/{name}"])
            assert np.linalg.norm(gradient - values) < 2e-6 * np.linalg.norm(values), (prefix, name)
    for prefix, model in theirs.items():
        kernel = gradients[f"{prefix}encoder/attention_layers/0/query/kernel"]
        expected = model.encoder.layer[0].attention.self.query.weight.grad.numpy().T
        assert np.linalg.norm(kernel - expected) < 1e-5 * np.linalg.norm(expected)


def test_what_is_drawn_is_put_where_the_masks_were(monkeypatch):
    objective = electra()
    models, batch = make_models(objective), batch_of()
    drawn = tf.constant([[30, 39, 31], [32, 0, 5], [34, 5, 5]])
    monkeypatch.setattr(piece_sampling, "sample_pieces", lambda *_: tf.reshape(drawn, [-1]))
    ids, is_replaced = objective._replace(batch, models["generator"], tf.zeros([3, PREDICTIONS, 8]))
    expected = batch["input_ids"].numpy().copy()
    expected[0, [2, 5, 9]], expected[1, [1, 7]], expected[2, 3] = [30, 39, 31], [32, 0], 34
    np.testing.assert_array_equal(ids, expected)
    assert np.argwhere(is_replaced.numpy()).tolist() == [[0, 2], [0, 5], [0, 9], [1, 1], [1, 7], [2, 3]]


def test_an_example_has_its_pieces_wherever_it_is_computed():
    objective = electra()
    models, batch = make_models(objective), batch_of()
    states = tf.random.stateless_normal([3, PREDICTIONS, 8], [1, 2])
    together, _ = objective._replace(batch, models["generator"], states)
    for row in range(3):
        alone = {name: value[row : row + 1] for name, value in batch.items()}
        found, _ = objective._replace(alone, models["generator"], states[row : row + 1])
        np.testing.assert_array_equal(found[0], together[row])


def test_all_chosen_pieces_are_masked_and_drawn_for_by_the_seed():
    tokens = MaskingTokens(mask_id=4, unmaskable_ids=(2, 3), real_piece_ids=np.arange(5, VOCAB_SIZE, dtype=np.int32))
    objective = electra(masking=MaskingOptions(PREDICTIONS, 0.25, tokens=tokens))
    ids = np.random.default_rng(1).integers(5, VOCAB_SIZE, [50, LENGTH]).astype(np.int32)
    ids[:, 0], ids[:, -1] = 2, 3
    ids = tf.constant(ids)
    ones = tf.ones_like(ids)
    records = {"input_ids": ids, "input_mask": ones, "segment_ids": 0 * ones, "token_boundary": ones}

    def prepared(seed):
        return {name: value.numpy() for name, value in objective.prepare(records, tf.constant(seed, tf.int64)).items()}

    batch = prepared([1, 2])
    rows = np.arange(50)[:, None]
    assert (batch["masked_lm_weights"] == 1).all()
    assert (batch["input_ids"][rows, batch["masked_lm_positions"]] == 4).all()
    assert (batch["input_ids"] == 4).sum() == 50 * PREDICTIONS
    assert len(np.unique(batch["replacement_draws"])) == 50 * PREDICTIONS
    again, other = prepared([1, 2]), prepared([1, 3])
    assert all((again[name] == batch[name]).all() for name in batch)
    assert (other["replacement_draws"] != batch["replacement_draws"]).all()


@pytest.mark.parametrize(
    ("real", "replaced"),
    [
        pytest.param((0.0, 1.0), (2.0, 1.0), id="unsure"),
        pytest.param((-8.0, 2.0), (-3.0, 3.0), id="trained"),
        pytest.param((-12.0, 2.0), (-9.0, 3.0), id="sure of what is real"),
        pytest.param((9.0, 2.0), (12.0, 3.0), id="sure of what is replaced"),
        pytest.param((-2.0, 0.05), (-1.95, 0.05), id="at the beginning"),
    ],
)
def test_scores_are_those_of_scikit_learn(real, replaced):
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(5)
    labels = random.random([400, 25]) < 0.06
    logits = np.where(labels, random.normal(*replaced, labels.shape), random.normal(*real, labels.shape))
    logits = logits.astype(np.float32)
    weights = (random.random(labels.shape) < 0.9).astype(np.float32)
    counts = _count_scores(tf.constant(logits), tf.constant(labels, tf.float32), tf.constant(weights)).numpy()
    found = electra().metrics_of_vectors({"replaced_token_scores": (counts, np.ones_like(counts))})
    kept, said = weights > 0, logits >= 0
    assert found["replaced_token_auc"] == pytest.approx(metrics.roc_auc_score(labels[kept], logits[kept]), abs=2e-3)
    precision = metrics.precision_score(labels[kept], said[kept], zero_division=0.0)
    assert found["replaced_token_precision"] == pytest.approx(precision)
    assert found["replaced_token_recall"] == pytest.approx(metrics.recall_score(labels[kept], said[kept]))


def test_rule_that_calls_every_piece_real_ranks_none():
    logits, labels = tf.fill([1000], -3.0), tf.cast(tf.range(1000) < 60, tf.float32)
    blind = _count_scores(logits, labels, tf.ones([1000])).numpy()
    assert electra().metrics_of_vectors({"replaced_token_scores": (blind, blind)}) == {
        "replaced_token_auc": 0.5,
        "replaced_token_precision": 0.0,
        "replaced_token_recall": 0.0,
    }


def test_models_share_their_embeddings_or_everything():
    apart, alone = electra(), electra(share_generator=True)
    models = apart.make_models()
    assert models["generator"].encoder.embeddings is models["model"].encoder.embeddings
    names = learnt_variables(apart, models)
    assert "generator/encoder/attention_layers/0/query/kernel" in names
    assert not any(name.startswith("generator/encoder/embeddings") for name in names)
    (model,) = alone.make_models().values()
    assert model.masked_lm_head is not None and models["model"].masked_lm_head is None
    computed = alone.compute(batch_of(), training=True, dropout_seed=tf.constant([1, 2]), model=model)
    assert np.isfinite(float(computed["replaced_token_loss"][0]))


def test_disentangled_embeddings_begin_as_shared_ones():
    shared, disentangled = electra(), electra(disentangled_embeddings=True)
    expected, models = make_models(shared), make_models(disentangled)
    values, variables = learnt_variables(shared, expected), learnt_variables(disentangled, models)
    followers = disentangled.followers(models)
    assert variables.keys() == values.keys() | set(followers.values()) and not shared.followers(expected)
    for name, value in values.items():
        variables[name].assign(value)
    begin_as_followers(disentangled, models)
    (_, _, losses), (_, _, found) = loss_of(shared, expected, batch_of()), loss_of(disentangled, models, batch_of())
    for name, (total, weight) in losses.items():
        np.testing.assert_array_equal(found[name][0], total)
        np.testing.assert_array_equal(found[name][1], weight)


@pytest.mark.parametrize(
    ("size", "hidden_size", "heads", "intermediate"),
    [(0.25, 192, 3, 768), (1 / 3, 256, 4, 1024), (1.0, 768, 12, 3072), (0.01, 64, 1, 256)],
)
def test_generator_has_heads_of_the_same_size(size, hidden_size, heads, intermediate):
    base = CONFIG.replace(hidden_size=768, num_attention_heads=12, intermediate_size=3072)
    found = generator_config(base, size)
    assert (found.hidden_size, found.num_attention_heads, found.intermediate_size) == (hidden_size, heads, intermediate)
    assert found.num_hidden_layers == base.num_hidden_layers and found.embedding_size == base.embedding_size


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"generator_size": 1.5}, "`generator_size` must be more than 0 and at most 1, .* Received: 1.5"),
        ({"generator_size": 0.6}, "`generator_size=0.6` of 4 heads is 2.4 heads; choose a share .* such as 0.5"),
        ({"generator_size": 0.5, "share_generator": True}, "`share_generator` makes the model its own generator"),
        ({"disentangled_embeddings": True, "share_generator": True}, "so `disentangled_embeddings` has no meaning"),
        ({"replaced_token_weight": 0.0}, "`replaced_token_weight` must be a number above 0. Received: 0"),
    ],
)
def test_generator_that_can_not_be_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        electra(**settings)


def test_positions_do_not_depend_on_what_is_drawn(monkeypatch):
    objective = electra(CONFIG.replace(position_offset=1))
    models, batch = make_models(objective), batch_of()
    seen, encode = {}, type(models["model"].encoder).call

    def spy(encoder, inputs, **options):
        if encoder is models["model"].encoder:
            seen.update(inputs)
        return encode(encoder, inputs, **options)

    monkeypatch.setattr(type(models["model"].encoder), "call", spy)
    pads = tf.zeros([3 * PREDICTIONS], tf.int32)  # the id of [PAD]
    monkeypatch.setattr(piece_sampling, "sample_pieces", lambda *_: pads)
    objective.compute(batch, training=False, dropout_seed=None, **models)
    for row, length in enumerate(batch["input_mask"].numpy().sum(axis=1)):
        assert seen["position_ids"][row].numpy().tolist() == [*range(1, length + 1), *[0] * (LENGTH - length)]
