"""Pieces that are encoded one by one, with the keys and values of those before, as in the whole text at once."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.modeling import AlbertForPreTraining

GPT = {"norm_position": "pre", "language_model_head": "tied", "embedding_size": 16, "type_vocab_size": 0}
FAMILIES = {
    "ALBERT, one block": {"num_hidden_layers": 3},
    "groups": {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2},
    "attention shared alone": {"sharing": "attention"},
    "BERT": {"sharing": "none", "embedding_size": 16, "hidden_act": "gelu_erf"},
    "GPT-2": {"sharing": "none", **GPT},
    "GPT-2, one block": GPT,
    "positions as RoBERTa's": {"position_offset": 3, "type_vocab_size": 1},
}
LENGTH = 9


@pytest.mark.parametrize("changes", FAMILIES.values(), ids=FAMILIES)
def test_pieces_one_by_one_give_what_the_whole_text_does(tiny_config, randomized, changes):
    model = randomized(AlbertForPreTraining(tiny_config.replace(pooler=False, is_causal=True, **changes)))
    ids = tf.constant(np.random.default_rng(1).integers(4, 30, [2, LENGTH]), tf.int32)
    expected = model({"input_ids": ids})["masked_lm_logits"].numpy()
    table = tf.convert_to_tensor(model.encoder.embeddings.word_embeddings)
    # The rows are not at the same place: of the second more is known.
    begins = np.array([2, 5])
    caches = model.encoder.empty_caches(2, LENGTH)
    states, caches = model.encoder.extend(ids[:, :5], tf.tile(tf.range(5)[None], [2, 1]), caches)
    found = model.masked_lm_head(states, table).numpy()
    np.testing.assert_allclose(found, expected[:, :5], atol=1e-4)
    for step in range(LENGTH - 5):
        columns = tf.constant(begins + step, tf.int32)[:, None]
        states, caches = model.encoder.extend(tf.gather(ids, columns, batch_dims=1), columns, caches)
        found = model.masked_lm_head(states, table).numpy()[:, 0]
        np.testing.assert_allclose(found, expected[[0, 1], begins + step], atol=1e-4)


def test_what_was_written_behind_a_piece_is_not_seen(tiny_config, randomized):
    """So the pieces that fill a batch up, which the first call writes, need no mask."""
    model = randomized(AlbertForPreTraining(tiny_config.replace(pooler=False, is_causal=True)))
    ids = tf.constant([[5, 6, 7, 8, 9, 10]])
    columns = tf.range(6)[None]
    encoder = model.encoder
    _, caches = encoder.extend(ids, columns, encoder.empty_caches(1, 6))
    states, _ = encoder.extend(tf.constant([[11]]), tf.constant([[2]]), caches)
    expected = encoder({"input_ids": tf.constant([[5, 6, 11]])})["sequence_output"][:, 2:]
    np.testing.assert_allclose(states, expected, atol=1e-5)
    other, _ = encoder.extend(tf.constant([[11]]), tf.constant([[3]]), caches)
    assert np.abs(other - expected).max() > 1e-2
