"""Gradient accumulation over batches of several lengths, which are cut to their longest example."""

import numpy as np
import pytest
import tensorflow as tf
from encoded_examples import LENGTH, make_features
from tiny_config import tiny_config

from albert_tf.finetuning import TASKS
from albert_tf.finetuning.batches import Examples
from albert_tf.modeling.layers import named_variables
from albert_tf.optimization import AdamW, LearningRateSchedule
from albert_tf.training.devices import make_strategy
from albert_tf.training.train_state import TrainState
from albert_tf.training.train_step import make_train_function

BATCH_SIZE, NUM_STEPS, NUM_CHOICES = 16, 3, 4
NUM_EXAMPLES = BATCH_SIZE * NUM_STEPS
WITHOUT_DROPOUT = dict.fromkeys(["hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"], 0.0)
CONFIG = tiny_config(50, max_position_embeddings=LENGTH, **WITHOUT_DROPOUT)


def features_of(task):
    """Returns made-up examples with what a task's batches hold; a third of them are short."""
    draws, spec = np.random.default_rng(1), task.batch_spec(None)
    choices = [NUM_CHOICES] if spec["input_ids"].shape.rank == 3 else []
    features = make_features(NUM_EXAMPLES * (NUM_CHOICES if choices else 1))
    inputs = {
        name: features[name].reshape([NUM_EXAMPLES, *choices, LENGTH])
        for name in ("input_ids", "input_mask", "segment_ids")
    }
    for values in inputs.values():
        values[::3, ..., 8:] = 0
    inputs["input_ids"] %= CONFIG.vocab_size
    label_shape = [LENGTH if size is None else size for size in spec.get("label_ids", inputs["input_ids"]).shape[1:]]
    position = draws.integers(0, 8, NUM_EXAMPLES).astype(np.int32)
    answers = {
        "label_ids": draws.integers(0, 2, [NUM_EXAMPLES, *label_shape]).astype(np.int32),
        "label_values": draws.normal(size=NUM_EXAMPLES).astype(np.float32),
        "start_positions": position,
        "end_positions": position,
    }
    return {name: values for name, values in {**inputs, **answers}.items() if name in spec}


def trained(task, parts):
    """Returns the weights after batches of several lengths, each in so many parts."""
    strategy = make_strategy()
    tf.keras.utils.set_random_seed(1)
    with strategy.scope():
        model = task.make_model()
        optimizer = AdamW(named_variables(model), LearningRateSchedule(2e-4, NUM_STEPS))
        stop_requested = tf.Variable(False, trainable=False)
    dataset = Examples(features_of(task), task.batch_spec(None)).train_dataset(BATCH_SIZE, seed=1)
    assert len({batch["input_ids"].shape[-1] for batch in dataset.take(NUM_STEPS)}) > 1, "no length but one"
    state = TrainState.create(strategy, task, {"model": model}, optimizer)
    make_train_function(state, 1, stop_requested, parts)(iter(dataset), tf.constant(NUM_STEPS))
    return {name: variable.numpy() for name, variable in named_variables(model).items()}


@pytest.mark.slow
@pytest.mark.usefixtures("quick_to_trace")
@pytest.mark.parametrize("name", ["squad_v2", "race", "tag"])
def test_batches_in_parts_give_the_weights_of_whole_ones(name):
    task = TASKS[name](CONFIG)
    whole, in_parts = trained(task, 1), trained(task, 4)
    for name, values in whole.items():
        np.testing.assert_allclose(in_parts[name], values, atol=1e-6, rtol=0, err_msg=name)
