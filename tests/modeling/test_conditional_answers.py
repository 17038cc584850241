"""The head that tells an answer's end from its beginning, and whether there is one: against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.modeling import AlbertForConditionalQuestionAnswering
from albert_tf.modeling.conditional_answers import answer_positions
from albert_tf.modeling.layers import named_variables

EPSILON = 1e-12


class Reference:
    """The head, written down anew, on the states of a model's encoder."""

    def __init__(self, model, batch):
        self.states = model.encoder(batch)["sequence_output"].numpy().astype(np.float64)
        self.weights = {name: value.numpy().astype(np.float64) for name, value in named_variables(model.head).items()}
        mask, segments = batch["input_mask"].numpy(), batch["segment_ids"].numpy()
        # The original's p_mask, the other way round.
        self.may_answer = np.zeros(mask.shape, bool)
        for row, length in enumerate(mask.sum(axis=1)):
            self.may_answer[row, : length - 1] = segments[row, : length - 1] == 1
            self.may_answer[row, 0] = True

    def dense(self, name, inputs):
        return inputs @ self.weights[f"{name}/kernel"] + self.weights[f"{name}/bias"]

    def mask(self, logits):
        return np.where(self.may_answer, logits, -1e30)

    def start_logits(self):
        return self.mask(self.dense("start", self.states)[..., 0])

    def end_logits(self, starts):
        first = np.repeat(self.states[np.arange(len(starts)), starts][:, None], self.states.shape[1], axis=1)
        hidden = np.tanh(self.dense("end_transform", np.concatenate([self.states, first], axis=-1)))
        hidden -= hidden.mean(axis=-1, keepdims=True)
        hidden /= np.sqrt((hidden**2).mean(axis=-1, keepdims=True) + EPSILON)
        hidden = hidden * self.weights["end_layer_norm/gamma"] + self.weights["end_layer_norm/beta"]
        return self.mask(self.dense("end", hidden)[..., 0])

    def null_logits(self):
        begin = (np.exp(log_softmax(self.start_logits()))[..., None] * self.states).sum(axis=1)
        hidden = np.tanh(self.dense("null_transform", np.concatenate([begin, self.states[:, 0]], axis=-1)))
        return (hidden @ self.weights["null_kernel"])[:, 0]


def log_softmax(logits):
    return logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)


@pytest.fixture
def model(tiny_config, randomized):
    return randomized(AlbertForConditionalQuestionAnswering(tiny_config))


def test_scores_are_those_of_the_reference(model, batch):
    starts = np.array([0, 5, 2])
    reference = Reference(model, batch)
    outputs = model({**batch, "start_positions": tf.constant(starts, tf.int32)})
    np.testing.assert_allclose(outputs["start_logits"], reference.start_logits(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outputs["end_logits"], reference.end_logits(starts), rtol=1e-5, atol=2e-5)
    np.testing.assert_allclose(outputs["null_logits"], reference.null_logits(), rtol=1e-5, atol=1e-5)


def test_without_a_first_position_the_best_one_is_taken(model, batch):
    reference = Reference(model, batch)
    starts = reference.start_logits().argmax(axis=1)
    np.testing.assert_allclose(model(batch)["end_logits"], reference.end_logits(starts), rtol=1e-5, atol=2e-5)


def test_answers_are_in_the_second_text_or_nowhere():
    inputs = {
        "input_ids": tf.ones([3, 7], tf.int32),
        "input_mask": tf.constant([[1] * 7, [1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 0, 0, 0]]),
        "segment_ids": tf.constant([[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 1, 0, 0, 0]]),
    }
    expected = [[1, 0, 0, 1, 1, 1, 0], [1, 0, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0]]
    assert answer_positions(inputs).numpy().astype(int).tolist() == expected
    rows = {**inputs, "input_mask": tf.repeat(inputs["input_mask"][:, None], 7, axis=1)}
    assert answer_positions(rows).numpy().astype(int).tolist() == expected


@pytest.mark.parametrize(("start_n_top", "end_n_top", "max_answer_length"), [(2, 3, 2), (1, 1, 9), (20, 20, 3)])
def test_search_finds_the_most_probable_spans(model, batch, start_n_top, end_n_top, max_answer_length):
    reference = Reference(model, batch)
    found = {
        name: value.numpy() for name, value in model.search(batch, start_n_top, end_n_top, max_answer_length).items()
    }
    start_log_probs = log_softmax(reference.start_logits())
    np.testing.assert_allclose(found["null_logits"], reference.null_logits(), rtol=1e-5, atol=1e-5)
    assert found["start_positions"].shape == (3, min(start_n_top, 10))
    assert found["end_positions"].shape == (3, min(start_n_top, 10), min(end_n_top, 10))
    for row in range(3):
        text = [position for position in np.flatnonzero(reference.may_answer[row]) if position > 0]
        starts = sorted(text, key=lambda position: -start_log_probs[row, position])[:start_n_top]
        is_there = found["start_log_probs"][row] > -1e29
        assert found["start_positions"][row][is_there].tolist() == starts
        np.testing.assert_allclose(found["start_log_probs"][row][is_there], start_log_probs[row, starts], atol=1e-4)
        for rank, start in enumerate(starts):
            end_log_probs = log_softmax(reference.end_logits(np.full(3, start)))[row]
            reached = [position for position in text if start <= position < start + max_answer_length]
            ends = sorted(reached, key=lambda position: -end_log_probs[position])[:end_n_top]
            is_end = found["end_log_probs"][row, rank] > -1e29
            assert found["end_positions"][row, rank][is_end].tolist() == ends
            np.testing.assert_allclose(found["end_log_probs"][row, rank][is_end], end_log_probs[ends], atol=1e-4)


@pytest.mark.slow
def test_search_under_xla_is_the_same(model, batch):
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    found = tf.function(lambda: model.search(inputs, 3, 20, 4), jit_compile=True, autograph=False)()
    expected = model.search(inputs, 3, 20, 4)
    for name, values in found.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-5, atol=1e-4, err_msg=name)
