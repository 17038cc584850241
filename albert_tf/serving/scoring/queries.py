"""The inputs of a model to score a text: of masked models one a token, of causal ones one for all of them.

Masked models have a pseudo-log-likelihood: each token is masked and read off the rest (Salazar et al. 2020). A token of
a word that is cut into several is all too easily read off the others, so by default the later tokens of its word are
masked with it (PLL-word-l2r; Kauf and Ivanova 2023). A word is that of whole-word masking: a string between spaces,
without the punctuation, of which each mark is a word.
"""

import collections.abc
import itertools
import typing

import numpy as np

from albert_tf.serving.scoring.likelihood import Query
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP

WITHIN_WORD, BY_PIECE = METHODS = ("within_word", "piece")


class Pieces(typing.NamedTuple):
    """A text, cut into pieces."""

    ids: np.ndarray  # int32 [n], without special tokens around them
    word_ends: np.ndarray  # where the word ends that each piece is of, int [n]
    is_scored: np.ndarray  # which of them count, bool [n]


def cut_texts(tokenizer: Tokenizer, texts: list[str]) -> list[Pieces]:
    """Returns the pieces of texts; all of them count, but for special tokens that a tokenizer lets stand in a text."""
    vocabulary = tokenizer.vocabulary
    ids, starts = tokenizer.encode_with_word_starts(texts)
    special = [vocabulary.id_of(token) for token in (PAD, CLS, SEP, MASK) if token in vocabulary]
    is_special = np.isin(ids.flat_values.numpy(), special)
    borders = ids.row_splits.numpy()
    return [
        Pieces(ids.flat_values.numpy()[begin:end], _word_ends(starts[begin:end]), ~is_special[begin:end])
        for begin, end in itertools.pairwise(borders)
    ]


def masked_queries(
    pieces: Pieces, tokenizer: Tokenizer, max_seq_length: int, method: str = WITHIN_WORD
) -> collections.abc.Iterator[Query]:
    """Yields an input for each token that counts, in which it is masked, maybe with the later tokens of its word.

    Of a text that is longer than the model reads, it stands in the middle of as many tokens as there is room for.
    """
    vocabulary, count = tokenizer.vocabulary, len(pieces.ids)
    cls, sep, mask = (vocabulary.id_of(token) for token in (CLS, SEP, MASK))
    room = max_seq_length - vocabulary.num_special(1)
    for place in np.flatnonzero(pieces.is_scored):
        begin = max(0, min(place - room // 2, count - room))
        ids = np.concatenate([[cls], pieces.ids[begin : begin + room], [sep]]).astype(np.int32)
        end = pieces.word_ends[place] if method == WITHIN_WORD else place + 1
        ids[1 + place - begin : 1 + min(end - begin, room)] = mask
        yield Query(ids, np.array([1 + place - begin]), pieces.ids[[place]])


def causal_queries(pieces: Pieces, tokenizer: Tokenizer, max_seq_length: int) -> collections.abc.Iterator[Query]:
    """Yields the inputs of a causal model: one, or several of a text that is longer than it reads.

    As in pre-training a text begins behind [CLS], off which its first token is read. The [SEP] behind it does not
    count: that it ends a document says nothing of a sentence. Each further input of a longer text begins with [CLS]
    too; the tokens that the input before did not reach count, behind at least half as many as the model reads.
    """
    cls, count = tokenizer.vocabulary.id_of(CLS), len(pieces.ids)
    begin = done = 0
    while done < count:
        end = min(begin + max_seq_length, count)
        labels = pieces.ids[begin:end]
        positions = np.flatnonzero(pieces.is_scored[begin:end] & (np.arange(begin, end) >= done))
        yield Query(np.concatenate([[cls], labels[:-1]]).astype(np.int32), positions, labels[positions])
        begin, done = begin + (max_seq_length + 1) // 2, end


def _word_ends(starts):
    """Returns where the word of each piece ends, int [n], given which pieces start one."""
    borders = np.append(np.flatnonzero(starts), len(starts))
    return borders[np.searchsorted(borders, np.arange(len(starts)), side="right")]
