"""Rematerialisation changes when things are computed, and nothing else."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining
from albert_tf.modeling.kernels.rematerialization import rematerialize
from albert_tf.modeling.layers import named_variables


def test_gradients_are_those_of_the_function():
    calls = []

    def function(inputs, nothing, parameters, seed):
        calls.append(1)
        noise = tf.random.stateless_uniform(inputs.shape, seed)
        assert nothing is None
        return [tf.tanh(inputs @ parameters["kernel"]) * noise]

    inputs, kernel, seed = tf.random.normal([3, 3], seed=1), tf.random.normal([3, 3], seed=2), tf.constant([1, 2])
    gradients = []
    for apply in (function, rematerialize(function)):
        with tf.GradientTape() as tape:
            tape.watch([inputs, kernel])
            loss = tf.reduce_sum(apply(inputs, None, {"kernel": kernel}, seed)[0] ** 2)
        gradients.append(tape.gradient(loss, [inputs, kernel]))
    assert len(calls) == 1 + 2, "once more in the backward pass"
    for plain, again in zip(*gradients):
        np.testing.assert_array_equal(plain, again)


@pytest.fixture
def without_graph_optimizer():
    """Leaves out the optimizer of TensorFlow's own runtime, which adds up in another order where it can."""
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})


@pytest.mark.slow
@pytest.mark.usefixtures("without_graph_optimizer")
@pytest.mark.parametrize(("sharing", "remat"), [("all", "block"), ("none", "attention")])
def test_step_has_the_same_bits(tiny_config, batch, sharing, remat):
    config = tiny_config.replace(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2, sharing=sharing)
    results = []
    for choice in ("none", remat):
        tf.keras.utils.set_random_seed(3)
        model = AlbertForPreTraining(config, remat=choice)
        variables = named_variables(model)

        @tf.function
        def compute(model=model, variables=variables):
            with tf.GradientTape() as tape:
                outputs = model(batch, training=True, dropout_seed=tf.constant([5, 6]))
                loss = tf.reduce_sum(outputs["sentence_order_logits"] ** 2)
                loss += tf.reduce_sum(outputs["masked_lm_logits"] ** 2)
            return loss, {name: tf.convert_to_tensor(value) for name, value in tape.gradient(loss, variables).items()}

        results.append(compute())
    (loss, gradients), (other_loss, other_gradients) = results
    assert float(loss) == float(other_loss)
    for name, gradient in gradients.items():
        np.testing.assert_array_equal(gradient, other_gradients[name], err_msg=name)


def test_unknown_choice_is_refused(tiny_config):
    with pytest.raises(ValueError, match="remat must be one of none, attention, block"):
        AlbertEncoder(tiny_config, remat="everything")
