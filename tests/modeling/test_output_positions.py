"""The last block computes only the positions that are read, with the result of computing all."""

import numpy as np
import pytest
import tensorflow as tf
from rounding import independent_errors

from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective

# Products of other shapes are added up in another order: 20 values and 90 terms of six products in each of two blocks,
# in both computations, of which the largest of 480 is 4 deviations off; as much again because products enlarge errors.
TOLERANCE = 8 * independent_errors(2 * 2 * 110)


@pytest.mark.parametrize("changes", [{}, {"sharing": "none"}, {"num_hidden_layers": 1}])
def test_outputs_are_those_of_all_positions(tiny_config, randomized, batch, changes):
    encoder = randomized(AlbertEncoder(tiny_config.replace(**changes)))
    positions = tf.constant([[0, 5, 2, 2]] * batch["input_ids"].shape[0])
    every, chosen = encoder(batch), encoder(batch, output_positions=positions)
    expected = tf.gather(every["sequence_output"], positions, batch_dims=1)
    np.testing.assert_allclose(chosen["sequence_output"], expected, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(chosen["pooled_output"], every["pooled_output"], rtol=TOLERANCE, atol=TOLERANCE)


def test_rows_of_a_mask_are_those_of_the_positions(tiny_config, randomized, batch):
    encoder = randomized(AlbertEncoder(tiny_config))
    positions = tf.constant([[0, 5, 2, 2]] * batch["input_ids"].shape[0])
    length = batch["input_ids"].shape[1]
    inputs = {**batch, "input_mask": tf.constant(np.tril(np.ones([3, length, length], np.int32)))}
    every, chosen = encoder(inputs), encoder(inputs, output_positions=positions, output_attentions=True)
    expected = tf.gather(every["sequence_output"], positions, batch_dims=1)
    np.testing.assert_allclose(chosen["sequence_output"], expected, rtol=TOLERANCE, atol=TOLERANCE)
    for row, position in enumerate([0, 5, 2, 2]):
        seen = chosen["attentions"][-1].numpy()[:, :, row] > 0
        np.testing.assert_array_equal(seen, np.broadcast_to(np.arange(length) <= position, seen.shape))


def test_loss_of_pre_training_is_that_of_its_logits(tiny_config, randomized, batch):
    model = randomized(AlbertForPreTraining(tiny_config))
    draws = np.random.default_rng(0)
    shape = batch["masked_lm_positions"].shape
    labels = tf.constant(draws.integers(0, tiny_config.vocab_size, shape), tf.int32)
    weights = tf.constant(draws.integers(0, 2, shape), tf.float32)
    orders = tf.range(shape[0]) % 2
    variables = named_variables(model)

    def plain():
        outputs = model(batch)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs["masked_lm_logits"])
        order = tf.nn.sparse_softmax_cross_entropy_with_logits(orders, outputs["sentence_order_logits"])
        return tf.reduce_sum(losses * weights) + tf.reduce_sum(order)

    def short():
        targets = {"masked_lm_ids": labels, "masked_lm_weights": weights, "sentence_order_labels": orders}
        targets["example_weights"] = tf.ones(len(orders))
        found = make_objective("albert", model.config).compute({**batch, **targets}, False, None, model=model)
        return found["masked_lm_loss"][0] + found["sentence_order_loss"][0]

    results = []
    for compute in (plain, short):
        with tf.GradientTape() as tape:
            loss = compute()
        gradients = tape.gradient(loss, variables)
        results.append((loss, {name: tf.convert_to_tensor(value).numpy() for name, value in gradients.items()}))
    (loss, gradients), (short_loss, short_gradients) = results
    assert float(short_loss) == pytest.approx(float(loss), rel=1e-6)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(short_gradients[name], gradient, rtol=1e-4, atol=1e-5, err_msg=name)
