"""Documents to segments: which pieces make up an example.

A document is the list of its sentences' borders, counted in pieces: sentence i is border i up to border i + 1.

The label of a pair must be told by the words and by nothing else. But text is not the same in both directions: a title
is shorter than what follows it, a question than its answer, and the last sentences of a document are a remainder. So a
pair must not show how long sentences happened to be:

- A segment begins with a sentence and ends inside one: it is what is left of some whole sentences when pieces are
  dropped at their end. So neither segment can be known as the first or the last by where it begins or ends.
- The lengths of the two segments are drawn, and a fair coin says which of them comes first.
- A pair is made only where the text also has the pair with the lengths exchanged, and all four segments begin and end
  alike (a cut may fall between two sentences, and a long sentence may have been split).

Then, wherever a pair begins, lengths and borders are exactly as probable for the pair in order as for the swapped one.
The original's labels can be told without reading: by topic, because a chunk that can't be split gets a random second
segment (google-research/albert#234), and by lengths, because the sentence that exceeds the target is always the last.
"""

import bisect
import collections.abc
import itertools
import random
import typing

import numpy as np

from albert_tf.pretraining_data.records import has_pairs

# A segment of a pair has at least an eighth of its pieces.
_SMALLEST_PART = 8
# This many pairs are drawn, and the one that loses least text is taken; if none can be made, shorter ones are drawn.
_DRAWS = 4
_SHRINKAGE = 0.9


class Segments(typing.NamedTuple):
    """One example: pieces first_begin up to first_end, then second_begin up to second_end, in the order of the model.

    The second segment may be empty. `label` is 1 if the second segment is not what follows the first.
    """

    first_begin: int
    first_end: int
    second_begin: int
    second_end: int
    label: int


def max_num_pieces(sentence_pair: str, max_seq_length: int) -> int:
    """Returns the room for pieces in an example: what [CLS] and [SEP] leave."""
    return max_seq_length - (3 if has_pairs(sentence_pair) else 2)


def make_segments(
    sentence_pair: str,
    documents: list[np.ndarray],
    max_num_tokens: int,
    short_seq_prob: float,
    generator: random.Random,
    inside_sentences: collections.abc.Set[int] = frozenset(),
) -> collections.abc.Iterator[Segments]:
    """Cuts documents into examples of at most `max_num_tokens` pieces.

    Each example draws its own target length: `max_num_tokens`, or with `short_seq_prob` a uniform one from 2 up, so
    that the model also sees short input (original create_pretraining_data.py, which draws once a document).

    Args:
        sentence_pair: "order": two consecutive segments, swapped half of the time (ALBERT). "next": half of the time
            the second segment comes from another document, or from elsewhere if there is no other (BERT). "none",
            "full_sentences" and "halves": one segment of whole sentences (RoBERTa); for the latter two the caller joins
            documents into one.
        documents: int64 [sentences + 1] each, the borders of a document's sentences; no sentence is empty or longer
            than `max_num_tokens`.
        max_num_tokens: Room for both segments together.
        short_seq_prob: Share of examples with a random shorter target.
        generator: Source of every draw.
        inside_sentences: Those borders that stand inside a sentence, which was too long for one example.
    """

    def draw_target():
        if generator.random() < short_seq_prob:
            return 2 + int(generator.random() * (max_num_tokens - 1))
        return max_num_tokens

    if has_pairs(sentence_pair):
        documents = [_Document(borders, inside_sentences) for borders in documents if len(borders) > 2]
        make_pairs = _order_pairs if sentence_pair == "order" else _next_pairs
        yield from make_pairs(documents, draw_target, generator)
    else:
        for borders in documents:
            yield from _single_segments(borders.tolist(), draw_target)


def _single_segments(borders, draw_target):
    begin, last = 0, len(borders) - 1
    while begin < last:
        end = max(bisect.bisect_right(borders, borders[begin] + draw_target(), begin + 1) - 1, begin + 1)
        yield Segments(borders[begin], borders[end], borders[end], borders[end], 0)
        begin = end


class _Cut(typing.NamedTuple):
    """What is left of whole sentences when pieces are dropped at their end."""

    begin: int
    end: int
    sentences_end: int  # where the sentences end
    edges: tuple[bool, bool]  # whether it begins, and whether it ends, where a sentence does


