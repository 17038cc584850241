"""Initial word embeddings, from counts of the pieces that occur in one sentence.

A model finds out slowly which pieces mean the same, a count finds out at once. The pointwise mutual information of two
pieces is factorised; word2vec's embeddings are such a factorisation, too (Levy and Goldberg 2014, section 3.1). Levy et
al. 2015, section 3.3, says why the singular values are taken to the power of one half.
"""

import collections.abc
import itertools

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.objectives.language_models import original_ids
from albert_tf.pretraining_data.input_pipeline import parse
from albert_tf.pretraining_data.shards import ShardSet
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

_MOST_PIECES = 8_000_000  # more say little that is new
_MOST_CONTEXTS = 8_000  # a matrix of all pairs would not fit in memory
_WINDOW = 32  # pieces that count as a sentence, where it is not known where sentences end
_EXAMPLES_PER_BATCH = 2_048
_PAIRS_PER_UPDATE = 1 << 22
# Added to what was counted and to what is expected, so that rare pairs say little.
_SMOOTHING = 1.0
_OVERSAMPLING, _POWER_ITERATIONS = 16, 4


def cooccurrence_embeddings(shards: ShardSet, vocab_size: int, embedding_size: int, stddev: float) -> np.ndarray:
    """Returns embeddings, float32 [V, E], of the first 8 million pieces of shards; zeros where nothing is counted."""
    if shards.tokenizer is None:
        raise InputError(
            "`word_embeddings=cooccurrence`: there is no tokenizer.json beside the shards; make them again"
        )
    vocabulary = shards.tokenizer.vocabulary
    special_ids = np.array([vocabulary.id_of(token) for token in SPECIAL_TOKENS if token in vocabulary])
    counts = count_pairs(_read_sentences(shards), vocab_size, special_ids)
    return factorize(counts, embedding_size, stddev)


def begin_with_counts(model: tf.keras.Model, shards: ShardSet) -> str:
    """Assigns an `AlbertForPreTraining` the counted embeddings, as an `initialize` of `TrainingRun.train`."""
    config, table = model.config, model.encoder.embeddings.word_embeddings
    counted = cooccurrence_embeddings(shards, config.vocab_size, config.embedding_size, config.initializer_range)
    is_counted = counted.any(axis=1)
    table.assign(np.where(is_counted[:, None], counted, table.numpy()))
    return f"word embeddings: counted for {is_counted.sum():,} of {len(counted):,} pieces, random for the others"


def _read_sentences(shards):
    """Yields ids, whether each is text, and the number of its sentence in its example, all [N, S]."""
    options = shards.train_options
    batches = _records(shards).batch(_EXAMPLES_PER_BATCH)

    def read(serialized):
        features = parse(serialized, options)
        return {**features, "input_ids": original_ids(features)} if options.is_static else features

    batches = batches.map(read, num_parallel_calls=tf.data.AUTOTUNE)
    num_pieces = 0
    for features in batches.as_numpy_iterator():
        ids, is_text = features["input_ids"], features["input_mask"] == 1
        if separators := shards.packing.separators_of_sentence:
            changes = np.diff(features["segment_ids"], axis=1, prepend=0) != 0
            sentences = np.cumsum(changes, axis=1) // separators
        else:
            sentences = np.broadcast_to(np.arange(ids.shape[1]) // _WINDOW, ids.shape)
        yield ids, is_text, sentences
        num_pieces += int(is_text.sum())
        if num_pieces >= _MOST_PIECES:
            return


def _records(shards):
    """Returns the records of the training shards; those of several languages take turns."""
    if len(shards.sources) < 2:
        return tf.data.TFRecordDataset(shards.train_paths)
    places = shards.sources_of_shards
    paths = [[path for path, place in zip(shards.train_paths, places) if place == source] for source in set(places)]
    turns = tf.data.Dataset.range(len(paths)).repeat()
    # The longer ones go on where another has ended.
    return tf.data.Dataset.choose_from_datasets(list(map(tf.data.TFRecordDataset, paths)), turns, False)


def count_pairs(
    batches: collections.abc.Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]],
    vocab_size: int,
    special_ids: np.ndarray,
    most_contexts: int = _MOST_CONTEXTS,
) -> np.ndarray:
    """Counts the sentences in which each two pieces occur, float32 [V, C]; no piece occurs with itself.

    A batch is int ids, bool which of them are text, and int numbers of sentences within each row, [N, S] each. The C
    pieces that the others are counted with are those with the lowest ids, which are the most frequent ones in a
    vocabulary as `build_vocab.py` makes it.
    """
    num_contexts = min(vocab_size, most_contexts)
    counts = np.zeros([vocab_size, num_contexts], np.float32)
    is_special = np.isin(np.arange(vocab_size), special_ids)
    for ids, is_text, sentences in batches:
        rows = np.broadcast_to(np.arange(len(ids))[:, None], ids.shape)
        is_counted = is_text & ~is_special[ids]
        keys = (rows.astype(np.int64) * ids.shape[1] + sentences) * vocab_size + ids
        sentence, piece = np.divmod(np.unique(keys[is_counted]), vocab_size)
        for first, second in _pairs(sentence, piece):
            is_pair = (first != second) & (second < num_contexts)
            np.add.at(counts.reshape(-1), first[is_pair] * num_contexts + second[is_pair], np.float32(1))
    return counts


