"""Word embeddings from counts: against loops, and the matrix that they are a factor of."""

import itertools

import numpy as np
import pytest

from albert_tf.runs.cooccurrence import count_pairs, factorize

VOCAB_SIZE, SPECIAL_IDS = 12, np.array([0, 1, 2])


def random_batches(num_batches=3, seed=0):
    generator = np.random.default_rng(seed)
    for _ in range(num_batches):
        ids = generator.integers(0, VOCAB_SIZE, [7, 20])
        sentences = np.sort(generator.integers(0, 4, [7, 20]), axis=1)
        yield ids, generator.random([7, 20]) < 0.8, sentences


def count_slowly(batches, num_contexts):
    counts = np.zeros([VOCAB_SIZE, num_contexts])
    for ids, is_text, sentences in batches:
        for row, (row_ids, row_is_text) in enumerate(zip(ids, is_text)):
            for sentence in range(4):
                pieces = set(row_ids[row_is_text & (sentences[row] == sentence)].tolist()) - set(SPECIAL_IDS.tolist())
                for first, second in itertools.permutations(pieces, 2):
                    if second < num_contexts:
                        counts[first, second] += 1
    return counts


@pytest.mark.parametrize("num_contexts", [VOCAB_SIZE, 8])
@pytest.mark.parametrize("pairs_per_update", [5, 1 << 22])
def test_sentences_with_both_pieces_are_counted(monkeypatch, num_contexts, pairs_per_update):
    monkeypatch.setattr("albert_tf.runs.cooccurrence._PAIRS_PER_UPDATE", pairs_per_update)
    counts = count_pairs(random_batches(), VOCAB_SIZE, SPECIAL_IDS, num_contexts)
    np.testing.assert_array_equal(counts, count_slowly(random_batches(), num_contexts))


def test_pairs_that_fill_the_last_update_are_counted(monkeypatch):
    monkeypatch.setattr("albert_tf.runs.cooccurrence._PAIRS_PER_UPDATE", 2)
    ids = np.array([[5, 6]])  # each of the two makes two pairs, one of them with itself
    counts = count_pairs([(ids, ids > 0, np.zeros_like(ids))], VOCAB_SIZE, SPECIAL_IDS)
    assert (counts[5, 6], counts[6, 5], counts.sum()) == (1, 1, 2)


def test_no_text_counts_nothing():
    ids = np.zeros([2, 5], np.int64)
    assert not count_pairs([(ids, ids == 1, ids)], VOCAB_SIZE, SPECIAL_IDS).any()


def mutual_information(counts):
    """Returns the logarithm of how much more often than by chance two pieces meet, one added to both numbers."""
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    return np.log((counts + 1) / (expected + 1))


def topic_counts(num_pieces=40, num_topics=4, seed=0):
    """Returns counts of pieces of which every fourth one belongs to one topic."""
    generator = np.random.default_rng(seed)
    same = np.equal.outer(np.arange(num_pieces) % num_topics, np.arange(num_pieces) % num_topics)
    counts = generator.poisson(np.where(same, 60, 6)).astype(np.float32)
    counts = np.triu(counts, 1)
    return counts + counts.T


def test_embeddings_are_a_root_of_the_mutual_information():
    counts = topic_counts()
    embeddings = factorize(counts, 40, stddev=0.05)
    information = mutual_information(counts.astype(np.float64))
    root_of_square = np.linalg.svd(information)
    expected = root_of_square.U @ np.diag(root_of_square.S) @ root_of_square.U.T
    products = embeddings.astype(np.float64) @ embeddings.T
    np.testing.assert_allclose(products / products.std(), expected / expected.std(), atol=1e-3)


def test_pieces_of_one_topic_are_alike_and_all_numbers_alike_large():
    embeddings = factorize(topic_counts(), 8, stddev=0.05)
    assert embeddings.dtype == np.float32 and embeddings.shape == (40, 8)
    assert embeddings.std() == pytest.approx(0.05, rel=1e-3)
    directions = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    cosines = directions @ directions.T
    same = np.equal.outer(np.arange(40) % 4, np.arange(40) % 4)
    assert np.quantile(cosines[same], 0.1) > np.quantile(cosines[~same], 0.9)
    assert embeddings.std(axis=0).max() < 3 * embeddings.std(axis=0).min()


def test_pieces_that_do_not_occur_get_zeros_and_others_as_without_them():
    counts = topic_counts()
    padded = np.pad(counts, [[2, 3], [2, 3]])
    embeddings = factorize(padded, 8, stddev=0.05)
    assert not embeddings[:2].any() and not embeddings[-3:].any()
    alone = factorize(counts, 8, stddev=0.05)
    products = [matrix @ matrix.T for matrix in (embeddings[2:-3], alone)]
    assert np.corrcoef(*map(np.ravel, products))[0, 1] > 0.99


def test_more_numbers_than_pieces_is_no_problem():
    embeddings = factorize(topic_counts(num_pieces=6, num_topics=2), 16, stddev=0.05)
    assert embeddings.shape == (6, 16) and np.isfinite(embeddings).all() and embeddings.any()
    assert not factorize(np.zeros([6, 6], np.float32), 4, stddev=0.05).any()
