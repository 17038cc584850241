"""Masked and causal rows of one batch: against each document alone, and against two models of transformers."""

import math

import numpy as np
import pytest
import tensorflow as tf
from test_causal_lm import BERT, LENGTH, PACKED, as_bert_decoder, rows_of
from test_causal_lm import CONFIG as CAUSAL
from tiny_config import tiny_config

from albert_tf.errors import InputError
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import DataOptions, make_objective
from albert_tf.objectives.objective import with_batch_size
from albert_tf.pretraining_data.input_pipeline import pad_batch
from albert_tf.pretraining_data.masking import Masking, MaskingOptions
from albert_tf.pretraining_data.masking_tokens import MaskingTokens

CONFIG = CAUSAL.replace(is_causal=False, masked_lm_is_shifted=True, pooler=False)
MASK_ID = 4
TOKENS = MaskingTokens(MASK_ID, (2, 3), np.arange(5, CONFIG.vocab_size, dtype=np.int32))
PREDICTIONS = 5
# Rows 0 and 4 are causal.
ROWS = [*PACKED, [6, 6], [4, 8], [12], [9], [3, 5, 4]]


def make_hybrid(config=CONFIG, **settings):
    masking = Masking(MaskingOptions(PREDICTIONS, 0.4), TOKENS)
    settings = {"causal_share": 0.25, **settings}
    return make_objective("hybrid", config, options=DataOptions(PREDICTIONS, masking, settings))


def make_objective_and_model(config=CONFIG):
    """Returns the objective, and a model whose weights are all far from where they begin."""
    objective, draws = make_hybrid(config), np.random.default_rng(0)
    model = objective.make_model()
    for name, variable in named_variables(model).items():
        variable.assign(draws.normal(1.0 if name.endswith("gamma") else 0.0, 0.3, variable.shape))
    return objective, model


def prepared(objective, documents=ROWS):
    records = rows_of(documents)
    records["token_boundary"] = tf.ones_like(records["input_ids"])
    return objective.prepare(records, tf.constant([3, 4], tf.int64))


def cross_entropies(logits, labels):
    logits = logits.numpy().astype(np.float64)
    return np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(labels)), labels], logits.argmax(-1) == labels


def alone(model, batch, is_causal):
    """Returns the losses of each row, and how many guesses are right, from each document by itself, in float64."""
    ids = batch["input_ids" if is_causal else "masked_input_ids"].numpy()
    original, numbers = batch["input_ids"].numpy(), batch["document_ids"].numpy()
    found = []
    for row, documents in enumerate(numbers):
        losses, right = [], []
        masked = batch["masked_lm_positions"][row].numpy()[batch["masked_lm_weights"][row].numpy() > 0]
        for number in range(1, documents.max() + 1):
            places = np.flatnonzero(documents == number)
            logits = model({"input_ids": ids[row, places][None]}, is_causal=is_causal)["masked_lm_logits"][0]
            chosen = np.arange(1, len(places)) if is_causal else np.intersect1d(masked, places) - places[0]
            each = cross_entropies(tf.gather(logits, chosen - 1), original[row, places][chosen])
            losses, right = [*losses, *each[0]], [*right, *each[1]]
        found.append((sum(losses), len(losses), sum(right)))
    return np.array(found)


def test_every_example_is_kept_as_it_is_and_masked():
    batch = prepared(make_hybrid())
    is_used, positions = batch["masked_lm_weights"].numpy() > 0, batch["masked_lm_positions"].numpy()
    ids, masked = batch["input_ids"].numpy(), batch["masked_input_ids"].numpy()
    assert is_used.any(axis=1).all() and (masked == MASK_ID).any(axis=1).all() and not (ids == MASK_ID).any()
    np.testing.assert_array_equal(np.take_along_axis(ids, positions, 1)[is_used], batch["masked_lm_ids"][is_used])
    restored = masked.copy()
    np.put_along_axis(restored, positions, np.where(is_used, batch["masked_lm_ids"], masked[:, :1]), 1)
    np.testing.assert_array_equal(restored, ids)