def _pairs(sentence, piece):
    """Yields the ordered pairs of pieces in one sentence, some at a time, from lists that are sorted by sentence."""
    _, begins, sizes = np.unique(sentence, return_index=True, return_counts=True)
    partners, begins = np.repeat(sizes, sizes), np.repeat(begins, sizes)
    ends = np.cumsum(partners)
    limits = np.arange(0, ends[-1] + _PAIRS_PER_UPDATE, _PAIRS_PER_UPDATE) if len(ends) else []
    borders = np.unique(np.searchsorted(ends, limits, "right"))
    for low, high in itertools.pairwise(borders):
        some = partners[low:high]
        first = np.repeat(piece[low:high], some)
        offsets = np.arange(some.sum()) - np.repeat(np.cumsum(some) - some, some)
        yield first, piece[np.repeat(begins[low:high], some) + offsets]


def factorize(counts: np.ndarray, embedding_size: int, stddev: float) -> np.ndarray:
    """Returns float32 [V, E], the left singular vectors of the mutual information, times roots of singular values.

    They are turned at random, so that no number of an embedding weighs more than another. Counts are float32 [V, C].
    """
    generator = np.random.Generator(np.random.PCG64(0))
    row_sums, column_sums = counts.sum(axis=1, dtype=np.float64), counts.sum(axis=0, dtype=np.float64)
    expected = (row_sums[:, None] / max(row_sums.sum(), 1.0)).astype(np.float32) * column_sums.astype(np.float32)
    information = np.log((counts + _SMOOTHING) / (expected + _SMOOTHING))
    occurs = row_sums > 0
    information[~occurs], information[:, column_sums == 0] = 0, 0

    rank = min(embedding_size, *counts.shape)
    vectors, values = _left_singular(information, rank, generator)
    embeddings = np.zeros([len(counts), embedding_size])
    embeddings[:, :rank] = vectors * np.sqrt(values)
    basis, _ = np.linalg.qr(generator.normal(size=(embedding_size, embedding_size)))
    embeddings = embeddings @ basis * occurs[:, None]
    deviation = embeddings[occurs].std() if occurs.any() else 0.0
    return (embeddings * (stddev / deviation if deviation else 0.0)).astype(np.float32)


def _left_singular(matrix, rank, generator):
    """Returns the first singular vectors and values, by power iteration (Halko et al. 2011, algorithm 4.4)."""
    size = min(rank + _OVERSAMPLING, *matrix.shape)
    basis = generator.normal(size=(matrix.shape[1], size)).astype(np.float32)
    basis, _ = np.linalg.qr(matrix @ basis)
    for _ in range(_POWER_ITERATIONS):
        basis, _ = np.linalg.qr(matrix.T @ basis)
        basis, _ = np.linalg.qr(matrix @ basis)
    small_vectors, values, _ = np.linalg.svd(basis.T @ matrix, full_matrices=False)
    vectors = (basis @ small_vectors)[:, :rank]
    # The sign of a singular vector is no one's choice but the library's.
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(rank)])
    return vectors, values[:rank]
