"""Backends whose tokenizer is one of ours, so that they can be asked about pieces and not only for predictions."""

import collections.abc

import numpy as np
import tensorflow as tf

from albert_tf.asking.answers import FILL_MASK, LENGTHS, PIECES, Columns
from albert_tf.asking.backend import NONE_UNKNOWN, Backend, Inputs, Unknown
from albert_tf.asking.vectors import groups_of_one_length
from albert_tf.text_encoding import replace_halves
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.unknown_words import find_unknown_words
from albert_tf.tokenization.vocabulary import MASK, UNK


class TokenizerBackend(Backend):
    """A backend that can be asked about tokens, too.

    Attributes:
        hidden_size: Of the states.
        is_causal: Whether tokens see only those before them.
        most_guesses: How many tokens it can name for each mask.
    """

    tokenizer: Tokenizer
    hidden_size: int
    is_causal: bool
    most_guesses: int

    def guess(self, texts: list[str], top_k: int) -> Columns:
        """Returns the columns of `FILL_MASK`, with at least `top_k` guesses for each mask."""
        return self.compute(FILL_MASK, {"text": texts})

    def encode(self, texts: list[str]) -> collections.abc.Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yields rows of some of N texts, int [T], the states of their tokens float32 [T, S, H], and the mask int32."""
        for rows in groups_of_one_length([len(text) for text in texts]):
            found = self.compute(PIECES, {"text": [texts[row] for row in rows]})
            states = found["embeddings"]
            yield rows, states, (np.arange(states.shape[1]) < found[LENGTHS][:, None]).astype(np.int32)

    def count(self, inputs: list[tuple[str, ...]]) -> tuple[int, Unknown]:
        """Returns how many inputs are longer than what is read of them, and what `find_unknown_words` does."""
        if not inputs:
            return 0, NONE_UNKNOWN
        lengths, holds_unknown = np.zeros(len(inputs), int), np.zeros(len(inputs), bool)
        for column in zip(*inputs):
            ids = self.tokenizer.encode_ids(list(column))
            lengths += ids.row_lengths().numpy()
            is_unknown = ids.flat_values.numpy() == self.tokenizer.vocabulary.id_of(UNK)
            holds_unknown[ids.value_rowids().numpy()[is_unknown]] = True
        return self._num_longer(lengths, len(inputs[0])), find_unknown_words(self.tokenizer, inputs, holds_unknown)

    def count_masked(self, texts: list[str]) -> tuple[int, Unknown]:
        """Likewise, of texts with masks, each of which is a piece."""
        if not texts:
            return 0, NONE_UNKNOWN
        parts = [tuple(text.split(MASK)) for text in texts]
        owners = np.repeat(np.arange(len(texts)), [len(each) for each in parts])
        lengths = self.tokenizer.encode_ids([part for each in parts for part in each]).row_lengths().numpy()
        return self._num_longer(np.bincount(owners, lengths + 1) - 1, 1), find_unknown_words(self.tokenizer, parts)

    def _num_longer(self, lengths, num_texts):
        room = self.max_seq_length - self.tokenizer.vocabulary.num_special(num_texts)
        return int(np.count_nonzero(lengths > room))


def string_tensors(inputs: Inputs) -> dict[str, tf.Tensor]:
    """Returns inputs as a graph takes them, string [N] each; half characters are replaced."""
    return {
        name: tf.constant(
            [text if isinstance(text, bytes) else replace_halves(text).encode() for text in texts],
            tf.string,
            [len(texts)],
        )
        for name, texts in inputs.items()
    }
