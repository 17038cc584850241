"""Answers to questions with their places in the text, inside a graph; the same as `QuestionAnswering.predict` gives."""

import typing

import tensorflow as tf

from albert_tf.asking.answers import DEFAULT
from albert_tf.modeling.conditional_answers import IMPOSSIBLE
from albert_tf.serving.signatures.base import Signatures, compute_by_length, slices, substrings
from albert_tf.tokenization.model_inputs import cut_windows


class _Windows(typing.NamedTuple):
    """Parts of texts, those of one text one after the other, each int32 [W]."""

    rows: tf.Tensor  # which text each is of
    begins: tf.Tensor  # its first piece in the text
    ends: tf.Tensor  # the piece behind its last one
    positions: tf.Tensor  # where its first piece stands in the input


class AnswerSignatures(Signatures):
    """Of `QuestionAnswering` and `ConditionalQuestionAnswering`: `question` and `context` string [N].

    Returns `answer` string [N], `begin` and `end` int32 [N], from which character to before which of the context it
    stands, "" and -1 for no answer, and `score` float32 [N], the higher the surer. Where questions may have no answer,
    also `null_odds` float32 [N], how much speaks for none.
    """

    def functions(self):
        return {DEFAULT: self._answer}

    def _answer(self, question, context):
        ids, *offsets = self._tokenizer.encode_with_offsets(context)
        batch, windows = self._cut(self._tokenizer.encode_ids(question), ids)
        num_overlapping = _num_overlapping(windows)

        def best_of_group(group):
            numbers = group["numbers"][:, 0]
            outputs = self._task.outputs({name: group[name] for name in batch}, self._model)
            return self._best_of_windows(windows, numbers, num_overlapping, outputs, offsets)

        # A long text has a thousand windows, and each of them thousands of spans: too many to be held at once.
        numbers = tf.range(tf.size(windows.rows))[:, None]
        found = compute_by_length(best_of_group, {**batch, "numbers": numbers})
        window = _first_best(found["score"], windows.rows)
        score, begin, end = (tf.gather(found[name], window) for name in ("score", "begin", "end"))
        return self._choose(context, score, begin, end, tf.math.segment_min(found["null_score"], windows.rows))

    def _best_of_windows(self, windows, numbers, num_overlapping, outputs, offsets):
        """Returns the best span of each of G of all windows, [G] each, given their numbers, int32 [G].

        `score` and `null_score` float32 say what speaks for the span and what for none; `begin` and `end` int32 are its
        characters in the text. `offsets` are the characters that each text's pieces stand for, [N, (pieces)] each.
        """
        of_group = _Windows(*(tf.gather(values, numbers) for values in windows))
        firsts, lasts, scores, null_scores = self._spans(of_group, outputs)
        has_most_context = _has_most_context(windows, numbers, num_overlapping, firsts, lasts)
        scores = tf.where(has_most_context, scores, IMPOSSIBLE)
        # One more, so that there is one to choose also where there is none.
        scores = tf.pad(scores, [[0, 0], [0, 1]], constant_values=IMPOSSIBLE)
        firsts, lasts = (
            tf.where(scores > IMPOSSIBLE / 2, tf.pad(places, [[0, 0], [0, 1]]), 0) for places in (firsts, lasts)
        )
        begins, ends = self._characters_of(of_group.rows, firsts, lasts, offsets)
        scores = tf.where(begins < ends, scores, IMPOSSIBLE)  # a mark may be a piece without characters
        best = tf.argmax(scores, axis=1, output_type=tf.int32)
        found = {"score": scores, "begin": begins, "end": ends}
        return {
            **{name: tf.gather(values, best, batch_dims=1) for name, values in found.items()},
            "null_score": null_scores,
        }

    def _choose(self, context, score, begin, end, null_score):
        has_answer = score > IMPOSSIBLE / 2
        more = {}
        if self._task.may_be_unanswerable:
            null_odds = tf.where(has_answer, self._task.null_odds(null_score, score), 0.0)
            has_answer &= null_odds <= self._task.null_threshold
            more = {"null_odds": null_odds}
        rows = tf.range(tf.size(context))
        characters = tf.strings.unicode_decode(context, "UTF-8")
        answer = substrings(characters, rows, *(tf.where(has_answer, place, 0) for place in (begin, end)))
        places = {name: tf.where(has_answer, place, -1) for name, place in (("begin", begin), ("end", end))}
        return {"answer": answer, **places, "score": score, **more}

    def _cut(self, queries, ids):
        """Returns the encoder's inputs of all windows, and the `_Windows`, as of `encode_questions`."""
        options, vocabulary = self._task.window_options, self._tokenizer.vocabulary
        num_special = vocabulary.num_special(2)
        room = self._max_seq_length - num_special
        queries = queries[:, : min(options.max_query_length, room // 2)]
        rooms = room - tf.cast(queries.row_lengths(), tf.int32)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        rows, begins, ends = cut_windows(lengths, rooms, options.doc_stride)
        queries = tf.gather(queries, rows)
        windows = _Windows(rows, begins, ends, num_special - 1 + tf.cast(queries.row_lengths(), tf.int32))
        return self._inputs.pack(queries, slices(ids, rows, begins, ends)), windows

    def _spans(self, windows, outputs):
        """Returns spans of each window, first and last piece in the text and score [W, C], and what speaks for none."""
        if "start_logits" in outputs:
            spans = _all_spans(windows, outputs, self._task.span_options.max_answer_length)
            null_scores = outputs["start_logits"][:, 0] + outputs["end_logits"][:, 0]
        else:
            spans, null_scores = _spans_found(windows, outputs), outputs["null_logits"]
        return *spans, null_scores

    @staticmethod
    def _characters_of(rows, firsts, lasts, offsets):
        """Returns the first characters of spans and those behind them, int32 [W, C] each."""
        begins, ends = offsets
        starts = tf.gather(tf.cast(begins.row_starts(), tf.int32), rows)[:, None]
        # Where a text has no pieces, there is nothing to find, and the score says so.
        begins, ends = (tf.concat([tf.cast(values.values, tf.int32), [0]], axis=0) for values in (begins, ends))
        return tf.gather(begins, starts + firsts), tf.gather(ends, starts + lasts)


def _all_spans(windows, outputs, max_answer_length):
    """Returns all spans of each window with the sum of their logits; what lies outside of the text is impossible."""
    start_logits, end_logits = outputs["start_logits"], outputs["end_logits"]
    num_windows, length = tf.shape(start_logits)[0], tf.shape(start_logits)[1]
    positions = tf.range(length)[:, None] + tf.range(max_answer_length)
    end_logits = tf.pad(end_logits, [[0, 0], [0, max_answer_length]], constant_values=IMPOSSIBLE)
    scores = start_logits[:, :, None] + tf.gather(end_logits, positions, axis=1)
    offset = (windows.begins - windows.positions)[:, None, None]
    lasts = offset + positions
    firsts = tf.broadcast_to(lasts[:, :, :1], tf.shape(lasts))
    return tuple(tf.reshape(values, [num_windows, length * max_answer_length]) for values in (firsts, lasts, scores))


def _spans_found(windows, outputs):
    """Returns the spans that the conditional head has found, with the sums of their log-probabilities."""
    offset = (windows.begins - windows.positions)[:, None]
    lasts = outputs["end_positions"]
    firsts = tf.broadcast_to(outputs["start_positions"][:, :, None], tf.shape(lasts))
    scores = outputs["start_log_probs"][:, :, None] + outputs["end_log_probs"]
    flat = tf.stack([tf.shape(lasts)[0], -1])
    return offset + tf.reshape(firsts, flat), offset + tf.reshape(lasts, flat), tf.reshape(scores, flat)


def _has_most_context(windows, numbers, num_overlapping, firsts, lasts):
    """Returns which spans of G windows have more context there than in others of the text, and lie in their window.

    It is `spans_with_most_context` in a graph, by the windows nearby alone: no others can hold the span. First and last
    tokens are int32 [G, C].
    """

    def context(numbers):
        """Returns a hundred times how many pieces are around the spans, and, to decide, how many the window has."""
        begins, ends = (tf.gather(places, numbers)[:, None] for places in (windows.begins, windows.ends))
        before, behind = firsts - begins, ends - 1 - lasts
        return tf.where((before >= 0) & (behind >= 0), 100 * tf.minimum(before, behind) + ends - begins, -1)

    own, rows = context(numbers), tf.gather(windows.rows, numbers)

    def beats(shift):
        """Returns which spans have more context than in the window so many before; behind, as much is enough."""
        others = tf.clip_by_value(numbers - shift, 0, tf.size(windows.rows) - 1)
        is_other = tf.equal(others, numbers - shift) & tf.equal(tf.gather(windows.rows, others), rows)
        other = context(others)
        return tf.where(is_other[:, None], (own > other) | ((shift < 0) & tf.equal(own, other)), True)

    _, is_best = tf.while_loop(
        lambda distance, _: distance <= num_overlapping,
        lambda distance, is_best: (distance + 1, is_best & beats(distance) & beats(-distance)),
        (1, own >= 0),
    )
    return is_best


def _num_overlapping(windows):
    """Returns with how many windows behind it a window overlaps at most."""
    strides = windows.begins[1:] - windows.begins[:-1]
    lengths = (windows.ends - windows.begins)[:-1]
    return tf.reduce_max(tf.where(strides > 0, -(-lengths // tf.maximum(strides, 1)), 0))


def _first_best(scores, rows):
    """Returns the first of the windows of each text that have its highest score, int32 [N]."""
    best = tf.gather(tf.math.segment_max(scores, rows), rows)
    numbers = tf.range(tf.size(rows))
    return tf.math.segment_min(tf.where(scores >= best, numbers, tf.int32.max), rows)
