"""An objective may have several losses with coefficients, and models that are neither trained nor saved."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config
from toy_objective import Distillation

from albert_tf.errors import InputError
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives.objective import with_batch_size
from albert_tf.tpu.steps import lower_step
from albert_tf.training import Phase, RunSettings, TrainingRun

pytestmark = pytest.mark.slow

CONFIG = tiny_config()
BATCH_SIZE = 4
SETTINGS = RunSettings(num_train_steps=4, train_batch_size=BATCH_SIZE, learning_rate=0.01, optimizer="adamw")


def batches(*_):
    draws = np.random.default_rng(0)
    ids = draws.integers(0, 30, [24, 8]).astype(np.int32)
    features = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    features["example_weights"] = np.ones(24, np.float32)
    return tf.data.Dataset.from_tensor_slices(features).batch(BATCH_SIZE, drop_remainder=True)


def phase(objective, make_dataset=batches):
    return Phase(4, with_batch_size(objective.batch_spec(8), BATCH_SIZE), make_dataset, batches)


def values(model):
    return {name: variable.numpy() for name, variable in named_variables(model).items()}


@pytest.fixture
def objective():
    return Distillation(CONFIG, CONFIG.replace(num_hidden_layers=2, hidden_size=16), coefficient=2.0)


def test_frozen_model_is_neither_trained_nor_saved(tmp_path, objective):
    tf.keras.utils.set_random_seed(0)
    models = objective.make_models()
    before = {name: values(model) for name, model in models.items()}
    run = TrainingRun(tmp_path, objective, models, SETTINGS)
    assert run.train(phase(objective))
    for name, value in values(models["teacher"]).items():
        np.testing.assert_array_equal(value, before["teacher"][name])
    changed = [
        name for name, value in values(models["model"]).items() if not np.array_equal(value, before["model"][name])
    ]
    assert set(changed) == set(before["model"]) - {
        name
        for name in before["model"]
        if name.endswith("key/bias")  # which no softmax feels
    } or set(changed) == set(before["model"])
    saved = dict(tf.train.list_variables(str(tmp_path)))
    assert any(name.startswith("model/") for name in saved)
    assert not any("teacher" in name for name in saved)


def test_loss_is_the_sum_of_the_losses_times_their_coefficients(tmp_path, objective):
    run = TrainingRun(tmp_path, objective, objective.make_models(), SETTINGS)
    run.train(phase(objective))
    results = run.evaluate(batches())
    assert results["loss"] == pytest.approx(2.0 * results["distance"] + 0.5 * results["length"], rel=1e-6)


def test_further_model_is_trained_and_saved_under_its_own_name(tmp_path, objective):
    objective.frozen_models = ()
    run = TrainingRun(tmp_path, objective, objective.make_models(), SETTINGS)
    run.train(phase(objective))
    saved = {name for name, _ in tf.train.list_variables(str(tmp_path))}
    assert any(name.startswith("teacher/embeddings") for name in saved)
    assert any(name.startswith("first_moments/teacher/embeddings") for name in saved)


def test_objective_is_planned_for_a_tpu(objective):
    assert "stablehlo" in lower_step(objective, 8, 8, dtype="float32")


def test_batches_that_lack_a_feature_are_named(tmp_path, objective):
    def without_weights(*_):
        return batches().map(lambda batch: {name: batch[name] for name in batch if name != "example_weights"})

    run = TrainingRun(tmp_path, objective, objective.make_models(), SETTINGS)
    with pytest.raises(InputError, match="the batches hold no example_weights, which the objective's batch_spec"):
        run.train(phase(objective, without_weights))