@pytest.mark.slow
@pytest.mark.parametrize("training", [True, False], ids=["training", "held out"])
def test_packed_documents_cost_what_they_cost_alone(training):
    objective, model = make_objective_and_model()
    batch = prepared(objective)
    found = objective.compute(batch, training, tf.constant([0, 0]) if training else None, model=model)
    is_causal_row = np.arange(len(ROWS)) % 4 == 0
    causal = alone(model, batch, True)[is_causal_row if training else slice(None)]
    masked = alone(model, batch, False)[~is_causal_row if training else slice(None)]
    characters = batch["num_characters"].numpy()[is_causal_row if training else slice(None)].sum()
    for name, (losses, counts, right) in {"causal_lm": causal.T, "masked_lm": masked.T}.items():
        for end, expected in (("loss", losses.sum()), ("accuracy", right.sum())):
            assert float(found[f"{name}_{end}"][0]) == pytest.approx(expected, rel=1e-5), name
            assert float(found[f"{name}_{end}"][1]) == counts.sum()
        if training:
            assert float(objective.loss_weights(batch)[f"{name}_loss"]) == counts.sum()
    bits, weight = found["bits_per_character"]
    assert float(bits) == pytest.approx(causal[:, 0].sum() / np.log(2), rel=1e-5) and float(weight) == characters


def test_causal_rows_see_nothing_later_and_the_others_both_sides():
    objective, model = make_objective_and_model()
    ids, place, is_causal = prepared(objective, [[LENGTH]] * 8)["input_ids"], 7, np.arange(8) % 4 == 0
    other = tf.tensor_scatter_nd_update(ids, [[row, place] for row in range(8)], [9] * 8)
    before, after = (model({"input_ids": each}, is_causal=is_causal)["masked_lm_logits"] for each in (ids, other))
    changed = np.abs(before - after).max(axis=2)
    assert (changed[is_causal, :place] == 0).all() and (changed[is_causal, place:] > 1e-4).all()
    assert (changed[~is_causal] > 1e-4).all()


def test_rows_know_nothing_of_what_the_other_kind_reads():
    objective, model = make_objective_and_model()
    batch, is_causal = prepared(objective), tf.constant([[True], [False], [False], [False]] * 2)
    scrambled = tf.reverse(batch["input_ids"], [1])
    other = {
        "input_ids": tf.where(is_causal, batch["input_ids"], scrambled),
        "masked_input_ids": tf.where(is_causal, scrambled, batch["masked_input_ids"]),
    }
    found = [objective.compute({**batch, **each}, True, tf.constant([0, 0]), model=model) for each in ({}, other)]
    tf.nest.map_structure(np.testing.assert_array_equal, *found)


@pytest.mark.slow
def test_losses_and_gradients_are_those_of_transformers():
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    objective, model = make_objective_and_model(CONFIG.replace(**BERT))
    decoder = as_bert_decoder(model)
    encoder = transformers.BertForMaskedLM(transformers.BertConfig(**{**decoder.config.to_dict(), "is_decoder": False}))
    encoder.load_state_dict(decoder.state_dict())
    encoder.eval()
    batch = prepared(objective, [[12], [7], [9], [12], [10], [12], [11], [12]])
    mask = torch.tensor((batch["document_ids"].numpy() > 0).astype(int))
    ids, masked = (torch.tensor(batch[name].numpy()).long() for name in ("input_ids", "masked_input_ids"))
    labels = np.full(ids.shape, -100)
    for row, place in zip(*np.nonzero(batch["masked_lm_weights"].numpy())):
        labels[row, batch["masked_lm_positions"][row, place] - 1] = batch["masked_lm_ids"][row, place]
    causal, others = [0, 4], [1, 2, 3, 5, 6, 7]
    # The decoder shifts its labels itself; these, for the masked pieces, are shifted above.
    losses = {
        "causal_lm_loss": decoder(
            input_ids=ids[causal], attention_mask=mask[causal], labels=ids[causal].masked_fill(mask[causal] == 0, -100)
        ).loss,
        "masked_lm_loss": encoder(
            input_ids=masked[others], attention_mask=mask[others], labels=torch.tensor(labels[others])
        ).loss,
    }
    with tf.GradientTape() as tape:
        results = objective.compute(batch, True, tf.constant([0, 0]), model=model)
        averages = {name: results[name][0] / results[name][1] for name in losses}
        total = tf.add_n([averages[name] * share for name, share in objective.loss_coefficients.items()])
    for name, loss in losses.items():
        assert float(averages[name]) == pytest.approx(loss.item(), rel=1e-5), name
    (0.25 * losses["causal_lm_loss"] + 0.75 * losses["masked_lm_loss"]).backward()
    expected = sum(each.get_input_embeddings().weight.grad.numpy() for each in (decoder, encoder))
    found = tape.gradient(total, named_variables(model)["encoder/embeddings/word_embeddings"])
    np.testing.assert_allclose(tf.convert_to_tensor(found), expected, rtol=1e-4, atol=1e-5)


