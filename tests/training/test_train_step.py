"""The training step: the same update on any number of replicas, and that of a plain computation."""

import numpy as np
import pytest
import tensorflow as tf
from linear_training import start_linear, unevenly_weighted_points
from tiny_training import SCHEDULE, TinyRun, assert_same_training, never, unevenly_weighted_examples

from albert_tf.modeling.layers import Linear, named_variables
from albert_tf.objectives import Objective
from albert_tf.optimization import make_optimizer
from albert_tf.training.devices import make_strategy
from albert_tf.training.train_state import TrainState
from albert_tf.training.train_step import make_train_function

BATCH_SIZE, STEPS = 8, 3


def trained(num_replicas, optimizer):
    """Returns a run after a few steps."""
    run = TinyRun.start(num_replicas, optimizer)
    run.take_steps(unevenly_weighted_examples(BATCH_SIZE), BATCH_SIZE)
    return run


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", [pytest.param("lamb", marks=pytest.mark.keras_2), "adamw"])
def test_two_replicas_pretrain_as_one(optimizer):
    assert_same_training(trained(2, optimizer), trained(1, optimizer))


@pytest.mark.slow
@pytest.mark.usefixtures("without_noise")
@pytest.mark.parametrize("optimizer", ["lamb", "adamw"])
def test_four_replicas_train_as_one(optimizer):
    runs = []
    for num_replicas in (4, 1):
        runs.append(start_linear(num_replicas, optimizer=optimizer))
        runs[-1].take_steps(unevenly_weighted_points(), 8)
    assert_same_training(*runs)


def plain_losses(model, batch):
    """Returns the two losses, each the mean of -log p over what has weight 1."""
    outputs = model(batch)

    def mean_loss(logits, labels, weights):
        log_probs = tf.gather(tf.math.log_softmax(logits), labels, batch_dims=labels.ndim)
        return -tf.reduce_sum(log_probs * weights) / tf.reduce_sum(weights)

    return (
        mean_loss(outputs["masked_lm_logits"], batch["masked_lm_ids"], batch["masked_lm_weights"]),
        mean_loss(outputs["sentence_order_logits"], batch["sentence_order_labels"], batch["example_weights"]),
    )


def plain_update(weights, gradient, moments, learning_rate, optimizer):
    """Returns new float64 weights and moments, by the papers' formulas (Loshchilov & Hutter 2019; You et al. 2020)."""
    m = 0.9 * moments[0] + 0.1 * gradient
    v = 0.999 * moments[1] + 0.001 * gradient**2
    update = m / (np.sqrt(v) + 1e-6)
    if weights.ndim == 2:  # biases and LayerNorm weights are vectors
        update += 0.01 * weights
        if optimizer == "lamb":
            update *= np.linalg.norm(weights) / np.linalg.norm(update)
    return weights - learning_rate * update, (m, v)


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("optimizer", ["lamb", pytest.param("adamw", marks=pytest.mark.keras_2)])
def test_step_is_that_of_a_plain_computation(optimizer):
    model = TinyRun.start(1, optimizer).model
    variables = named_variables(model)
    weights = {name: variable.numpy().astype(np.float64) for name, variable in variables.items()}
    moments = {name: (np.zeros_like(values), np.zeros_like(values)) for name, values in weights.items()}
    examples, losses, counts, norms = unevenly_weighted_examples(BATCH_SIZE), [], [], []
    for step in range(STEPS):
        batch = {name: values[step * BATCH_SIZE : (step + 1) * BATCH_SIZE] for name, values in examples.items()}
        with tf.GradientTape() as tape:
            losses.append(plain_losses(model, batch))
            loss = tf.add_n(losses[-1])
        gradients = {
            name: tf.convert_to_tensor(gradient).numpy().astype(np.float64)
            for name, gradient in tape.gradient(loss, variables).items()
        }
        counts.append((batch["masked_lm_weights"].sum(), batch["example_weights"].sum()))
        norms.append(np.sqrt(sum(np.sum(gradient**2) for gradient in gradients.values())))
        for name, gradient in gradients.items():
            clipped = gradient / max(norms[-1], 1.0)
            learning_rate = 0.01 * (step + 1) / 3  # the warm-up
            weights[name], moments[name] = plain_update(weights[name], clipped, moments[name], learning_rate, optimizer)
            variables[name].assign(weights[name])

    assert min(norms) < 1.0 < max(norms), "clipping is not tested both ways"
    assert SCHEDULE.num_warmup_steps == STEPS and SCHEDULE.peak == 0.01
    masked_lm_loss, sentence_order_loss = np.average(losses, axis=0, weights=counts)
    actual = trained(1, optimizer)
    for name, expected in weights.items():
        # The root mean square, because Adam magnifies rounding where a gradient is next to zero.
        assert np.sqrt(np.mean((actual.weights()[name] - expected) ** 2)) < 5e-6, name
    expected = {
        "masked_lm_loss": masked_lm_loss,
        "sentence_order_loss": sentence_order_loss,
        "gradient_norm": np.mean(norms),
    }
    assert {name: actual.averages[name] for name in expected} == pytest.approx(expected, rel=1e-5)


class SeedRecorder(Objective):
    """Notes the dropout seed of every step and replica."""

    def __init__(self):
        self.loss_coefficients = {"loss": 1.0}
        self.seeds = []

    def make_model(self, **options):
        return Linear(2, 1, 0.02)

    def batch_spec(self, max_seq_length):
        return {}

    def loss_weights(self, batch):
        return {"loss": tf.ones([])}

    def compute(self, batch, training, dropout_seed, model):
        tf.py_function(lambda seed: self.seeds.append(tuple(seed.numpy())), [dropout_seed], [])
        return {"loss": (tf.reduce_sum(model(batch)), tf.ones([]))}


def dropout_seeds(seed):
    """Returns the seeds that three steps on two replicas give their model."""
    strategy, objective = make_strategy(num_cpu_replicas=2), SeedRecorder()
    with strategy.scope():
        model = objective.make_model()
        optimizer = make_optimizer("adamw", named_variables(model), SCHEDULE)
    state = TrainState.create(strategy, objective, {"model": model}, optimizer)
    train_steps = make_train_function(state, seed, never())
    batches = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors(tf.ones([4, 2])).repeat())
    train_steps(iter(batches), tf.constant(3))
    assert state.global_step.numpy() == 3
    return set(objective.seeds)


@pytest.mark.slow
def test_dropout_seed_follows_from_seed_step_and_replica():
    seeds = dropout_seeds(1)
    assert len(seeds) == 3 * 2
    assert dropout_seeds(1) == seeds
    assert not dropout_seeds(2) & seeds
