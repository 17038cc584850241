"""Several models learn together: what they share is one variable, and what is frozen is known by its content."""

import itertools
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from several_models import Imitation
from tiny_config import tiny_config
from toy_objective import Distillation

from albert_tf.base.errors import InputError
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives.objective import with_batch_size
from albert_tf.optimization import make_optimizer
from albert_tf.training import Phase, RunSettings, TrainingRun
from albert_tf.training.devices import make_strategy
from albert_tf.training.train_state import TrainState, learnt_variables
from albert_tf.training.train_step import make_replica_step

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_to_trace")]

OBJECTIVE = Imitation(tiny_config(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
OF_TWO = Distillation(tiny_config(), tiny_config(num_hidden_layers=2), coefficient=2.0)
BATCH_SIZE, NUM_EXAMPLES = 4, 24
SETTINGS = RunSettings(
    num_train_steps=4, train_batch_size=BATCH_SIZE, learning_rate=0.01, optimizer="adamw", save_checkpoints_steps=2
)


def batches(start_step=0, *_):
    ids = np.random.default_rng(0).integers(1, 30, [NUM_EXAMPLES, 8]).astype(np.int32)
    features = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    features["example_weights"] = np.ones(NUM_EXAMPLES, np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(features).batch(BATCH_SIZE, drop_remainder=True)
    return dataset.repeat().skip(start_step)


def held_out():
    return batches().take(NUM_EXAMPLES // BATCH_SIZE)


def start(folder, num_replicas=1, seed=0, **changes):
    tf.keras.utils.set_random_seed(seed)
    with make_strategy(num_cpu_replicas=num_replicas).scope():
        models = OBJECTIVE.make_models()
    settings = SETTINGS if not changes else RunSettings(**{**vars(SETTINGS), **changes})
    return TrainingRun(folder, OBJECTIVE, models, settings), models


def phase(make_dataset=batches, **options):
    return Phase(4, with_batch_size(OBJECTIVE.batch_spec(8), BATCH_SIZE), make_dataset, held_out, **options)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, quick_to_trace):
    folder = tmp_path_factory.mktemp("trained")
    run, models = start(folder)
    assert run.train(phase())
    return folder, run, models


def checkpoint(folder, step=4):
    return tf.train.load_checkpoint(str(folder / f"model.ckpt-{step}"))


def arrays(folder):
    reader = checkpoint(folder)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if "OBJECT_GRAPH" not in name}


def values(model):
    return {name: variable.numpy() for name, variable in named_variables(model).items()}


def test_models_that_learn_change_and_the_frozen_one_does_not(trained, tmp_path):
    before, after = start(tmp_path)[1], trained[2]
    for name, value in values(after["teacher"]).items():
        np.testing.assert_array_equal(value, values(before["teacher"])[name])
    for model in ("model", "helper"):
        unchanged = [
            name for name, value in values(before[model]).items() if np.array_equal(value, values(after[model])[name])
        ]
        assert all(name.endswith("key/bias") for name in unchanged)  # which no softmax feels


@pytest.mark.keras_2
def test_shared_variable_is_saved_once_with_one_moment(trained):
    names = {name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE") for name in arrays(trained[0])}
    tables = {name for name in names if name.endswith("word_embeddings")}
    assert tables == {
        "model/embeddings/word_embeddings",
        "first_moments/embeddings/word_embeddings",
        "second_moments/embeddings/word_embeddings",
    }
    assert "helper/pooler/kernel" in names and "first_moments/helper/pooler/kernel" in names
    assert not [name for name in names if "teacher" in name]


@pytest.mark.keras_2
def test_shared_variable_has_one_full_gradient_one_update_and_one_place_in_the_norm():
    strategy = make_strategy(num_cpu_replicas=2)
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        models = OBJECTIVE.make_models()
        variables = learnt_variables(OBJECTIVE, models)
        optimizer = make_optimizer("adamw", variables, lambda step: 0.01, weight_decay=0.0, clip_norm=1e9)
    assert len({id(variable) for variable in variables.values()}) == len(variables)
    (batch,) = batches().take(1)
    with tf.GradientTape() as tape:
        found = OBJECTIVE.compute(batch, True, tf.constant([0, 0]), **models)
        loss = (found["distance"][0] + 0.5 * found["help"][0]) / BATCH_SIZE
    table = variables["embeddings/word_embeddings"]
    expected = {name: tf.convert_to_tensor(value) for name, value in tape.gradient(loss, variables).items()}
    before = table.numpy()
    step = make_replica_step(TrainState.create(strategy, OBJECTIVE, models, optimizer), 0)
    dataset = strategy.experimental_distribute_dataset(batches().take(1))
    (values,) = dataset
    tf.function(lambda: strategy.run(step, args=(values, tf.constant(0))), autograph=False)()
    moment = optimizer.first_moments["embeddings/word_embeddings"].numpy()
    np.testing.assert_allclose(moment, 0.1 * expected["embeddings/word_embeddings"].numpy(), rtol=2e-4, atol=1e-8)
    # Adam's first step without bias correction moves by 0.1 / sqrt(0.001) of the rate, whatever the gradient.
    moved = np.abs(table.numpy() - before)[np.abs(moment) > 1e-5]
    assert moved.size and moved.max() < 0.01 * 0.1 / np.sqrt(0.001) * 1.01


def test_every_model_that_learns_is_resumed(trained, tmp_path):
    folder = shutil.copytree(trained[0], tmp_path / "killed")
    for path in folder.glob("model.ckpt-4.*"):
        path.unlink()
    assert start(folder)[0].train(phase())
    expected = arrays(trained[0])
    for name, value in arrays(folder).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


def test_frozen_model_is_part_of_the_identity_and_checked_at_every_resume(trained):
    folder, *_ = trained
    settings = json.loads((folder / "run_settings.json").read_text())
    assert settings["frozen_models"].keys() == {"teacher", "teacher_config"}
    run, models = start(folder)
    assert run.train(phase())  # the same one
    table = named_variables(models["teacher"])["embeddings/word_embeddings"]
    table.assign_add(tf.ones_like(table) * 1e-3)
    other = TrainingRun(folder, OBJECTIVE, models, SETTINGS)
    for use in (lambda: other.train(phase()), other.restore):
        with pytest.raises(InputError, match="the content of teacher, which it learns from, is not what it was"):
            use()


def test_restored_run_measures_what_the_trained_one_did(trained):
    folder, run, _ = trained
    expected = run.evaluate(held_out())
    other, _ = start(folder)
    other.restore()
    assert other.evaluate(held_out()) == expected


def test_loss_is_the_sum_of_the_losses_times_their_coefficients(tmp_path):
    results = TrainingRun(tmp_path, OF_TWO, OF_TWO.make_models(), SETTINGS).evaluate(held_out())
    assert results["loss"] == pytest.approx(2.0 * results["distance"] + 0.5 * results["length"], rel=1e-6)


def test_batches_that_lack_a_feature_are_named(tmp_path):
    def without_weights(*_):
        return batches().map(lambda batch: {name: batch[name] for name in batch if name != "example_weights"})

    with pytest.raises(InputError, match="the batches hold no example_weights, which the objective's batch_spec"):
        start(tmp_path)[0].train(phase(without_weights))


def area_under_the_curve():
    ids = np.concatenate([batch["input_ids"] for batch in held_out().as_numpy_iterator()])
    bins, is_positive = np.floor(ids[:, 0] / 30 * 8), ids[:, 1] + ids[:, 0] > 30
    pairs = [
        (bins[i] > bins[j]) + 0.5 * (bins[i] == bins[j])
        for i, j in itertools.product(range(len(bins)), repeat=2)
        if is_positive[i] and not is_positive[j]
    ]
    return np.mean(pairs)


def test_metrics_may_be_vectors_of_sums(tmp_path):
    run, _ = start(tmp_path, num_replicas=2)
    assert run.train(phase(gradient_accumulation_steps=2))
    results = run.evaluate(held_out())
    assert results["counted"] == NUM_EXAMPLES and "positives" not in results
    assert 0 < results["auc"] < 1
    assert results["auc"] == pytest.approx(area_under_the_curve(), abs=1e-6)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    (row,) = [row for row in rows if row["split"] == "train" and row["step"] == 4]
    assert row["counted"] == 2 * BATCH_SIZE  # since the checkpoint of step 2
