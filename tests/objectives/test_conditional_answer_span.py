"""The losses of question answering where there may be no answer, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.objectives import ConditionalAnswerSpan


def test_losses_are_those_of_both_ends_and_of_whether_there_is_an_answer():
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

    objective = ConditionalAnswerSpan(AlbertConfig(vocab_size=30))
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
