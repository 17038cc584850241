"""Putting shuffled tokens back: what is shuffled, the loss against NumPy in float64, and that it can be learnt."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.objectives import make_objective
from albert_tf.objectives.word_order import WordOrder
from albert_tf.pretraining_data.masking import MaskingOptions, MaskingTokens

CLS, SEP, MASK, FIRST_WORD, VOCAB_SIZE, LENGTH = 2, 3, 4, 5, 40, 20
TOKENS = MaskingTokens(MASK, (CLS, SEP), np.arange(FIRST_WORD, VOCAB_SIZE, dtype=np.int32))
MASKING = MaskingOptions(max_predictions_per_seq=3, tokens=TOKENS)
CONFIG = tiny_config(VOCAB_SIZE, num_hidden_layers=2, hidden_size=32, initializer_range=0.1)
ENTITIES = {
    "num_entities": 3,
    "entity_size": 4,
    "entity_name_edges": 4,
    "entity_name_collisions": 1,
    "entity_name_length": 2,
}
NAMES = ["word_order_positions", "word_order_ids", "word_order_weights"]


def make_records(lengths, seed=0):
    """Returns examples of so many tokens, [CLS] text [SEP] text [SEP], as the pipeline parses them."""
    draws = np.random.default_rng(seed)
    ids = draws.integers(FIRST_WORD, VOCAB_SIZE, [len(lengths), LENGTH])
    for row, length in zip(ids, lengths):
        row[0], row[length // 2], row[length - 1], row[length:] = CLS, SEP, SEP, 0
    mask = np.arange(LENGTH) < np.array(lengths)[:, None]
    features = {
        "input_ids": ids,
        "input_mask": mask,
        "segment_ids": mask & (np.arange(LENGTH) > np.array(lengths)[:, None] // 2),
        "token_boundary": mask,
        "next_sentence_labels": draws.integers(0, 2, [len(lengths), 1]),
    }
    return {name: tf.constant(values, tf.int32) for name, values in features.items()}


def prepare(lengths, seed=(0, 0), share=0.15):
    """Returns records and the batch that is made of them, as arrays."""
    masking = MaskingOptions(**{**vars(MASKING), "masked_lm_prob": share})
    records = make_records(lengths)
    batch = make_objective("korealbert", CONFIG, masking=masking).prepare(records, tf.constant(seed, tf.int64))
    return [{name: value.numpy() for name, value in each.items()} for each in (records, batch)]


@pytest.mark.parametrize("share", [0.15, 0.4])
def test_as_many_tokens_as_are_masked_change_places_and_nothing_else_does(share):
    lengths = [20, 20, 13, 8] * 50
    records, batch = prepare(lengths, share=share)
    moved = 0
    for row, length in enumerate(lengths):
        used = batch["word_order_weights"][row] > 0
        places = batch["word_order_positions"][row][used]
        ids, before = batch["input_ids"][row], records["input_ids"][row]
        masked = batch["masked_lm_positions"][row][batch["masked_lm_weights"][row] > 0]
        wanted = round(length * share)
        assert len(places) == (min(wanted, length - 3 - len(masked)) if wanted > 1 else 0)
        assert sorted(places) == list(places) and not {*places} & {*masked, 0, length // 2, length - 1}
        assert batch["word_order_ids"][row][used].tolist() == before[places].tolist()
        assert sorted(ids[places]) == sorted(before[places])
        others = np.setdiff1d(np.arange(LENGTH), [*places, *masked])
        assert ids[others].tolist() == before[others].tolist()
        moved += (ids[places] != before[places]).sum()
    assert moved > 100


def test_equal_seeds_shuffle_alike_and_others_do_not():
    (_, one), (_, same), (_, other) = (prepare([20] * 8, seed) for seed in ((1, 2), (1, 2), (1, 3)))
    assert all((one[name] == same[name]).all() for name in one)
    assert any((one[name] != other[name]).any() for name in NAMES)


def expected_results(model, batch):
    """Returns loss, accuracy and weight in float64, place by place."""
    outputs = model.encoder(
        {name: tf.constant(batch[name]) for name in ("input_ids", "input_mask", "segment_ids")}, training=False
    )
    states = model.masked_lm_head.states(outputs["sequence_output"]).numpy().astype(np.float64)
    table, bias = model.encoder.embeddings.word_embeddings.numpy(), model.masked_lm_head.bias().numpy()
    losses, right = [], []
    for row, used in enumerate(batch["word_order_weights"] > 0):
        ids = batch["word_order_ids"][row][used]
        for place, token in zip(batch["word_order_positions"][row][used], ids):
            scores = table[ids].astype(np.float64) @ states[row, place] + bias[ids]
            shares = np.exp(scores) / np.exp(scores).sum()
            losses.append(-np.log(shares[ids == token].sum()))
            right.append(ids[scores.argmax()] == token)
    return np.sum(losses), np.sum(right), len(losses)


def test_loss_is_that_of_choosing_among_the_shuffled_tokens():
    objective = make_objective("korealbert", CONFIG, masking=MASKING)
    model = objective.make_model()
    _, batch = prepare([20, 13, 8, 20])
    batch["word_order_ids"][0] = batch["word_order_ids"][0][0]  # all are one answer
    model.masked_lm_head.output_bias.assign(np.linspace(-1, 1, VOCAB_SIZE))
    found = objective.compute({name: tf.constant(values) for name, values in batch.items()}, False, None, model=model)
    loss, right, weight = expected_results(model, batch)
    assert float(found["word_order_loss"][0]) == pytest.approx(loss, rel=1e-5)
    assert [float(part) for part in found["word_order_accuracy"]] == [right, weight]
    assert float(found["word_order_loss"][1]) == weight == float(objective.loss_weights(batch)["word_order_loss"])


def test_no_example_long_enough_to_shuffle_weighs_nothing_and_is_finite():
    objective = make_objective("korealbert", CONFIG, masking=MASKING)
    _, batch = prepare([6, 6])
    found = objective.compute(batch, False, None, model=objective.make_model())
    assert [float(part) for part in found["word_order_loss"]] == [0, 0]


def test_models_that_know_entities_and_records_of_an_unknown_vocabulary_are_refused():
    with pytest.raises(InputError, match="`objective=korealbert` doesn't find the entities"):
        WordOrder(CONFIG.replace(**ENTITIES), MASKING)
    unknown = WordOrder(CONFIG, MaskingOptions())
    with pytest.raises(InputError, match="beside the shards to tell which tokens are special"):
        unknown.prepare(make_records([20]), tf.constant([0, 0], tf.int64))