class _Document:
    """A document to be cut into pairs.

    Attributes:
        borders: As `make_segments` takes them, but counted from the begin of the document.
        offset: Where that is.
        size: Number of pieces.
        ends: Where the sentence of each piece ends.
    """

    def __init__(self, borders, inside_sentences):
        self.offset = int(borders[0])
        borders = borders - self.offset
        self.borders = borders.tolist()
        self.size = self.borders[-1]
        # A memoryview gives numbers almost as fast as a list, which would take longer to make than it saves.
        self.ends = memoryview(borders[1:].repeat(borders[1:] - borders[:-1]))
        self._inside_sentences = inside_sentences

    def cut(self, begin, length):
        """Cuts the fewest sentences from `begin` on with more than `length` pieces; the document must have as many."""
        end = begin + length
        return _Cut(begin, end, self.ends[end], (self._is_edge(begin), self._is_edge(end)))

    def cut_pair(self, begin, first_length, second_length):
        """Cuts two segments, the second from the sentences that follow the first's."""
        first = self.cut(begin, first_length)
        return first, self.cut(first.sentences_end, second_length)

    def begin_of(self, piece):
        """Returns where the sentence of a piece begins."""
        return self.borders[bisect.bisect_right(self.borders, piece) - 1]

    def begin_after(self, cut):
        """Returns where to continue after a segment: at the sentence that was cut, unless it is the last."""
        return self.begin_of(cut.end) if cut.sentences_end < self.size else self.size

    def _is_edge(self, place):
        is_border = place == 0 or self.ends[place - 1] == place
        return is_border and place + self.offset not in self._inside_sentences


def _order_pairs(documents, draw_target, generator):
    for document in documents:

        def make_pair(begin, document=document):
            for first_length, second_length in _draw_lengths(document, begin, draw_target(), generator):
                pair = document.cut_pair(begin, first_length, second_length)
                exchanged = document.cut_pair(begin, second_length, first_length)
                if pair[0].edges == pair[1].edges == exchanged[0].edges == exchanged[1].edges:
                    label = int(generator.random() < 0.5)
                    segments = _segments(document, pair[label], document, pair[1 - label], label)
                    return segments, document.begin_after(pair[1])
            return None

        yield from _along(document, make_pair)


def _next_pairs(documents, draw_target, generator):
    elsewhere = _Elsewhere(documents, generator)
    for number, document in enumerate(documents):

        def make_pair(begin, number=number, document=document):
            for first_length, second_length in _draw_lengths(document, begin, draw_target(), generator):
                first, second = document.cut_pair(begin, first_length, second_length)
                other, other_cut = elsewhere.cut(number, begin, second.sentences_end, second_length)
                # Only where either could be taken is one of them chosen.
                if other_cut and other_cut.edges == second.edges:
                    if generator.random() < 0.5:
                        return _segments(document, first, other, other_cut, 1), first.sentences_end
                    return _segments(document, first, document, second, 0), document.begin_after(second)
            return None

        yield from _along(document, make_pair)


def _draw_lengths(document, begin, target, generator):
    """Yields lengths of two segments to try, of `target` pieces together, then of fewer.

    The document holds segments of these lengths and of the lengths exchanged. Of several draws those come first for
    which fewest pieces are dropped, with either length in front.
    """
    ends, size, draw = document.ends, document.size, generator.random
    num_pieces = min(target, size - begin - 2)
    while num_pieces >= 2:
        least = -(-num_pieces // _SMALLEST_PART)
        fitting = []
        for _ in range(_DRAWS):
            first = least + int(draw() * (num_pieces - 2 * least + 1))
            second = num_pieces - first
            split, exchanged_split = ends[begin + first], ends[begin + second]
            if split + second < size and exchanged_split + first < size:
                fitting.append((ends[split + second] + ends[exchanged_split + first], first, second))
        for _, first, second in sorted(fitting):
            yield (first, second) if draw() < 0.5 else (second, first)
        num_pieces = int(num_pieces * _SHRINKAGE)


def _along(document, make_pair):
    """Yields the pairs of a document; `make_pair(begin)` returns one and where to continue, or None."""
    begin = rest = 0
    while begin < document.size:
        made = make_pair(begin)
        if made:
            segments, begin = made
            yield segments
            rest = begin
        else:
            begin = document.ends[begin]
    if 0 < rest < document.size:  # the rest makes no pair by itself, so the sentence before it is added
        made = make_pair(document.begin_of(rest - 1))
        if made:
            yield made[0]


def _segments(first_document, first, second_document, second, label):
    first_offset, second_offset = first_document.offset, second_document.offset
    return Segments(
        first_offset + first.begin,
        first_offset + first.end,
        second_offset + second.begin,
        second_offset + second.end,
        label,
    )


class _Elsewhere:
    """Segments from other documents, at any of their sentences but the first of each, all equally probable."""

    def __init__(self, documents, generator):
        self._documents, self._generator = documents, generator
        self._ends = list(itertools.accumulate(len(document.borders) - 2 for document in documents))

    def cut(self, number, begin, end, length):
        """Returns a document other than document `number`, and a segment of it; None if the document is too short.

        If there is no other, a segment of the same document that lies outside `begin` up to `end`.
        """
        own_begin, own_end = self._ends[number - 1] if number else 0, self._ends[number]
        num_others = self._ends[-1] - (own_end - own_begin)
        place = int(self._generator.random() * (num_others or own_end))
        if num_others and place >= own_begin:
            place += own_end - own_begin
        other = bisect.bisect_right(self._ends, place)
        document = self._documents[other]
        other_begin = document.borders[place - (self._ends[other - 1] if other else 0) + 1]
        if other_begin + length >= document.size:
            return document, None
        cut = document.cut(other_begin, length)
        overlaps = other == number and other_begin < end and begin < cut.sentences_end
        return document, None if overlaps else cut
