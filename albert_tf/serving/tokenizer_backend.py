"""Backends whose tokenizer is one of ours, so that they can be asked about pieces and not only for predictions."""

import numpy as np

from albert_tf.asking.answers import FILL_MASK, LENGTHS, PIECES, Columns
from albert_tf.asking.backend import Backend
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.unknown_words import find_unknown_words
from albert_tf.tokenization.vocabulary import MASK


class TokenizerBackend(Backend):
    """A backend that is asked about pieces, too.

    Attributes:
        tokenizer: What texts are encoded with.
        hidden_size: Of the states.
        is_causal: Whether pieces see only those before them.
        most_guesses: How many pieces it can name for each mask.
    """

    tokenizer: Tokenizer
    hidden_size: int
    is_causal: bool
    most_guesses: int

    def guess(self, texts: list[str], top_k: int) -> Columns:
        """Returns the columns of `FILL_MASK`, with at least `top_k` guesses for each mask."""
        return self.compute(FILL_MASK, {"text": texts})

    def encode(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the states of the pieces of N texts, float32 [N, S, H], and which are there, int32 [N, S]."""
        found = self.compute(PIECES, {"text": texts})
        states = found["embeddings"]
        return states, (np.arange(states.shape[1]) < found[LENGTHS][:, None]).astype(np.int32)

    def num_cut(self, inputs: list[tuple[str, ...]]) -> int:
        """Returns how many inputs are longer than what is read of them."""
        if not inputs:
            return 0
        lengths = sum(self.tokenizer.encode_ids(list(column)).row_lengths().numpy() for column in zip(*inputs))
        room = self.max_seq_length - self.tokenizer.vocabulary.num_special(len(inputs[0]))
        return int(np.count_nonzero(lengths > room))

    def num_cut_masked(self, texts: list[str]) -> int:
        """Likewise, of texts with masks, each of which is a piece."""
        if not texts:
            return 0
        parts = [text.split(MASK) for text in texts]
        owners = np.repeat(np.arange(len(texts)), [len(each) for each in parts])
        lengths = self.tokenizer.encode_ids([part for each in parts for part in each]).row_lengths().numpy()
        lengths = np.bincount(owners, lengths + 1) - 1
        return int(np.count_nonzero(lengths > self.max_seq_length - self.tokenizer.vocabulary.num_special(1)))

    def find_unknown(self, inputs: list[tuple[str, ...]]) -> tuple[int, list[str], list[str]]:
        """Returns what `find_unknown_words` does."""
        return find_unknown_words(self.tokenizer, inputs)
