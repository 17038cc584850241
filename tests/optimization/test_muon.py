"""Muon against the algorithm written out in NumPy, in float64."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.optimization import AdamW, LearningRateSchedule, Muon
from albert_tf.optimization.updates import orthogonalized

SCHEDULE = LearningRateSchedule(0.1, num_train_steps=100)
WIDE = "encoder/feed_forward_layers/0/intermediate/kernel"
TALL = "encoder/feed_forward_layers/0/output_dense/kernel"
SQUARE = "encoder/attention_layers/0/query/kernel"
SHAPES = {
    WIDE: [4, 6],
    TALL: [6, 4],
    SQUARE: [4, 4],
    "encoder/attention_layers/0/query/bias": [4],
    "encoder/embedding_hidden_mapping_in/kernel": [3, 4],
    "encoder/embeddings/word_embeddings": [9, 3],
}
LOSS = tf.constant(1.0)  # tells an optimizer no more than that it is finite


def reference_orthogonalized(matrix):
    """Returns U f(S) V^T, f being the quintic applied five times to the singular values (Jordan et al., 2024)."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    values = values / np.linalg.norm(values)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return left @ np.diag(values) @ right


def random_values(seed, scale=1.0):
    random = np.random.default_rng(seed)
    return {name: scale * random.normal(size=shape) for name, shape in SHAPES.items()}


def make_variables(values):
    return {name: tf.Variable(value, dtype=tf.float32) for name, value in values.items()}


def as_tensors(values):
    return {name: tf.constant(value, tf.float32) for name, value in values.items()}


@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3)])
def test_singular_values_are_pushed_to_one(shape):
    matrix = np.random.default_rng(0).normal(size=shape)
    result = orthogonalized(tf.constant(matrix, tf.float32)).numpy()
    np.testing.assert_allclose(result, reference_orthogonalized(matrix), atol=2e-4)
    assert np.all(np.abs(np.linalg.svd(result, compute_uv=False) - 1.0) < 0.35)


def test_products_in_bfloat16_are_near():
    matrix = np.random.default_rng(0).normal(size=(16, 32)).astype(np.float32)
    exact, near = orthogonalized(matrix), orthogonalized(tf.constant(matrix), "bfloat16")
    assert near.dtype == tf.float32
    # Each of five iterations adds up terms whose coefficients' sizes sum to 10, each rounded by at most 2**-9.
    assert 0.0 < np.linalg.norm(near - exact) / np.linalg.norm(exact) < 5 * 10 * 2**-9


def test_no_gradient_no_direction():
    np.testing.assert_array_equal(orthogonalized(tf.zeros([3, 4])), np.zeros([3, 4]))


@pytest.mark.parametrize("gradient_scale", [10.0, 0.01])  # clipped, not clipped
def test_matrices_of_blocks_follow_the_reference(gradient_scale):
    weights = random_values(0)
    variables = make_variables(weights)
    muon = Muon(variables, SCHEDULE, weight_decay=0.01)
    moments = {name: np.zeros(SHAPES[name]) for name in (WIDE, TALL, SQUARE)}
    for step in range(4):
        gradients = random_values(step + 1, gradient_scale)
        muon.apply(as_tensors(gradients), tf.constant(step), LOSS)
        clipping = max(1.0, np.sqrt(sum((gradient**2).sum() for gradient in gradients.values())))
        for name, moment in moments.items():
            gradient = gradients[name] / clipping
            moment[...] = 0.95 * moment + gradient
            direction = 0.2 * np.sqrt(max(moment.shape)) * reference_orthogonalized(gradient + 0.95 * moment)
            weights[name] -= 0.1 * (1 - step / 100) * (direction + 0.01 * weights[name])
            np.testing.assert_allclose(variables[name], weights[name], atol=2e-4, err_msg=f"{name}, step {step}")


def test_everything_else_follows_adam():
    by_optimizer = {}
    for optimizer_class in (Muon, AdamW):
        variables = make_variables(random_values(0))
        optimizer = optimizer_class(variables, SCHEDULE, bias_correction=True)
        for step in range(3):
            optimizer.apply(as_tensors(random_values(step + 1)), tf.constant(step), LOSS)
        by_optimizer[optimizer_class] = {name: variable.numpy() for name, variable in variables.items()}
    for name in SHAPES:
        is_same = np.array_equal(by_optimizer[Muon][name], by_optimizer[AdamW][name])
        assert is_same == (name not in (WIDE, TALL, SQUARE)), name


def test_matrices_of_blocks_need_one_moment():
    model = AlbertForPreTraining(AlbertConfig(30, 8, 16, 1, num_attention_heads=2, intermediate_size=16))
    variables = named_variables(model)
    muon = Muon(variables, SCHEDULE)
    without = variables.keys() - muon.second_moments.keys()
    assert {name.split("layers/0/")[1] for name in without} == {
        "query/kernel",
        "key/kernel",
        "value/kernel",
        "output_dense/kernel",  # of attention and of the feed-forward block
        "intermediate/kernel",
    }
    assert muon.first_moments.keys() == variables.keys()
