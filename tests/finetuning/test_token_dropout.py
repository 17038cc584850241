"""Hiding pieces of training texts: how many, which never, and others each time."""

import numpy as np
import pytest
import tensorflow as tf
from encoded_examples import LENGTH, make_features
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.finetuning import Classification
from albert_tf.finetuning.batches import Examples, TokenDropout
from albert_tf.tokenization import Vocabulary
from albert_tf.tokenization.vocabulary import MASK, SPECIAL_TOKENS

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


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_rate_out_of_range_is_refused(rate):
    with pytest.raises(InputError, match="`token_dropout` must be at least 0 and less than 1"):
        TokenDropout(rate, VOCABULARY)


def test_vocabulary_without_a_mask_is_refused():
    with pytest.raises(InputError, match=r"has no \[MASK\]"):
        TokenDropout(0.1, Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]"]))
