"""From what a model says of the pieces of windows to the best spans of the text."""

import collections.abc
import dataclasses
import typing

import numpy as np

from albert_tf.finetuning.question_answering.windows import spans_with_most_context
from albert_tf.finetuning.task import Features


@dataclasses.dataclass(frozen=True)
class SpanOptions:
    """Which spans of a text can be an answer.

    Attributes:
        n_best_size: How many are kept of each question.
        max_answer_length: Tokens of the longest.
        start_n_top: With the conditional head, how many first tokens are looked at in each window.
        end_n_top: With the conditional head, how many last tokens are looked at for each first one.
    """

    n_best_size: int = 20
    max_answer_length: int = 30
    start_n_top: int = 5
    end_n_top: int = 5


class Spans(typing.NamedTuple):
    """Spans of pieces of one window, each array [C]."""

    firsts: np.ndarray  # Counted from the first of the text in the window.
    lasts: np.ndarray  # Themselves part of the span.
    scores: np.ndarray  # The higher the better.


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A span of a text, in characters, that may be the answer, `end` behind it; the higher its score the better."""

    begin: int
    end: int
    text: str
    score: float


def best_spans(start_scores: np.ndarray, end_scores: np.ndarray, is_allowed: np.ndarray, n_best_size: int) -> Spans:
    """Returns the best spans of a window by the sum of two scores [L]: how well a piece begins and ends the answer."""
    # `is_allowed` [L, A] says whether the span of pieces i to i + j can be chosen.
    firsts, lengths = np.nonzero(is_allowed)
    lasts = firsts + lengths
    scores = start_scores[firsts] + end_scores[lasts]
    if len(scores) > n_best_size:
        best = np.argpartition(-scores, n_best_size)[:n_best_size]
        firsts, lasts, scores = firsts[best], lasts[best], scores[best]
    return Spans(firsts, lasts, scores)


def best_candidates(
    contexts: list[str],
    features: Features,
    find_spans: collections.abc.Callable[[int, np.ndarray], Spans],
    options: SpanOptions,
) -> list[list[Candidate]]:
    """Returns the best spans of each question's text over all of its windows, the best first, each text once."""
    # `find_spans` returns the best of a window, given its row and, bool [L, A], which of its spans can be chosen there.
    results = []
    for context, rows in zip(contexts, rows_of_questions(features, len(contexts))):
        begins, offsets = features["context_begins"][rows], features["context_offsets"][rows]
        lengths = np.array([len(spans) for spans in offsets])
        candidates = []
        for row, is_allowed in zip(rows, spans_with_most_context(begins, lengths, options.max_answer_length)):
            candidates += _candidates(context, features["context_offsets"][row], find_spans(row, is_allowed))
        results.append(_without_repeats(candidates, options.n_best_size))
    return results


def rows_of_questions(features: Features, num_questions: int) -> list[np.ndarray]:
    """Returns the rows of each question's windows."""
    borders = np.searchsorted(features["question_indices"], np.arange(1, num_questions))
    return np.split(np.arange(len(features["question_indices"])), borders)


def _candidates(context, offsets, spans):
    begins, ends = offsets[spans.firsts, 0].tolist(), offsets[spans.lasts, 1].tolist()
    return [
        Candidate(begin, end, context[begin:end], score)
        for begin, end, score in zip(begins, ends, spans.scores.tolist())
        if begin < end  # a mark may be a piece without characters
    ]


def _without_repeats(candidates, n_best_size):
    """Returns the best candidate of each text, the best first."""
    kept = {}
    for candidate in sorted(candidates, key=lambda each: -each.score):
        kept.setdefault(candidate.text, candidate)
        if len(kept) == n_best_size:
            break
    return list(kept.values())
