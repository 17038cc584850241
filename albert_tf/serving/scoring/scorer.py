"""The scores of texts: the sums of the log-probabilities of their tokens."""

import itertools
import typing
import unicodedata

import numpy as np

from albert_tf.errors import InputError
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.serving.scoring.likelihood import Likelihood
from albert_tf.serving.scoring.queries import METHODS, WITHIN_WORD, Pieces, causal_queries, masked_queries
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK


class Scorer:
    """Scores texts by one model, which tells the next token (`is_causal`) or a masked one.

    InputError if the vocabulary lacks a special token that inputs need.
    """

    def __init__(self, model: AlbertForPreTraining, tokenizer: Tokenizer, max_seq_length: int, is_causal: bool):
        tokenizer.vocabulary.require(PAD, CLS, *([] if is_causal else [SEP, MASK]))
        self._tokenizer, self._max_seq_length, self.is_causal = tokenizer, max_seq_length, is_causal
        self._likelihood = Likelihood(model, tokenizer.vocabulary, max_seq_length, reads_all_states=is_causal)

    def check_method(self, method: str | None) -> str:
        """Returns one of `METHODS`, the first by default; InputError if there is no such, or nothing is masked."""
        if self.is_causal and method is not None:
            raise InputError(
                f"`method={method}` says what is masked, but this model reads from left to right and masks "
                "nothing; leave it out"
            )
        if method not in (None, *METHODS):
            raise InputError(f"`method` must be one of {', '.join(METHODS)}. Received: {method!r}")
        return method or WITHIN_WORD

    def sums(self, texts: list[Pieces], method: str, batch_size: int) -> list[float]:
        """Returns of each text the sum of the log-probabilities of its pieces that count, in nats."""
        order = np.argsort([len(text.ids) for text in texts], kind="stable")
        queries = ((row, query) for row in order for query in self._queries(texts[row], method))
        asked, answered = itertools.tee(queries)
        found = self._likelihood.compute((query for _, query in asked), batch_size)
        sums = np.zeros(len(texts))
        for (row, _), log_probabilities in zip(answered, found):
            sums[row] += log_probabilities.sum()
        return sums.tolist()

    def score(
        self, texts: list[str], pieces: list[Pieces], method: str, batch_size: int
    ) -> list[dict[str, typing.Any]]:
        """Returns the scores of each text."""
        unknown = self._tokenizer.vocabulary.id_of(UNK)
        found = []
        for text, cut, score in zip(texts, pieces, self.sums(pieces, method, batch_size)):
            num_characters = count_characters(text)
            found.append(
                {
                    "score": score,
                    "per_character": score / num_characters,
                    "num_characters": num_characters,
                    "num_pieces": int(cut.is_scored.sum()),
                    "num_unknown": int((cut.ids == unknown).sum()),
                }
            )
        return found

    def _queries(self, pieces, method):
        if self.is_causal:
            return causal_queries(pieces, self._tokenizer, self._max_seq_length)
        return masked_queries(pieces, self._tokenizer, self._max_seq_length, method)


def count_characters(text: str) -> int:
    """Returns how many characters a text has, with Hangul composed and without spaces at its ends.

    No tokenizer has a say, so that models of different vocabularies can be compared.
    """
    return len(unicodedata.normalize("NFC", text.strip()))


def check_scorable(tokenizer: Tokenizer, texts: list[str]) -> None:
    """Raises InputError if a text has a mask or nothing to score: it is empty, or the tokenizer removes all of it."""
    for number, text in enumerate(texts):
        if MASK in text:
            raise InputError(
                f"input {number} contains {MASK}, but only whole texts are scored; use fill_mask "
                "to find what fits there"
            )
        # A letter or a number is never removed, so most texts need not be cut to be sure.
        if not any(map(str.isalnum, text)) and not len(tokenizer.encode_ids([text]).flat_values):
            raise InputError(f"input {number} is empty, so there is nothing to score; leave it out")
