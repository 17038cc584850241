"""Answers to questions and named entities with their places in the text, inside a graph.

They are the same as `QuestionAnswering.predict` and `Entities.predict` give.
"""

import typing

import tensorflow as tf

from albert_tf.asking.answers import DEFAULT, LENGTHS
from albert_tf.finetuning.tasks.tag_alignment import IGNORED
from albert_tf.modeling.conditional_answers import IMPOSSIBLE
from albert_tf.modeling.heads import CHARACTERS_SHAPE, REACH
from albert_tf.serving.signature_base import Signatures, compute_by_length, is_space, slices, substrings
from albert_tf.tokenization.arrays import expanded
from albert_tf.tokenization.model_inputs import cut_windows
from albert_tf.tokenization.unicode_tables import differs


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


_NO_TYPE = -1


class _Units(typing.NamedTuple):
    """Words or characters of N texts that are tagged, text after text, each int32 [U]."""

    rows: tf.Tensor  # which text each is of
    begins: tf.Tensor  # its first character in the text
    ends: tf.Tensor  # the character behind its last one


class EntitySignatures(Signatures):
    """Of `Entities`: `text` string [N].

    Returns, for E entities of the text with most of them, `types` and `texts` string [N, E], and `begins` and `ends`
    int32 [N, E], from which character to before which of the text; "" and -1 behind the last entity of a text; and
    `lengths` int32 [N], how many entities each text has.
    """

    def functions(self):
        return {DEFAULT: self._find}

    def _find(self, text):
        ids, *offsets = self._tokenizer.encode_with_offsets(text)
        characters = tf.strings.unicode_decode(text, "UTF-8")
        units, pieces = _read_units(_units_of(characters, self._task.reads_words), *offsets, characters)
        types, are_begins = self._read_tags(pieces, self._tags_of_pieces(ids, units, pieces, characters))

        is_inside = types > _NO_TYPE
        is_first = is_inside & (are_begins | differs(units.rows) | differs(types))
        rows, begins = (tf.boolean_mask(values, is_first) for values in (units.rows, units.begins))
        # All units of an entity have its number.
        numbers = tf.boolean_mask(tf.cumsum(tf.cast(is_first, tf.int32)) - 1, is_inside)
        ends = tf.math.segment_max(tf.boolean_mask(units.ends, is_inside), numbers)
        names = tf.gather(tf.constant(self._task.types), tf.boolean_mask(types, is_first))
        found = {"types": names, "texts": substrings(characters, rows, begins, ends), "begins": begins, "ends": ends}
        num_texts = tf.cast(tf.size(text), tf.int64)
        filled_up = {
            name: tf.RaggedTensor.from_value_rowids(values, tf.cast(rows, tf.int64), num_texts).to_tensor(
                "" if values.dtype == tf.string else -1
            )
            for name, values in found.items()
        }
        return {**filled_up, LENGTHS: tf.math.bincount(rows, minlength=tf.size(text), maxlength=tf.size(text))}

    def _tags_of_pieces(self, ids, units, pieces, characters):
        """Returns the most probable tag of each piece of all texts, int32 [P]; long texts are read in several parts.

        Units are read from `pieces`, int32 [U]; ids are int32 [N, (pieces)], and characters int32 [N, (characters)].
        """
        room = self._max_seq_length - 2
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        parts, rows = expanded(tf.maximum(1, -(-lengths // room)))
        begins = parts * room
        ends = tf.minimum(begins + room, tf.gather(lengths, rows))

        def in_parts(values, nothing):
            parts = slices(ids.with_values(values), rows, begins, ends).to_tensor(nothing)
            # [CLS] and [SEP] stand around each.
            return tf.pad(parts, [[0, 0], [1, 1], *[[0, 0]] * (values.shape.rank - 1)], constant_values=nothing)

        num_pieces = tf.size(ids.values)
        is_unread = tf.equal(tf.math.bincount(pieces, minlength=num_pieces, maxlength=num_pieces), 0)
        batch = self._inputs.pack(slices(ids, rows, begins, ends))
        batch["label_ids"] = in_parts(tf.where(is_unread, IGNORED, 0), IGNORED)
        if self._task.config.character_ngrams:
            batch["characters"] = in_parts(_characters_around(units, pieces, num_pieces, characters), 0)
        found = self._task_outputs(batch)["found_ids"]
        return tf.RaggedTensor.from_tensor(found[:, 1:], ends - begins).values

    def _read_tags(self, pieces, tags_of_pieces):
        """Returns int32 [U], the type of each unit, -1 for none, and bool [U], whether it begins an entity."""
        labels, tags = self._task.labels, tf.gather(tags_of_pieces, pieces)
        kinds = [label.partition("-")[2] for label in labels]
        types = tf.constant([self._task.types.index(kind) if kind else _NO_TYPE for kind in kinds])
        are_begins = tf.constant([label.startswith("B-") for label in labels])
        # Of the units that one piece holds the first has its tag, and the others go on with it.
        return tf.gather(types, tags), tf.gather(are_begins, tags) & differs(pieces)


def _units_of(characters, are_words):
    """Returns the units of texts, as `units_of` of `finetuning.tasks.tagged_text`."""
    positions, rows = expanded(tf.cast(characters.row_lengths(), tf.int32))
    is_part = ~is_space(characters.values)
    if not are_words:
        rows, begins = tf.boolean_mask(rows, is_part), tf.boolean_mask(positions, is_part)
        return _Units(rows, begins, begins + 1)
    is_border = differs(rows) | differs(is_part)
    words = tf.boolean_mask(tf.cumsum(tf.cast(is_border & is_part, tf.int32)) - 1, is_part)
    rows, positions = tf.boolean_mask(rows, is_part), tf.boolean_mask(positions, is_part)
    begins, ends = tf.math.segment_min(positions, words), tf.math.segment_max(positions, words) + 1
    return _Units(tf.math.segment_min(rows, words), begins, ends)


def _characters_around(units, pieces, num_pieces, characters):
    """Returns the characters around each of P tokens, int32 [P, 2, 5], as `finetuning.tasks.tag_alignment` does."""
    spaces = tf.fill([characters.nrows(), REACH], ord(" "))
    padded = tf.concat([spaces, characters, spaces], axis=1)
    starts = tf.gather(tf.cast(padded.row_starts(), tf.int32), units.rows)
    is_first = differs(pieces)
    is_last = tf.reverse(differs(tf.reverse(pieces, [0])), [0])
    places = [tf.boolean_mask(starts + units.begins, is_first), tf.boolean_mask(starts + units.ends - 1, is_last)]
    around = tf.gather(padded.values, tf.stack(places, axis=1)[..., None] + tf.range(CHARACTERS_SHAPE[1]))
    return tf.scatter_nd(tf.boolean_mask(pieces, is_first)[:, None], around, [num_pieces, *CHARACTERS_SHAPE])


def _read_units(units, piece_begins, piece_ends, characters):
    """Returns the units that are read, and the first token that holds a character of each, int32 [U].

    Tokens begin and end in their texts, int [N, (tokens)].
    """
    # Counted through all texts, so that one search does for all.
    starts = tf.cast(characters.row_starts(), tf.int32)
    before_pieces, before_units = tf.gather(starts, piece_begins.value_rowids()), tf.gather(starts, units.rows)
    begins, ends = (tf.cast(values.values, tf.int32) + before_pieces for values in (piece_begins, piece_ends))
    pieces = tf.cast(tf.where(begins < ends)[:, 0], tf.int32)
    firsts = tf.searchsorted(tf.gather(ends, pieces), before_units + units.begins, side="right")
    # None is after the last one, and so holds nothing.
    begins = tf.concat([tf.gather(begins, pieces), [tf.int32.max]], axis=0)
    is_read = tf.gather(begins, firsts) < before_units + units.ends
    units = _Units(*(tf.boolean_mask(values, is_read) for values in units))
    return units, tf.gather(pieces, tf.boolean_mask(firsts, is_read))
