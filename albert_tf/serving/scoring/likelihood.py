"""The probabilities of tokens to a model, computed in batches of few shapes.

An input is padded to one of a few lengths, and the last batch of each length to as many rows as the others. So what is
compiled for a shape serves all texts, and the score of a text does not depend on the texts beside it.

python -m benchmarks.scoring_speed     (pieces a second, and how many times those of one pass for each piece)
"""

import collections.abc
import itertools
import typing

import numpy as np
import tensorflow as tf

from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.kernels.output_positions import with_first_position
from albert_tf.tokenization.vocabulary import PAD, Vocabulary

# Between a power of two and the next there is one length more, so that at most a third of an input is padding.
_SHORTEST = 16
# Of long inputs so many pieces are computed at once, in fewer rows.
_PIECES_AT_ONCE = 16_384


class Query(typing.NamedTuple):
    """Pieces that a model is asked about, in one input."""

    ids: np.ndarray  # the input, int32 [n], special tokens included
    positions: np.ndarray  # where in it the states stand that the pieces are read off, int [p]
    labels: np.ndarray  # the pieces, int [p]


class Likelihood:
    """Computes the logarithms of the probabilities of tokens.

    `reads_all_states` says that queries have many positions, as those of causal models; else each has one.
    """

    def __init__(
        self, model: AlbertForPreTraining, vocabulary: Vocabulary, max_seq_length: int, reads_all_states: bool
    ):
        self._model, self._pad = model, vocabulary.id_of(PAD)
        self._reads_all_states = reads_all_states
        self._lengths = batch_lengths(max_seq_length)
        self._names = ("input_ids", "input_mask", "labels", *([] if reads_all_states else ["positions"]))
        specs = {name: tf.TensorSpec([None, None], tf.int32) for name in self._names}
        compute = self._compute_all if reads_all_states else self._compute_one
        self._compute = tf.function(compute, input_signature=[specs], autograph=False)

    def compute(
        self, queries: collections.abc.Iterable[Query], batch_size: int
    ) -> collections.abc.Iterator[np.ndarray]:
        """Yields the logarithms of the probabilities of each query's labels, float64 [p], in order.

        `batch_size` are computed at once, fewer of long ones; the batches are fewest where queries come by length.
        """
        lengths = self._lengths
        by_length = itertools.groupby(queries, lambda query: lengths[np.searchsorted(lengths, len(query.ids))])
        for length, same_length in by_length:
            num_rows = max(1, min(batch_size, _PIECES_AT_ONCE // length))
            while batch := list(itertools.islice(same_length, num_rows)):
                found = self._compute(self._pad_batch(batch, num_rows, length)).numpy().astype(np.float64)
                for row, query in zip(found, batch):
                    yield row[query.positions] if self._reads_all_states else row

    def _pad_batch(self, queries, num_rows, length):
        ids = np.full([num_rows, length], self._pad, np.int32)
        # In rows without a query one piece is seen, for attention to nothing has no meaning.
        mask = np.zeros([num_rows, length], np.int32)
        mask[:, 0] = 1
        num_labels = length if self._reads_all_states else 1
        positions, labels = np.zeros([2, num_rows, num_labels], np.int32)
        for row, query in enumerate(queries):
            ids[row, : len(query.ids)], mask[row, : len(query.ids)] = query.ids, 1
            if self._reads_all_states:
                labels[row, query.positions] = query.labels
            else:
                positions[row], labels[row] = query.positions, query.labels
        batch = {"input_ids": ids, "input_mask": mask, "labels": labels, "positions": positions}
        return {name: tf.constant(batch[name]) for name in self._names}

    def _compute_one(self, batch):
        inputs = {name: batch[name] for name in ("input_ids", "input_mask")}
        positions = with_first_position(batch["positions"])
        states = self._model.encoder(inputs, output_positions=positions)["sequence_output"][:, 1:]
        return self._log_probabilities((states, batch["labels"]))

    def _compute_all(self, batch):
        inputs = {name: batch[name] for name in ("input_ids", "input_mask")}
        states = self._model.encoder(inputs)["sequence_output"]
        # A text at a time, for there is a logit of each piece of the vocabulary at each of its positions.
        return tf.map_fn(self._log_probabilities, (states, batch["labels"]), fn_output_signature=tf.float32)

    def _log_probabilities(self, states_and_labels):
        states, labels = states_and_labels
        table = tf.convert_to_tensor(self._model.encoder.embeddings.word_embeddings)
        logits = self._model.masked_lm_head(states, table)
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def batch_lengths(max_seq_length: int) -> list[int]:
    """Returns the lengths that inputs are padded to, in ascending order: 16, 24, 32, 48, 64, ... and the longest."""
    lengths = []
    length = _SHORTEST
    while length < max_seq_length:
        lengths += [length, length * 3 // 2]
        length *= 2
    return [length for length in lengths if length < max_seq_length] + [max_seq_length]
