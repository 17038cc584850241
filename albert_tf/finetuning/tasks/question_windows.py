"""Questions and their texts as windows that a model can read: `[CLS] question [SEP] part of the text [SEP]`.

A text that is too long for one window is read in several, which overlap: a new one begins every `doc_stride` tokens.
"""

import collections.abc
import dataclasses
import typing

import numpy as np

from albert_tf.base.errors import InputError
from albert_tf.finetuning.task import CUT, Features
from albert_tf.finetuning.tasks.squad import Question
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.base import pieces_of_spans
from albert_tf.tokenization.model_inputs import cut_windows, pack_arrays
from albert_tf.tokenization.vocabulary import CLS, PAD, SEP

# The position of an answer that is not known: such a window has no part in the loss.
UNKNOWN = -1


@dataclasses.dataclass(frozen=True)
class WindowOptions:
    """How texts are cut.

    Attributes:
        doc_stride: Every how many tokens a window begins; at most half of the tokens of a text that have room in it, so
            that the border of one window stands well inside another.
        max_query_length: How many tokens of a question are read; at most half of the room for question and text.
    """

    doc_stride: int = 128
    max_query_length: int = 64


@dataclasses.dataclass(frozen=True)
class _Context:
    """A text as pieces."""

    ids: np.ndarray  # int32 [pieces].
    offsets: np.ndarray  # int32 [pieces, 2], the span of each in the text, in characters.

    def pieces_of(self, begin: int, end: int) -> tuple[int, int] | None:
        """Returns the first and the last piece (both inclusive) that hold a character of a span; None if none does."""
        (first,), (last,) = pieces_of_spans(np.array([[begin, end]]), self.offsets)
        return None if first < 0 else (int(first), int(last))


def encode_questions(
    questions: list[Question], tokenizer: Tokenizer, max_seq_length: int, options: WindowOptions
) -> Features:
    """Encodes Q questions as windows, those of one question one after the other, at least one of each.

    Returns:
        Arrays of N windows:
            `input_ids`, `input_mask`, `segment_ids` int32 [N, S].
            `start_positions`, `end_positions` int32 [N]: the positions of the tokens with the first and the last
                character of the first answer; 0, that of [CLS], where the window doesn't hold all of it; `UNKNOWN`
                where the question has no answer that is known and in its place.
            `question_indices` int32 [N], ascending.
            `context_positions` int32 [N]: the position of the window's first token of the text.
            `context_begins` int32 [N]: which token of the text that is.
            `context_offsets` object [N]: int32 [tokens, 2], where the window's tokens of the text begin and end in the
                text, in characters; the windows of a text share memory.
            `is_on_borders` bool [N]: whether the question's answer begins and ends where tokens do.
            `pieces_cut` int32 [Q]: how many tokens of each question are cut off.
    """
    vocabulary = tokenizer.vocabulary
    vocabulary.require(PAD, CLS, SEP)
    num_special = vocabulary.num_special(2)
    if max_seq_length < num_special + 2:
        raise InputError(f"max_seq_length must be at least {num_special + 2}. Received: {max_seq_length}")
    max_query_length = min(options.max_query_length, (max_seq_length - num_special) // 2)
    queries = tokenizer.encode_ids([question.question for question in questions])
    pieces_cut = np.maximum(queries.row_lengths().numpy() - max_query_length, 0).astype(np.int32)
    queries = queries[:, :max_query_length].to_list()
    contexts = _encode_contexts(questions, tokenizer)

    lengths = np.array([len(contexts[question.context].ids) for question in questions], np.int32)
    query_lengths = np.array(list(map(len, queries)), np.int32)
    rows, begins, ends = cut_windows(lengths, max_seq_length - num_special - query_lengths, options.doc_stride)
    windows, count = list(zip(rows, begins, ends)), len(rows)
    parts = [(queries[row], contexts[questions[row].context].ids[begin:end]) for row, begin, end in windows]
    features = {
        **pack_arrays(list(zip(*parts)), vocabulary, max_seq_length),
        "start_positions": np.zeros(count, np.int32),
        "end_positions": np.zeros(count, np.int32),
        "question_indices": rows,
        "context_positions": num_special - 1 + query_lengths[rows],
        "context_begins": begins.astype(np.int32),
        "context_offsets": np.empty(count, object),
        "is_on_borders": np.zeros(count, bool),
        CUT: pieces_cut,
    }
    answers = [_find_answer(question, contexts[question.context]) for question in questions]
    for row, (index, begin, end) in enumerate(windows):
        context, position = contexts[questions[index].context], features["context_positions"][row]
        features["context_offsets"][row] = context.offsets[begin:end]
        pieces, features["is_on_borders"][row] = answers[index]
        if pieces is None:
            features["start_positions"][row] = features["end_positions"][row] = UNKNOWN
        elif begin <= pieces[0] and pieces[1] < end:
            features["start_positions"][row], features["end_positions"][row] = position - begin + np.array(pieces)
    return features


def spans_with_most_context(begins: np.ndarray, lengths: np.ndarray, max_answer_length: int) -> list[np.ndarray]:
    """Returns for each window of a text which spans of its tokens have more of it around them there than elsewhere.

    Of windows that begin at `begins` [W] and hold L tokens each: W arrays, bool [L, A], of the spans of tokens i to i +
    j. Every span that lies in some window is counted in one: that where its shorter side of context is longest. (The
    original judges by the first token alone, and so misses answers that reach out of the window it then takes.)
    """
    ends = begins + lengths
    results = []
    for row, (begin, end) in enumerate(zip(begins, ends)):
        # A span of this window lies in those alone that overlap it: a long text has many more.
        is_near = (begins < end) & (ends > begin)
        is_near[row] = True
        near_begins, near_ends, near_lengths = (of[is_near, None, None] for of in (begins, ends, lengths))
        firsts = np.arange(begin, end)[:, None]
        lasts = firsts + np.arange(max_answer_length)
        before, behind = firsts - near_begins, near_ends - 1 - lasts
        # Of equal ones the longer window, as in the original.
        context = np.minimum(before, behind) + 0.01 * near_lengths
        context = np.where((before >= 0) & (behind >= 0), context, -1)
        results.append((context.argmax(axis=0) == np.count_nonzero(is_near[:row])) & (lasts < end))
    return results


def _encode_contexts(questions, tokenizer):
    """Returns the `_Context` of each text; many questions are about the same."""
    texts = list(dict.fromkeys(question.context for question in questions))
    return {
        text: _Context(
            np.array(encoding.ids[1:-1], np.int32), np.array(encoding.offsets[1:-1], np.int32).reshape([-1, 2])
        )
        for text, encoding in zip(texts, tokenizer.encode_batch(texts))
    }


def _find_answer(question, context):
    """Returns the pieces that hold the first answer, and whether it ends where they do."""
    # The pieces are None where the answer is unknown, and out of every window where there is none.
    if question.is_impossible:
        return (-1, -1), True
    if not question.answers or question.has_misplaced_answer:
        return None, True
    answer = question.answers[0]
    pieces = context.pieces_of(answer.begin, answer.end)
    if pieces is None:
        return None, True
    first, last = pieces
    return pieces, (context.offsets[first, 0], context.offsets[last, 1]) == (answer.begin, answer.end)


# From what a model says of the pieces of windows to the best spans of the text.


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

    text: str
    begin: int
    end: int
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
        Candidate(context[begin:end], begin, end, score)
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
