"""Encoded examples as batches: an order that follows from the seed, lengths cut short, hidden tokens, and parts."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from encoded_examples import LENGTH, make_features
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.finetuning import TASKS, Classification
from albert_tf.finetuning.batches import Examples, TokenDropout
from albert_tf.modeling.layers import named_variables
from albert_tf.optimization import AdamW, LearningRateSchedule
from albert_tf.tokenization import Vocabulary
from albert_tf.tokenization.vocabulary import MASK, SPECIAL_TOKENS
from albert_tf.training.devices import make_strategy
from albert_tf.training.train_state import TrainState
from albert_tf.training.train_step import make_train_function

TASK = Classification(tiny_config(max_position_embeddings=LENGTH), ("a", "b", "c"))


def examples_of(features, max_seq_length=None):
    return Examples(features, TASK.batch_spec(max_seq_length))


def numbers(dataset, num_batches):
    return [batch["input_ids"][:, 0].numpy().tolist() for batch in dataset.take(num_batches)]


def lengths(batch):
    return batch["input_mask"].numpy().sum(axis=1)


def test_each_epoch_is_a_new_permutation_of_all_examples():
    batches = numbers(examples_of(make_features(12)).train_dataset(3, seed=1), 12)
    assert [len(batch) for batch in batches] == [3] * 12
    epochs = [tuple(itertools.chain(*batches[start : start + 4])) for start in (0, 4, 8)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(12))] * 3
    assert len(set(epochs)) == 3
    # Where batches don't divide an epoch:
    batches = numbers(examples_of(make_features(7)).train_dataset(3, seed=1), 14)
    assert np.bincount(list(itertools.chain(*batches))).tolist() == [6] * 7


def test_batches_keep_each_example_together():
    features = make_features(9)
    for batch in examples_of(features).train_dataset(4, seed=1).take(5):
        rows = batch["input_ids"][:, 0].numpy()
        for name, values in features.items():
            expected = values[rows]
            if expected.ndim == 2:
                found_length = batch[name].shape[1]
                assert not expected[:, found_length:].any(), "only padding is cut off"
                expected = expected[:, :found_length]
            np.testing.assert_array_equal(batch[name].numpy(), expected, err_msg=name)
        np.testing.assert_array_equal(batch["example_weights"].numpy(), [1.0] * 4)


def test_batches_are_as_short_as_their_longest_example():
    for batch in examples_of(make_features(100)).train_dataset(4, seed=1).take(50):
        longest = lengths(batch).max()
        assert batch["input_ids"].shape[1] - longest in range(8) and batch["input_ids"].shape[1] % 8 == 0


def test_examples_of_a_batch_are_of_about_one_length():
    features = make_features(640)
    spreads = [np.ptp(lengths(batch)) for batch in examples_of(features).train_dataset(4, seed=1).take(160)]
    assert np.mean(spreads) < 3 < np.ptp(features["input_mask"].sum(axis=1))


def test_short_batches_do_not_come_first():
    found = [lengths(batch).mean() for batch in examples_of(make_features(640)).train_dataset(4, seed=1).take(160)]
    assert abs(np.corrcoef(found, np.arange(160))[0, 1]) < 0.3


def test_batches_of_one_shape_hold_the_same_examples():
    features = make_features(20)
    short = numbers(examples_of(features).train_dataset(4, seed=1), 10)
    fixed = examples_of(features, LENGTH).train_dataset(4, seed=1)
    assert numbers(fixed, 10) == short
    assert fixed.element_spec["input_ids"].shape == [4, LENGTH]


def test_resumed_run_goes_on_where_it_stopped():
    examples = examples_of(make_features(57))
    whole = numbers(examples.train_dataset(3, seed=1), 25)
    for step in (1, 5, 20):
        assert numbers(examples.train_dataset(3, seed=1, start_step=step), 25 - step) == whole[step:]


def test_order_follows_from_the_seed():
    examples = examples_of(make_features(20))
    tf.keras.utils.set_random_seed(1)
    first = numbers(examples.train_dataset(4, seed=1), 6)
    tf.keras.utils.set_random_seed(2)
    assert numbers(examples.train_dataset(4, seed=1), 6) == first
    assert numbers(examples.train_dataset(4, seed=2), 6) != first


def test_batch_may_be_larger_than_the_data():
    (batch,) = numbers(examples_of(make_features(4)).train_dataset(8, seed=1), 1)
    assert sorted(batch) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_evaluation_has_every_example_once_and_padding_without_weight():
    features = make_features(7)
    examples = examples_of(features)
    batches = list(examples.eval_dataset(3))
    assert [batch["input_ids"].shape[0] for batch in batches] == [3, 3, 3]
    weights = np.concatenate([batch["example_weights"] for batch in batches])
    np.testing.assert_array_equal(weights, [1.0] * 7 + [0.0] * 2)
    found = np.concatenate([batch["label_ids"] for batch in batches])
    np.testing.assert_array_equal(found[:7], features["label_ids"][examples.order_of_evaluation])
    rows = np.concatenate([batch["input_ids"][:, 0] for batch in batches])[:7].tolist()
    assert rows == examples.order_of_evaluation.tolist() and sorted(rows) == list(range(7))


def test_mean_length_is_what_batches_hold():
    examples = examples_of(make_features(640))
    found = [batch["input_ids"].shape[1] for batch in examples.eval_dataset(4)]
    assert abs(examples.mean_length(4) - np.mean(found)) <= 1


def test_few_lengths_are_powers_of_two_that_cut_nothing_off():
    lengths = np.arange(1, 101)
    mask = np.arange(100) < lengths[:, None]
    features = {"input_ids": mask * lengths[:, None], "input_mask": mask.astype(np.int32)}
    spec = {name: tf.TensorSpec([None, None], tf.int32) for name in features}
    examples = Examples(features, spec, has_few_lengths=True)
    batches = list(examples.eval_dataset(5))
    assert {batch["input_ids"].shape[1] for batch in batches} == {32, 64, 100}
    assert sum(batch["input_mask"].numpy().sum() for batch in batches) == mask.sum()
    assert examples.mean_length(5) == int(np.mean([32] * 6 + [64] * 6 + [100] * 8))


VOCABULARY = Vocabulary(["[PAD]", *(f"piece{number}" for number in range(50)), *SPECIAL_TOKENS[1:]])
MASK_ID = VOCABULARY.id_of(MASK)


def test_share_of_pieces_is_hidden_and_no_special_token():
    ids = np.random.default_rng(0).integers(0, len(VOCABULARY), [100, 200]).astype(np.int32)
    batch = {"input_ids": tf.constant(ids), "label_ids": tf.zeros([100], tf.int32)}
    changed = TokenDropout(0.3, VOCABULARY)(batch, tf.constant([1, 2], tf.int64))
    found = changed["input_ids"].numpy()
    is_special = np.isin(ids, [VOCABULARY.id_of(token) for token in SPECIAL_TOKENS])
    np.testing.assert_array_equal(found[is_special], ids[is_special])
    is_hidden = (found == MASK_ID)[~is_special]
    # Four standard deviations of a mean over some 18,000 draws.
    assert abs(is_hidden.mean() - 0.3) < 4 * np.sqrt(0.3 * 0.7 / is_hidden.size)
    np.testing.assert_array_equal(found[~is_special][~is_hidden], ids[~is_special][~is_hidden])
    assert changed["label_ids"] is batch["label_ids"]


def batches(start_step=0, seed=1, max_seq_length=None):
    features = make_features(8)
    features["input_ids"] = np.where(features["input_mask"] == 1, 1 + np.arange(LENGTH), 0).astype(np.int32)
    task = Classification(tiny_config(max_position_embeddings=LENGTH))
    dataset = Examples(features, task.batch_spec(max_seq_length)).train_dataset(
        4, seed, start_step, TokenDropout(0.5, VOCABULARY)
    )
    return [batch["input_ids"].numpy().tolist() for batch in dataset.take(6 - start_step)]


def test_other_pieces_are_hidden_each_time():
    rows = [str(row) for batch in batches() for row in batch if sum(piece > 0 for piece in row) > 12]
    assert len(rows) > 6 and len(set(rows)) == len(rows)


def test_what_is_hidden_follows_from_the_seed_and_the_step():
    whole = batches()
    assert batches() == whole
    assert batches(start_step=4) == whole[4:]
    assert batches(seed=2) != whole


def test_rate_out_of_range_and_vocabulary_without_a_mask_are_refused():
    for rate in (-0.1, 1.0):
        with pytest.raises(InputError, match="`token_dropout` must be at least 0 and less than 1"):
            TokenDropout(rate, VOCABULARY)
    with pytest.raises(InputError, match=r"has no \[MASK\]"):
        TokenDropout(0.1, Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]"]))


BATCH_SIZE, NUM_STEPS = 16, 3
NUM_EXAMPLES = BATCH_SIZE * NUM_STEPS
WITHOUT_DROPOUT = dict.fromkeys(["hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"], 0.0)
CONFIG = tiny_config(50, max_position_embeddings=LENGTH, **WITHOUT_DROPOUT)


def features_of(task):
    """Returns made-up examples with what a task's batches hold; a third of them are short."""
    draws, spec, features = np.random.default_rng(1), task.batch_spec(None), make_features(NUM_EXAMPLES)
    inputs = {name: features[name] for name in ("input_ids", "input_mask", "segment_ids")}
    for values in inputs.values():
        values[::3, 8:] = 0
    inputs["input_ids"] %= CONFIG.vocab_size
    position = draws.integers(0, 8, NUM_EXAMPLES).astype(np.int32)
    answers = {
        "label_ids": draws.integers(0, 2, [NUM_EXAMPLES, LENGTH]).astype(np.int32),
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
@pytest.mark.parametrize("name", ["squad_v2", "tag"])
def test_batches_in_parts_give_the_weights_of_whole_ones(name):
    task = TASKS[name](CONFIG)
    whole, in_parts = trained(task, 1), trained(task, 4)
    for name, values in whole.items():
        np.testing.assert_allclose(in_parts[name], values, atol=1e-6, rtol=0, err_msg=name)
