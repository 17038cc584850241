"""The scores of texts: the sums of the log-probabilities of their tokens."""

import collections.abc
import itertools
import typing
import unicodedata

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.kernels.positions import with_first_position
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK, Vocabulary

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
    """Computes the logarithms of the probabilities of tokens, in batches of few shapes.

    An input is padded to one of a few lengths, and the last batch of each length to as many rows as the others. So what
    is compiled for a shape serves all texts, and the score of a text does not depend on the texts beside it.
    `reads_all_states` says that queries have many positions, as those of causal models; else each has one.

    python -m benchmarks.scoring_speed     (pieces a second, and how many times those of one pass for each piece)
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


# The inputs of a model to score a text: of masked models one a token, of causal ones one for all of them.
#
# Masked models have a pseudo-log-likelihood: each token is masked and read off the rest (Salazar et al. 2020). A
# token of a word that is cut into several is all too easily read off the others, so by default the later tokens of
# its word are masked with it (PLL-word-l2r; Kauf and Ivanova 2023). A word is that of whole-word masking: a string
# between spaces, without the punctuation, of which each mark is a word.

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
            raise InputError(f"`method={method}` says what is masked, but this model masks nothing; leave it out")
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
            raise InputError(f"input {number} contains {MASK}, but only whole texts are scored; use fill_mask")
        # A letter or a number is never removed, so most texts need not be cut to be sure.
        if not any(map(str.isalnum, text)) and not len(tokenizer.encode_ids([text]).flat_values):
            raise InputError(f"input {number} is empty, so there is nothing to score; leave it out")
