"""The losses of question answering, where there may be no answer too, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.finetuning import ConditionalQuestionAnswering, QuestionAnswering


def test_loss_is_the_mean_over_both_ends_and_skips_examples_of_no_weight():
    draws = np.random.default_rng(0)
    start_logits, end_logits = draws.normal(size=(2, 4, 6)).astype(np.float32)
    batch = {
        "start_positions": tf.constant([1, 2, 0, 5]),
        "end_positions": tf.constant([3, 2, 1, 5]),
        "example_weights": tf.constant([1.0, 1.0, 1.0, 0.0]),
    }
    start_logits[0, 1] = start_logits[2, 0] = 9.0  # so that some guess is right

    def model(inputs, training, dropout_seed):
        return {"start_logits": tf.constant(start_logits), "end_logits": tf.constant(end_logits)}

    objective = QuestionAnswering(AlbertConfig(vocab_size=30))
    results = objective.compute(batch, training=True, dropout_seed=None, model=model)
    assert set(results) == {*objective.loss_coefficients, *objective.metric_names}

    def losses(logits, positions):
        probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return -np.log(probs[np.arange(4), positions])[:3]

    expected = (losses(start_logits, [1, 2, 0, 5]) + losses(end_logits, [3, 2, 1, 5])).sum() / 2
    assert float(results["span_loss"][0]) == pytest.approx(expected, rel=1e-5)
    assert float(results["span_loss"][1]) == float(objective.loss_weights(batch)["span_loss"]) == 3.0
    # The third holds no answer: that [CLS] is found there says nothing of how answers are found.
    right = (start_logits.argmax(axis=1) == [1, 2, 0, 5])[:2].sum()
    assert (float(results["start_accuracy"][0]), float(results["start_accuracy"][1])) == (right, 2.0)
    assert right > 0


def test_where_there_may_be_no_answer_losses_are_those_of_both_ends_and_of_whether_there_is_one():
    draws = np.random.default_rng(0)
    start_logits, end_logits = draws.normal(size=(2, 5, 6)).astype(np.float32)
    null_logits = np.array([0.5, -2.0, 3.0, -1.0, 0.1], np.float32)
    batch = {
        "start_positions": tf.constant([1, 2, 0, 0, -1]),  # the last is unknown
        "end_positions": tf.constant([3, 2, 0, 0, -1]),
        "example_weights": tf.constant([1.0, 1.0, 1.0, 0.0, 1.0]),
    }

    def model(inputs, training, dropout_seed):
        logits = {"start_logits": start_logits, "end_logits": end_logits, "null_logits": null_logits}
        return {name: tf.constant(values) for name, values in logits.items()}

    objective = ConditionalQuestionAnswering(AlbertConfig(vocab_size=30))
    results = objective.compute(batch, training=True, dropout_seed=None, model=model)
    assert set(results) == {*objective.loss_coefficients, *objective.metric_names}
    assert objective.loss_coefficients == {"span_loss": 1.0, "answerability_loss": 0.5}

    def losses(logits, positions):
        logits = logits[:3].astype(np.float64)
        return np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(3), positions]

    span_loss = (losses(start_logits, [1, 2, 0]) + losses(end_logits, [3, 2, 0])).sum() / 2
    is_impossible = 1 / (1 + np.exp(-null_logits[:3].astype(np.float64)))
    answerability_loss = -np.log([1 - is_impossible[0], 1 - is_impossible[1], is_impossible[2]]).sum()
    assert float(results["span_loss"][0]) == pytest.approx(span_loss, rel=1e-5)
    assert float(results["answerability_loss"][0]) == pytest.approx(answerability_loss, rel=1e-5)
    assert float(results["answerability_accuracy"][0]) == 2.0  # the first is wrong
    weights = objective.loss_weights(batch)
    assert all(float(weights[name]) == float(results[name][1]) == 3.0 for name in objective.loss_coefficients)
