"""Finding the other half of a sentence: against NumPy in float64, and by what must not change it."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.objectives import make_objective
from albert_tf.objectives.matching_halves import MatchingHalves, find_halves, match_halves
from albert_tf.pretraining_data.masking import MaskingOptions

CONFIG = tiny_config(50, embedding_size=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
LENGTH, TEMPERATURE = 32, 0.08


def make_batch(lengths_of_halves, seed=0):
    """Returns a batch of rows of halves of so many pieces each, [CLS] in the first."""
    generator = np.random.default_rng(seed)
    shape = [len(lengths_of_halves), LENGTH]
    batch = {
        "input_ids": generator.integers(5, 50, shape),
        "input_mask": np.zeros(shape),
        "segment_ids": np.zeros(shape),
    }
    for row, lengths in enumerate(lengths_of_halves):
        begin = 0
        for number, length in enumerate(lengths):
            batch["segment_ids"][row, begin : begin + length] = number % 2
            begin += length
        batch["input_mask"][row, :begin] = 1
    batch = {name: tf.constant(values, tf.int32) for name, values in batch.items()}
    positions = tf.tile([[1, 4]], [shape[0], 1])
    has_pieces = tf.cast(tf.reduce_any(batch["input_mask"] > 0, axis=1), tf.float32)
    return batch | {
        "masked_lm_positions": positions,
        "masked_lm_ids": tf.gather(batch["input_ids"], positions, batch_dims=1),
        "masked_lm_weights": tf.tile(has_pieces[:, None], [1, 2]),
        "example_weights": has_pieces,
    }


def expected_matches(states, lengths_of_halves):
    """Returns loss and accuracy in float64, looking for each half by itself."""
    halves = []
    for row, lengths in zip(states.astype(np.float64), lengths_of_halves):
        ends = np.cumsum(lengths)
        halves += [row[end - length : end].mean(axis=0) for length, end in zip(lengths, ends)]
    halves = [half / np.linalg.norm(half) for half in halves]
    first, second = np.array(halves[0::2]), np.array(halves[1::2])
    losses, right = [], []
    for scores in (first @ second.T / TEMPERATURE, second @ first.T / TEMPERATURE):
        for number, row in enumerate(scores):
            losses.append(np.log(np.exp(row).sum()) - row[number])
            right.append(row.argmax() == number)
    return np.mean(losses), np.mean(right)


ROWS = [[6, 4, 3, 9], [5, 7], [4, 4, 4, 4, 5, 5]]


def test_halves_see_themselves_alone_and_their_positions_begin_at_zero():
    halves = find_halves(make_batch([[3, 2, 4, 5], []]))
    assert halves.position_ids[0, :14].numpy().tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3, 0, 1, 2, 3, 4]
    numbers = np.repeat(np.arange(4), [3, 2, 4, 5])
    np.testing.assert_array_equal(halves.document_ids[0], [*numbers, *[-1] * (LENGTH - 14)])
    assert halves.is_sentence.numpy().tolist() == [1, 1, 0, 0, 0, 0]
    assert not halves.membership[1].numpy().any()


def test_loss_and_accuracy_are_those_of_numpy():
    batch, states = make_batch(ROWS), np.random.default_rng(1).normal(size=[3, LENGTH, 16]).astype(np.float32)
    states[:, :, 0] += 1.0
    (loss, total), (right, count) = match_halves(tf.constant(states), find_halves(batch))
    expected_loss, expected_accuracy = expected_matches(states, ROWS)
    assert float(total) == float(count) == 6
    assert float(loss / total) == pytest.approx(expected_loss, rel=1e-5)
    assert float(right / count) == pytest.approx(expected_accuracy, rel=1e-5)


def test_who_sees_no_difference_guesses_one_of_all():
    batch = make_batch(ROWS)
    (loss, total), _ = match_halves(tf.ones([3, LENGTH, 16]), find_halves(batch))
    assert float(loss / total) == pytest.approx(np.log(6), rel=1e-5)


def test_what_fills_a_batch_up_changes_nothing():
    objective = make_objective("halves", CONFIG, masking=MaskingOptions(2))
    model = objective.make_model()
    batches = make_batch(ROWS), make_batch([*ROWS, [], []])
    results = [objective.compute(batch, False, None, model=model) for batch in batches]
    for name, (value, weight) in results[0].items():
        assert float(value) == pytest.approx(float(results[1][name][0]), rel=1e-5), name
        assert float(weight) == float(results[1][name][1])
    for batch, result in zip(batches, results):
        weights = objective.loss_weights(batch)
        assert {name: float(weight) for name, weight in weights.items()} == {
            name: float(result[name][1]) for name in objective.loss_coefficients
        }


@pytest.mark.parametrize("position_offset", [0, 2])
def test_a_half_is_read_as_the_same_text_by_itself(position_offset):
    config = CONFIG.replace(position_offset=position_offset)
    model = make_objective("halves", config, masking=MaskingOptions(2)).make_model()
    batch = make_batch([[6, 4, 3, 9]])
    inputs = {"input_ids": batch["input_ids"], **MatchingHalves(config).encoder_inputs(batch)}
    together = model.encoder(inputs)["sequence_output"][0, 10:13]
    alone = model.encoder({"input_ids": batch["input_ids"][:, 10:13]})["sequence_output"][0]
    np.testing.assert_allclose(together, alone, atol=1e-5)
