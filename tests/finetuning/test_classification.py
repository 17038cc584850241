"""Fine-tuning to label texts: batches, loss, predictions."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from rounding import independent_errors
from tiny_config import tiny_config

from albert_tf.finetuning import Classification
from albert_tf.finetuning.batches import eval_dataset, train_dataset
from albert_tf.finetuning.labelled_text import LabelledText
from albert_tf.training.devices.strategy import make_strategy
from albert_tf.training.evaluation import Evaluator
from albert_tf.training.outputs import compute_outputs

CONFIG = tiny_config(max_position_embeddings=8, initializer_range=0.5)  # so that labels differ in probability
TASK = Classification(CONFIG, ("a", "b", "c"))


def make_features(count):
    """Returns made-up examples; the first id of each is its number."""
    draws = np.random.default_rng(0)
    input_ids = draws.integers(0, 30, [count, 8]).astype(np.int32)
    input_ids[:, 0] = np.arange(count)
    return {
        "input_ids": input_ids,
        "input_mask": np.ones_like(input_ids),
        "segment_ids": np.zeros_like(input_ids),
        "label_ids": draws.integers(0, 3, count).astype(np.int32),
    }


def order(dataset, num_batches):
    """Returns the numbers of the examples in each of the first batches."""
    return [batch["input_ids"][:, 0].numpy().tolist() for batch in dataset.take(num_batches)]


def test_each_epoch_is_a_new_permutation_of_all_examples():
    batches = order(train_dataset(make_features(7), global_batch_size=3, seed=1), 7)
    assert [len(batch) for batch in batches] == [3] * 7
    numbers = list(itertools.chain(*batches))
    epochs = [tuple(numbers[start : start + 7]) for start in (0, 7, 14)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(7))
    assert len(set(epochs)) == 3


def test_batches_keep_each_example_together():
    features = make_features(9)
    for batch in train_dataset(features, global_batch_size=4, seed=1).take(5):
        rows = batch["input_ids"][:, 0].numpy()
        for name, values in features.items():
            np.testing.assert_array_equal(batch[name].numpy(), values[rows], err_msg=name)
        np.testing.assert_array_equal(batch["example_weights"].numpy(), [1.0] * 4)


@pytest.mark.parametrize("start_step", [1, 2, 5])
def test_resumed_run_goes_on_where_it_stopped(start_step):
    features = make_features(7)
    whole = order(train_dataset(features, 3, seed=1), 9)
    assert order(train_dataset(features, 3, seed=1, start_step=start_step), 9 - start_step) == whole[start_step:]


def test_order_follows_from_the_seed():
    features = make_features(20)
    tf.keras.utils.set_random_seed(1)
    first = order(train_dataset(features, 4, seed=1), 6)
    tf.keras.utils.set_random_seed(2)
    assert order(train_dataset(features, 4, seed=1), 6) == first
    assert order(train_dataset(features, 4, seed=2), 6) != first


def test_batch_may_be_larger_than_the_data():
    (batch,) = order(train_dataset(make_features(3), 8, seed=1), 1)
    assert sorted(batch[:3]) == sorted(batch[3:6]) == [0, 1, 2]


def test_evaluation_has_every_example_once_and_padding_without_weight():
    features = make_features(7)
    batches = list(eval_dataset(features, 3))
    assert [batch["input_ids"].shape[0] for batch in batches] == [3, 3, 3]
    weights = np.concatenate([batch["example_weights"] for batch in batches])
    np.testing.assert_array_equal(weights, [1.0] * 7 + [0.0] * 2)
    for name, values in features.items():
        found = np.concatenate([batch[name] for batch in batches])
        np.testing.assert_array_equal(found[:7], values, err_msg=name)
        assert found.dtype == values.dtype


def make_model(strategy):
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        return TASK.make_model()


def numpy_probabilities(features):
    logits = make_model(tf.distribute.get_strategy())(features)["logits"].numpy().astype(np.float64)
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize(("num_replicas", "batch_size"), [(1, 4), (2, 4), (4, 12)])
def test_predictions_are_probabilities_in_order(num_replicas, batch_size):
    features = make_features(13)
    strategy = make_strategy(num_cpu_replicas=num_replicas)
    model = make_model(strategy)
    outputs = compute_outputs(strategy, lambda batch: TASK.outputs(batch, model), eval_dataset(features, batch_size))
    probabilities = outputs["probabilities"]
    # A block rounds 20 values and the terms of six products, 100 in all; for both, the largest of 39 probabilities is 3
    # deviations off, and 16 * 0.5**2, which the variance of the last products' terms adds up to, enlarge the error.
    np.testing.assert_allclose(probabilities, numpy_probabilities(features), atol=12 * independent_errors(2 * 120))


@pytest.mark.slow
@pytest.mark.parametrize("num_replicas", [1, 2])
def test_evaluation_is_the_mean_over_all_examples(num_replicas):
    features = make_features(13)
    strategy = make_strategy(num_cpu_replicas=num_replicas)
    results = Evaluator(strategy, TASK, {"model": make_model(strategy)}).evaluate(eval_dataset(features, 4))
    probabilities, labels = numpy_probabilities(features), features["label_ids"]
    loss = -np.log(probabilities[np.arange(13), labels]).mean()
    accuracy = (probabilities.argmax(axis=-1) == labels).mean()
    assert results == pytest.approx({"loss": loss, "classification_loss": loss, "accuracy": accuracy}, rel=1e-5)


def test_prediction_names_the_most_probable_label():
    probabilities = np.array([[0.25, 0.5, 0.25], [0.75, 0.0, 0.25]], np.float32)
    assert TASK.predict([None, None], {}, {"probabilities": probabilities}) == [
        {"label": "b", "probabilities": {"a": 0.25, "b": 0.5, "c": 0.25}},
        {"label": "a", "probabilities": {"a": 0.75, "b": 0.0, "c": 0.25}},
    ]


def write(path, examples, labels, probabilities):
    """Writes what these probabilities come to, and returns the lines."""
    task = Classification(CONFIG, labels)
    task.write_predictions(str(path), examples, task.predict(examples, {}, {"probabilities": probabilities}))
    return path.read_text().splitlines()


def test_predictions_file_has_a_line_for_each_example(tmp_path):
    examples = [LabelledText("좋다", None, "1", 2), LabelledText('그 "말', None, None, 3)]
    lines = write(
        tmp_path / "new" / "predictions.tsv", examples, ("0", "1"), np.array([[0.25, 0.75], [0.9, 0.1]], np.float32)
    )
    assert lines == [
        "text\tlabel\tprediction\tp(0)\tp(1)",
        "좋다\t1\t1\t0.2500\t0.7500",
        '그 "말\t\t0\t0.9000\t0.1000',
    ]


def test_predictions_of_pairs_show_both_texts(tmp_path):
    examples = [LabelledText("하나", "둘", "a", 2)]
    assert write(tmp_path / "predictions.tsv", examples, ("a", "b"), np.array([[0.4, 0.6]])) == [
        "text\ttext_pair\tlabel\tprediction\tp(a)\tp(b)",
        "하나\t둘\ta\tb\t0.4000\t0.6000",
    ]