def test_what_fills_a_batch_up_changes_nothing_held_out():
    objective, model = make_objective_and_model()
    batch = prepared(objective)
    results = [objective.compute(each, False, None, model=model) for each in (batch, pad_batch(batch, 11))]
    for name, (value, weight) in results[0].items():
        assert float(value) == pytest.approx(float(results[1][name][0]), rel=1e-5), name
        assert float(weight) == float(results[1][name][1])


@pytest.mark.slow
def test_eight_examples_are_learnt_by_heart():
    objective = make_hybrid(CONFIG.replace(num_hidden_layers=1))
    model = objective.make_model()
    batch, optimizer = prepared(objective, [[12]] * 8), tf.keras.optimizers.Adam(0.01)
    variables = model.trainable_variables

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            results = objective.compute(batch, True, tf.constant([0, 0]), model=model)
            losses = {name: results[name][0] / results[name][1] for name in objective.loss_coefficients}
            loss = tf.add_n([losses[name] * share for name, share in objective.loss_coefficients.items()])
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return losses

    losses = [{name: float(loss) for name, loss in step().items()} for _ in range(100)]
    assert min(losses[0].values()) > 3.5 and losses[-1]["masked_lm_loss"] < 0.1
    # Which of the two causal examples it is can't be known before its first piece.
    assert losses[-1]["causal_lm_loss"] < np.log(2) / (LENGTH - 1) + 0.1


@pytest.mark.parametrize(("share", "period", "num_causal"), [(0.0625, 16, 1), (0.3, 10, 3), (0.333, 3, 1)])
def test_share_is_exact_and_evenly_spread(share, period, num_causal):
    objective = make_hybrid(causal_share=share)
    assert objective.identity() == {"objective": "hybrid", "causal_share": num_causal / period}
    assert objective.loss_coefficients == {
        "causal_lm_loss": pytest.approx(num_causal / period),
        "masked_lm_loss": pytest.approx(1 - num_causal / period),
    }
    objective.check_batch_size(3 * period)
    with pytest.raises(InputError) as error:
        objective.check_batch_size(period + 1)
    assert str(error.value) == (
        f"`causal_share={num_causal / period:.4g}` of {period + 1} examples, which are learnt from at once, is "
        "not a whole number of them; make `train_batch_size`, divided by the number of replicas and by "
        f"`gradient_accumulation_steps`, a multiple of {period}, or choose another share"
    )
    spec = with_batch_size(objective.batch_spec(LENGTH), period)
    assert objective.flops(spec) > 0


@pytest.mark.parametrize("share", [0.0, 1.0, -0.25, 0.003, 0.999, math.nan, math.inf])
def test_share_that_is_none_is_refused(share):
    with pytest.raises(InputError, match=f"`causal_share` must be more than 0 and less than 1.*Received: {share:g}$"):
        make_hybrid(causal_share=share)


@pytest.mark.parametrize("is_causal", [True, False])
def test_model_that_reads_masked_pieces_elsewhere_is_refused(is_causal):
    with pytest.raises(InputError) as error:
        make_hybrid(tiny_config(is_causal=is_causal))
    assert str(error.value) == (
        "hybrid learns each masked piece from the state before it, and this model reads another one "
        "(masked_lm_is_shifted=false); set masked_lm_is_shifted to true, and is_causal to false, in "
        "`albert_config_file`"
    )
