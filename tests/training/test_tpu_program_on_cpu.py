"""The program that is traced for a TPU, run by XLA on this machine, trains as the step that runs here.

Tracing for a TPU leaves out what TensorFlow's own runtime needs, and puts in barriers; neither may change a result.
"""

import numpy as np
import pytest
import tensorflow as tf
from tiny_training import CONFIG, PRETRAINING, SCHEDULE, make_examples

from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.optimization import make_optimizer
from albert_tf.runs.tpu_compiler import ReplicaStrategy
from albert_tf.training.devices import make_strategy
from albert_tf.training.train_step import TrainState, make_replica_step

pytestmark = pytest.mark.slow

DROPPING = CONFIG.replace(num_hidden_layers=2, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
BATCH_SIZE, STEPS = 8, 3


def trained(is_for_tpu, optimizer, dtype, remat="none", accumulation=1):
    """Returns the weights by name and the averages of the metrics after a few steps."""
    strategy = ReplicaStrategy(1) if is_for_tpu else make_strategy(num_cpu_replicas=1)
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        model = AlbertForPreTraining(DROPPING, attention="plain", remat=remat, dtype=dtype)
        weights = named_variables(model)
        state = TrainState.create(
            strategy, PRETRAINING, {"model": model}, make_optimizer(optimizer, weights, SCHEDULE, ema_decay=0.9)
        )
    replica_step = make_replica_step(state, 5, accumulation)
    step_function = tf.function(
        lambda step, batch: strategy.run(replica_step, args=(batch, step)),
        jit_compile=is_for_tpu or None,
        autograph=False,
    )
    examples = make_examples(BATCH_SIZE * STEPS)
    for step in range(STEPS):
        rows = slice(BATCH_SIZE * step, BATCH_SIZE * (step + 1))
        step_function(tf.constant(step), {name: tf.constant(values[rows]) for name, values in examples.items()})
    return {name: variable.numpy() for name, variable in weights.items()}, state.metric_sums.take()[0]


@pytest.mark.parametrize(
    ("optimizer", "remat", "accumulation"), [("lamb", "none", 1), ("adamw", "block", 2), ("muon", "none", 1)]
)
def test_program_for_a_tpu_trains_as_the_step_here(optimizer, remat, accumulation):
    expected_weights, expected_averages = trained(False, optimizer, "float32", accumulation=accumulation)
    weights, averages = trained(True, optimizer, "float32", remat, accumulation)
    for name, expected in expected_weights.items():
        # A step moves weights by about 0.01.
        assert np.sqrt(np.mean((weights[name] - expected) ** 2)) < 5e-6, name
    assert averages == pytest.approx(expected_averages, rel=1e-4)


def test_program_for_a_tpu_trains_alike_in_bfloat16():
    # Products are rounded to 8 bits in another order, and Adam magnifies that where a gradient is next to zero.
    _, expected = trained(False, "lamb", "mixed_bfloat16")
    _, averages = trained(True, "lamb", "mixed_bfloat16", remat="attention")
    ours, theirs = ({name: value for name, value in given.items() if "loss" in name} for given in (averages, expected))
    assert ours == pytest.approx(theirs, rel=5e-3)
    assert averages["gradient_norm"] == pytest.approx(expected["gradient_norm"], rel=2e-2)
